"""What one number says about one limit, and which of several outcomes speaks for a rule."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Unit = Literal["share", "times chance", "difference"]


class Verdict(StrEnum):
    """Failed outweighs cannot tell, which outweighs passed."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "cannot tell"


GRAVITY = {Verdict.PASSED: 0, Verdict.CANNOT_TELL: 1, Verdict.FAILED: 2}


@dataclass(frozen=True)
class Found:
    """A measured number beside its limit; k, far and probe are None where the measure has none."""

    value: float
    low: float
    high: float
    level: float
    limit: float
    unit: Unit
    probe: str | None = None
    k: int | None = None
    far: float | None = None


@dataclass(frozen=True)
class Outcome:
    """One number against one limit; ``strain`` grows towards failing."""

    verdict: Verdict
    reason: str
    found: Found | None = None
    strain: float = 0.0


def cannot_tell(reason: str) -> Outcome:
    """Not measured, or not well enough; never a pass."""
    return Outcome(Verdict.CANNOT_TELL, reason)


def decisive(outcomes: Iterable[Outcome]) -> Outcome:
    """The gravest; of equally grave ones the closest to failing, or the farthest beyond."""
    return max(outcomes, key=lambda outcome: (GRAVITY[outcome.verdict], outcome.strain))
