"""What a long run of a test tool prints on stderr while it works: one line every 30 seconds."""

import sys
import time

EVERY = 30.0


class ProgressLine:
    """``what`` are counted, such as kills; ``bad`` such as violations."""

    def __init__(self, what: str, total: int, bad: str = "violations") -> None:
        self._what, self._total, self._bad = what, total, bad
        self._begun = self._last = time.monotonic()

    def tell(self, done: int, bad: int) -> None:
        """Prints if the last line is old enough."""
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            line = f"{self._what}: {done:,} of {self._total:,}, {bad:,} {self._bad}, {now - self._begun:.0f} s"
            print(line, file=sys.stderr, flush=True)
