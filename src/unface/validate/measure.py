"""From what attacks recovered to rates: judged, settings chosen on other people, intervals over enrolled people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Replicates, Scheme, identity_weights, rate_interval
from unface.result.numbers import Estimate, Interval, Share
from unface.result.validation import ALL_JUDGES, AttackResult, Ceiling, Success
from unface.seeds import stream
from unface.validate.ports import Faces, Picture, Recovered, Setting, TemplateJudge

WORST = "worst"
"""The name of the attack that is, at each number of questions, the best one of the panel on other people."""
_LEVEL = 0.95
_REPLICATES = 2000
_PEOPLE_AT_ONCE = 16
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """How many comparisons of recovered templates each judge accepted: (judges, FARs, settings, queries, people).

    ``same``: with the enrolled picture, ``other``: with others of the person, ``stranger``: with all of everybody
    else's. ``compared`` (3, judges, people) counts the comparisons of the three; pictures without a face are left out.
    """

    judges: tuple[str, ...]
    fars: tuple[float, ...]
    settings: tuple[Setting, ...]
    queries: tuple[int, ...]
    same: Counts
    other: Counts
    stranger: Counts
    compared: Counts

    def joined(self, others: "Sequence[Verdicts]") -> "Verdicts":
        """All of them as the settings of one attack."""
        every = (self, *others)
        same, other, stranger = (
            np.concatenate([getattr(one, kind) for one in every], axis=2) for kind in ("same", "other", "stranger")
        )
        settings = tuple(setting for one in every for setting in one.settings)
        return replace(self, settings=settings, same=same, other=other, stranger=stranger)


def judge_recovered(
    settings: Sequence[Setting], recovered: Sequence[Recovered], faces: Faces, judges: Sequence[TemplateJudge]
) -> Verdicts:
    """``recovered`` are one attack's, of each person of ``faces`` in their order."""
    fars = shared_fars(judges)
    people, queries = len(faces.names), recovered[0].queries
    counts = np.zeros((3, len(judges), len(fars), len(settings), len(queries), people), np.int64)
    compared = np.zeros((3, len(judges), people), np.int64)
    each = len(settings) * len(queries)
    own = [faces.rows(person) for person in range(people)]
    for at, judge in enumerate(judges):
        cosines = {threshold.far: threshold.cosine for threshold in judge.thresholds}
        seen = np.asarray(faces.vectors[judge.name].any(axis=1))
        for start in range(0, people, _PEOPLE_AT_ONCE):
            some = range(start, min(start + _PEOPLE_AT_ONCE, people))
            templates = np.concatenate([recovered[person].templates.reshape(each, -1) for person in some])
            pictures = [picture for person in some for picture in _pictures(recovered[person], each)]
            scores = judge.compare(templates, pictures, faces)
            for number, far in enumerate(fars):
                accepted = (scores >= np.float32(cosines[far])).reshape(len(some), each, -1)
                for person, hits in zip(some, accepted, strict=True):
                    rows = own[person]
                    itself, others = hits[:, rows[0]], hits[:, rows[1:]].sum(axis=1)
                    found = np.stack([itself, others, hits.sum(axis=1) - itself - others])
                    counts[:, at, number, :, :, person] = found.reshape(3, len(settings), len(queries))
        for person, rows in enumerate(own):
            mine, further = int(seen[rows[0]]), int(seen[rows[1:]].sum())
            compared[:, at, person] = mine, further, int(seen.sum()) - mine - further
    names = tuple(judge.name for judge in judges)
    same, other, stranger = counts
    return Verdicts(names, fars, tuple(settings), queries, same, other, stranger, compared)


def _pictures(found: Recovered, each: int) -> list[Picture | None]:
    return [picture for row in found.pictures for picture in row] or [None] * each


def shared_fars(judges: Sequence[TemplateJudge]) -> tuple[float, ...]:
    """Those that every judge has a threshold for, falling."""
    rates = set.intersection(*({threshold.far for threshold in judge.thresholds} for judge in judges))
    return tuple(sorted(rates, reverse=True))


def chosen_settings(verdicts: Verdicts, seed: int) -> NDArray[np.int64]:
    """(queries, people): which setting counts for which person; the best one on the other half of the people.

    Best over all judges and FARs, by other pictures of the person and then by the same one; the first wins ties.
    """
    people = verdicts.same.shape[-1]
    half = stream(seed, "validate", "halves").permutation(people) % 2
    gained = verdicts.other.sum(axis=(0, 1)) + 1e-3 * verdicts.same.sum(axis=(0, 1))  # (settings, queries, people)
    chosen = np.zeros((len(verdicts.queries), people), np.int64)
    for side in (0, 1):
        if (half != side).any():
            best = gained[:, :, half != side].sum(axis=2).argmax(axis=0)
            chosen[:, half == side] = best[:, None]
    return chosen


