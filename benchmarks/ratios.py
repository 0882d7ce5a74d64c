"""A benchmark's answer is a ratio of two things timed in one run: machines differ and are noisy, ratios less so."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ratio:
    """What was compared, what came out, and what it must not exceed (or, ``at_least``, must reach).

    ``figures`` are what pages say of the run besides.
    """

    name: str
    value: float
    bound: float
    at_least: bool = False
    detail: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the claim is true in this run."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def cpu_seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """The least CPU time of a few runs, all threads counted."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best
