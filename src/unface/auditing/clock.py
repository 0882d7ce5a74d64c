"""When a run began and how long it took: the only part of a result that differs between two runs."""

import time
from datetime import UTC, datetime

from unface._version import __version__
from unface.auditing.schema import Run


class Clock:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._started, self._ticks = datetime.now(UTC), time.monotonic()

    def run(self) -> Run:
        """Up to now."""
        return Run(
            unface=__version__,
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._ticks, 3),
        )