@dataclass(frozen=True, eq=False)
class Curve:
    """One attack with its settings chosen: (judges, FARs, queries, people) accepted of ``compared``."""

    verdicts: Verdicts
    chosen: NDArray[np.int64]
    seed: int

    @classmethod
    def of(cls, verdicts: Verdicts, seed: int) -> "Curve":
        """With settings chosen on other people."""
        return cls(verdicts, chosen_settings(verdicts, seed), seed)

    def counts(self, kind: str) -> Counts:
        """Of "same", "other" or "stranger"."""
        every: Counts = getattr(self.verdicts, kind)
        picked = np.take_along_axis(every, self.chosen[None, None, None], axis=2)
        return picked[:, :, 0]

    def result(self, name: str, *, adaptive: bool = False, attacks: Sequence[str] = ()) -> AttackResult:
        """As the file has it: each judge alone, then all together. ``attacks`` are those that settings belong to."""
        found = self.verdicts
        used = sorted(set(self.chosen.ravel().tolist()))
        return AttackResult(
            name=name,
            adaptive=adaptive,
            settings=[dict(found.settings[number]) for number in used],
            at=[
                self._success(judges, judge, far, query, attacks)
                for judges, judge in self._benches()
                for far in range(len(found.fars))
                for query in range(len(found.queries))
            ],
        )

    def queries_to_half(self, far: float) -> tuple[Estimate | None, str]:
        """Questions until one half of other pictures are accepted, by all judges, and what to say of it.

        Between two numbers of questions the share is taken to grow with the logarithm.
        """
        at, queries = self.verdicts.fars.index(far), np.array(self.verdicts.queries, float)
        accepted = self.counts("other")[:, at].sum(axis=0)  # (queries, people)
        compared = self.verdicts.compared[1].sum(axis=0)
        weights = enrolled_weights(len(compared), self.seed)
        shares = (weights @ accepted.T) / np.maximum(weights @ compared, np.finfo(float).tiny)[:, None]
        value = _crossing(queries, accepted.sum(axis=1) / max(compared.sum(), 1))
        ends = np.array([_crossing(queries, curve) for curve in shares])
        low, high = np.quantile(ends, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2), method="nearest")
        if not np.isfinite(value):
            often = float(np.isfinite(ends).mean())
            return None, f"reached in {100 * often:.0f} % of resamples" if often > (1 - _LEVEL) / 2 else ""
        note = "" if np.isfinite(high) else f"the upper end is beyond {int(queries[-1])} questions"
        if value <= queries[0]:
            note = "already at the smallest number that was tried"
        return Estimate.within(value, Interval(min(low, value), min(high, queries[-1]), _LEVEL)), note

    def share(self, kind: str, judges: list[int], far: int, query: int) -> Share | None:
        """Accepted by some of the judges; None where there is nothing to compare with."""
        compared = self.verdicts.compared[("same", "other").index(kind)][judges].sum(axis=0)
        return people_share(self.counts(kind)[judges, far, query].sum(axis=0), compared, self.seed)

    def _benches(self) -> list[tuple[list[int], str]]:
        names = self.verdicts.judges
        return [([at], name) for at, name in enumerate(names)] + [(list(range(len(names))), ALL_JUDGES)]

    def _success(self, judges: list[int], name: str, far: int, query: int, attacks: Sequence[str]) -> Success:
        strangers = int(self.counts("stranger")[judges, far, query].sum())
        return Success(
            queries=self.verdicts.queries[query],
            far=self.verdicts.fars[far],
            judge=name,
            same=self.share("same", judges, far, query),
            other=self.share("other", judges, far, query),
            chance=strangers / max(int(self.verdicts.compared[2][judges].sum()), 1),
            attacks=sorted({attacks[number] for number in self.chosen[query]}) if attacks else [],
        )


def worst_curve(panel: Sequence[Verdicts], seed: int) -> Curve:
    """At each number of questions the attack and setting that are best on other people."""
    return Curve.of(panel[0].joined(panel[1:]), seed)


def pooled(curves: Sequence[Curve]) -> Curve:
    """The same attack on other people each time, as one; settings stay as they were chosen."""
    every = [curve.verdicts for curve in curves]
    same, other, stranger, compared = (
        np.concatenate([getattr(one, kind) for one in every], axis=-1)
        for kind in ("same", "other", "stranger", "compared")
    )
    verdicts = replace(every[0], same=same, other=other, stranger=stranger, compared=compared)
    return Curve(verdicts, np.concatenate([curve.chosen for curve in curves], axis=1), curves[0].seed)


def ceilings(faces: Faces, judges: Sequence[TemplateJudge], seed: int) -> list[Ceiling]:
    """Real other pictures of each person against the enrolled one, each judge alone and all together."""
    accepted, compared = ceiling_counts(faces, judges)
    benches = [([at], judge.name) for at, judge in enumerate(judges)] + [(list(range(len(judges))), ALL_JUDGES)]
    return [
        Ceiling(far=far, judge=name, other=share)
        for at, name in benches
        for number, far in enumerate(shared_fars(judges))
        if (share := people_share(accepted[at, number].sum(axis=0), compared[at].sum(axis=0), seed)) is not None
    ]


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


@lru_cache(maxsize=4)
def enrolled_weights(people: int, seed: int) -> NDArray[np.float64]:
    """(replicates, people): the same ones for every attack, so that differences are paired."""
    return identity_weights(Scheme.DOUBLE_OR_NOTHING, people, _REPLICATES, seed, "enrolled")


def people_share(accepted: Counts, compared: Counts, seed: int) -> Share | None:
    """Of (people,) counts, with an interval that resamples people; None where nothing was compared."""
    total = int(compared.sum())
    if not total:
        return None
    weights = enrolled_weights(len(compared), seed)
    values = (weights @ accepted) / np.maximum(weights @ compared, np.finfo(float).tiny)
    hits, people = int(accepted.sum()), int(np.count_nonzero(compared))
    interval = rate_interval(hits, total, Replicates(values, mirrored=True), people, _LEVEL)
    return Share.counted(hits, total, interval, people)


def _crossing(queries: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Where a curve first reaches one half; infinity where it does not."""
    reached = np.flatnonzero(shares >= 0.5)
    if not len(reached):
        return float("inf")
    at = int(reached[0])
    if at == 0:
        return float(queries[0])
    part = (0.5 - shares[at - 1]) / (shares[at] - shares[at - 1])
    return float(np.exp(np.log(queries[at - 1]) + part * np.log(queries[at] / queries[at - 1])))
