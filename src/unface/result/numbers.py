"""The numbers of every result file: no value without its interval or the counts behind it.

Plain frozen dataclasses, so that rooms which compute them need no pydantic and results hold them without a copy.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

# How pydantic treats these where a result file is read: unknown keys, NaN and infinity are errors.
_STRICT = {"extra": "forbid", "allow_inf_nan": False}


def _is_none(value: object) -> bool:
    return value is None


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high`` with a nominal coverage of ``level``."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        _require_level(self.level)


def wilson_ends(rate: float, trials: float, z: float) -> tuple[float, float]:
    """Both ends of Wilson's score interval, ``z`` standard deviations wide on each side."""
    pull = z * z / trials
    centre = (rate + pull / 2) / (1 + pull)
    half = z * math.sqrt(max(rate * (1 - rate), 0) / trials + z * z / (4 * trials * trials)) / (1 + pull)
    return centre - half, centre + half


def zero_bound(trials: int, level: float = 0.95) -> float:
    """The largest rate that still gives no success in ``trials`` with probability 1 − level: about 3/n."""
    return float(1 - (1 - level) ** (1 / trials))


def fewest_trials(limit: float, level: float = 0.95) -> int:
    """How many trials without a success put ``zero_bound`` at ``limit`` (above 0, below 1) or below: about 3/limit."""
    near = max(math.ceil(math.log1p(-level) / math.log1p(-limit)), 1)
    # The logarithms are rounded: the bound itself decides between neighbours.
    return next(trials for trials in range(max(near - 1, 1), near + 3) if zero_bound(trials, level) <= limit)


@dataclass(frozen=True)
class Estimate:
    """A value and its interval."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    value: float
    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        _require_level(self.level)

    @classmethod
    def within(cls, value: float, interval: Interval) -> "Estimate":
        """A value with an interval that was computed for it."""
        return Estimate(value, interval.low, interval.high, interval.level)


@dataclass(frozen=True)
class Mean(Estimate):
    """A mean or median over ``of`` measurements of ``identities`` people; people are resampled for the interval."""

    of: int
    identities: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_people(self.identities)


@dataclass(frozen=True)
class Rate:
    """``numerator`` of ``denominator``."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    value: float
    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        _require_share(self.value, self.numerator, self.denominator)

    @classmethod
    def counted(cls, numerator: int, denominator: int) -> Self:
        """From its counts."""
        return cls(numerator / denominator, numerator, denominator)


@dataclass(frozen=True)
class Share(Estimate):
    """``numerator`` of ``denominator`` with its interval; people are resampled for it."""

    numerator: int
    denominator: int
    identities: int
    """People behind the counts."""
    effective_n: float | None = field(default=None, metadata={"exclude_if": _is_none})
    """Independent trials that would vary as much; files leave it out where it was not computed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share(self.value, self.numerator, self.denominator)
        _require_people(self.identities)

    @classmethod
    def counted(
        cls, numerator: int, denominator: int, interval: Interval, identities: int, effective_n: float | None = None
    ) -> "Share":
        """From its counts and the interval that was computed for them."""
        ends = (interval.low, interval.high, interval.level)
        return Share(numerator / denominator, *ends, numerator, denominator, identities, effective_n)


@dataclass(frozen=True)
class Kept:
    """One measure of usefulness, or of the neighbours of the audited, on the same queries before and after erasure."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    measure: str = field(
        metadata={
            "description": "knn, linear, copy recall@1 …; of the audited pictures, which is no usefulness: neighbour "
            "overlap@10 (nearest pictures of other people that stay) and neighbours of the same person@10"
        }
    )
    on: str
    queries: int
    raw: Estimate
    erased: Estimate
    retained: Estimate = field(
        metadata={"description": "erased as a share of raw, which may exceed 1; the interval is paired"}
    )

    @property
    def is_usefulness(self) -> bool:
        """Measured on a set that says what the vectors are for, not on the neighbours of the audited."""
        return "neighbour" not in self.measure

    @property
    def is_same_person(self) -> bool:
        """How many of the nearest neighbours show the person of the query, which erasure is to make fewer."""
        return self.measure.startswith("neighbours of the same person")


@dataclass(frozen=True)
class Certificate:
    """Identity left after a projection, on people it was not fitted on; 0 is none for all three estimates."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    identities: int
    images: int
    energy_left: Estimate
    """Share of the between-identity variance left by the linear map, without sampling noise."""
    fisher_before: Estimate
    fisher_left: Estimate
    """Ratio of between- to within-identity variance along the direction of released vectors in which it was largest on
    other people (train identities, or the other half). The largest ratio of these people is at least that."""
    covers: str = (
        "linear access to single vectors, on the identities and images it was measured on;"
        " not verification at any false-accept rate, not other data, not non-linear attackers"
    )


def _require_level(level: float) -> None:
    """Other intervals have no width in standard deviations to compare them by."""
    if not 0.01 <= level <= 1 - 1e-12:
        raise ValueError(f"{level:g} is no level of an interval, such as 0.95")


def _require_people(identities: int) -> None:
    """Nothing is measured on nobody."""
    if identities < 1:
        raise ValueError(f"{identities} people are behind a number")


def _require_share(value: float, numerator: int, denominator: int) -> None:
    share = f"{numerator:,} of {denominator:,}"
    if denominator == 0 or not 0 <= numerator <= denominator:
        raise ValueError(f"{share} is no share")
    if not math.isclose(value, numerator / denominator, rel_tol=1e-9):
        raise ValueError(f"{value:g} is not {share}")
