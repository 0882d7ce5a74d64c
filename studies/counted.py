"""Counts of accepted comparisons by person, as studies keep them. Their thresholds are taken as known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.result.numbers import Estimate, Rate, Share
from unface.score import Draws, Mated, Measured, Threshold, rate_at
from unface.validate.measure import shared_fars
from unface.validate.ports import Faces, TemplateJudge

Counts = NDArray[np.int64]
_REACHED = Threshold.known(0.5, 0.5)


def counted(accepted: Counts, compared: Counts, seed: int = 0, role: str = "enrolled") -> Measured:
    """A share of (people,) counts."""
    place = np.arange(int(compared.sum())) - np.repeat(np.cumsum(compared) - compared, compared)
    people = np.repeat(np.arange(len(compared)), compared)
    scores = (place < accepted[people]).astype(np.float32)
    return rate_at([(Mated(people, scores, len(compared), role), _REACHED)], Draws(seed))


def people_share(accepted: Counts, compared: Counts, seed: int = 0) -> Share | None:
    """The same as results have it; None where nothing was compared."""
    return counted(accepted, compared, seed).share if compared.sum() else None


def ceiling_counts(faces: Faces, judges: Sequence[TemplateJudge]) -> tuple[Counts, Counts]:
    """Accepted (judges, FARs, people) and compared (judges, people) real other pictures."""
    fars = shared_fars(judges)
    accepted = np.zeros((len(judges), len(fars), len(faces.names)), np.int64)
    compared = np.zeros((len(judges), len(faces.names)), np.int64)
    for at, judge in enumerate(judges):
        cosines = {threshold.far: threshold.cosine for threshold in judge.thresholds}
        scores = judge.compare_pictures(faces)
        for person in range(len(faces.names)):
            rows = faces.rows(person)
            found = scores[rows[0], rows[1:]]
            compared[at, person] = np.isfinite(found).sum()
            accepted[at, :, person] = [(found >= np.float32(cosines[far])).sum() for far in fars]
    return accepted, compared


@dataclass(frozen=True, eq=False)
class CountedTally:
    """Accepted comparisons of one judge (thresholds, people) and all (people,), as rows of studies keep them."""

    same: Counts
    same_of: Counts
    other: Counts
    other_of: Counts
    stranger: Counts
    stranger_of: Counts

    def __add__(self, judged: "CountedTally") -> "CountedTally":
        """Two judges: rates of the sum are the mean over judges."""
        return CountedTally(*(getattr(self, name) + getattr(judged, name) for name in self.__dataclass_fields__))

    def rate(self, kind: str, at: int) -> float:
        """Accepted share of ``kind`` at threshold number ``at``."""
        return float(getattr(self, kind)[at].sum() / getattr(self, f"{kind}_of").sum())

    def share(self, kind: str, at: int) -> Measured:
        """The same with its interval."""
        return counted(getattr(self, kind)[at], getattr(self, f"{kind}_of"), role="templates")

    def chance(self, at: int) -> Rate:
        """Strangers accepted."""
        return Rate.counted(int(self.stranger[at].sum()), int(self.stranger_of.sum()))

    def less(self, other: "CountedTally", kind: str, at: int) -> Estimate:
        """This less another one of the same people."""
        return Estimate.within(*self.share(kind, at).less(other.share(kind, at)))


@dataclass(frozen=True, eq=False)
class CountedJudges:
    """By judge, and over all of them."""

    fars: tuple[float | None, ...]
    by: Mapping[str, CountedTally]

    @property
    def all(self) -> CountedTally:
        """Rates of this are means over judges."""
        first, *others = self.by.values()
        return sum(others, first)
