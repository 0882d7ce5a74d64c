"""The command line against an S3 server, with a lock that is renewed and given up soon, killed on the way.

Usage: s3_run.py STEP WORDS…: a step is a write to an object, a rename or a removal; 0 kills nothing. In the place of a
step a file: a line is printed at the first write to an object, which goes on when there is that file.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.killed import Fuse
from unface.cli import main
from unface.output import lock
from unface.output.place import Place, Sink


def held(whole: Callable[..., Any], until: Path) -> Callable[..., Any]:
    def waiting(*given: Any, **more: Any) -> Any:
        if not until.exists():
            print("held", file=sys.stderr, flush=True)
        while not until.exists():
            time.sleep(0.02)
        return whole(*given, **more)

    return waiting


def run(step: str, *words: str) -> None:
    lock._RENEWED_S, lock._ABANDONED_S = 0.2, 1.0
    if not step.isdigit():
        Sink.write = held(Sink.write, Path(step))  # type: ignore[method-assign]
    elif int(step):
        fuse = Fuse(int(step))
        for owner, name in ((Sink, "write"), (Sink, "finish"), (Place, "write"), (Place, "drop")):
            setattr(owner, name, fuse.around(getattr(owner, name)))
    sys.argv = ["unface", *words]
    main()


if __name__ == "__main__":
    run(*sys.argv[1:])
