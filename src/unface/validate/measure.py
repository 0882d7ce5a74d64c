"""From what attacks recovered to rates: judged, settings chosen on other people, intervals over enrolled people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unface.result.numbers import Estimate, Interval, Share
from unface.result.validation import ALL_JUDGES, AttackResult, Ceiling, Success
from unface.score import Draws, Mated, Measured, Threshold, rate_at
from unface.seeds import stream
from unface.validate.ports import Faces, Picture, Recovered, Setting, TemplateJudge

WORST = "worst"
"""The name of the attack that is, at each number of questions, the best one of the panel on other people."""
_LEVEL = 0.95
_PEOPLE_AT_ONCE = 16
Counts = NDArray[np.int64]
Cosines = NDArray[np.float32]
ByFar = tuple[Threshold, ...]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """How alike each judge finds what an attack recovered and pictures of the person; how often strangers pass.

    ``same`` (judges, settings, queries, people) are scores with the enrolled picture; ``other`` (…, pictures) with
    further pictures, ``owners`` their people. NaN: nothing was recovered. ``compared`` says which of these pictures a
    judge sees a face on. ``stranger`` (judges, FARs, settings, queries, people) counts accepted pictures of everybody
    else, of ``strangers`` (judges, people).
    """

    judges: tuple[str, ...]
    fars: tuple[float, ...]
    settings: tuple[Setting, ...]
    queries: tuple[int, ...]
    thresholds: tuple[tuple[ByFar, ...], ...]
    """By setting and judge: of pictures for an attack that ends in one, else of templates."""
    same: Cosines
    other: Cosines
    owners: NDArray[np.int64]
    stranger: Counts
    compared: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """(judges, people) and (judges, pictures)."""
    strangers: Counts

    @property
    def people(self) -> int:
        """Enrolled people."""
        return int(self.same.shape[-1])

    def accepted(self, kind: str) -> Counts:
        """(judges, FARs, settings, queries, people) accepted comparisons, "same" or "other"."""
        scores = getattr(self, kind)
        owners, seen = (np.arange(self.people), self.compared[0]) if kind == "same" else (self.owners, self.compared[1])
        found = np.zeros((len(self.judges), len(self.fars), *scores.shape[1:3], self.people), np.int64)
        place = owners[None] == np.arange(self.people)[:, None]  # (people, pictures)
        for judge in range(len(self.judges)):
            for setting, by_judge in enumerate(self.thresholds):
                for far, threshold in enumerate(by_judge[judge]):
                    hits = (scores[judge, setting] >= np.float32(threshold.cosine)) & seen[judge]
                    found[judge, far, setting] = hits @ place.T.astype(np.int64)
        return found

    def joined(self, others: "Sequence[Verdicts]") -> "Verdicts":
        """All of them as the settings of one attack."""
        every = (self, *others)
        same, other = (np.concatenate([getattr(one, kind) for one in every], axis=1) for kind in ("same", "other"))
        return replace(
            self,
            settings=tuple(setting for one in every for setting in one.settings),
            thresholds=tuple(by_judge for one in every for by_judge in one.thresholds),
            same=same,
            other=other,
            stranger=np.concatenate([one.stranger for one in every], axis=2),
        )


def judge_recovered(
    settings: Sequence[Setting], recovered: Sequence[Recovered], faces: Faces, judges: Sequence[TemplateJudge]
) -> Verdicts:
    """``recovered`` are one attack's, of each person of ``faces`` in their order."""
    fars = shared_fars(judges)
    people, queries = len(faces.names), recovered[0].queries
    own = [faces.rows(person) for person in range(people)]
    first = np.array([rows[0] for rows in own])
    further = np.setdiff1d(np.arange(len(faces.pictures)), first)
    owners = faces.identities[further]
    shape = (len(judges), len(settings), len(queries))
    same, other = np.full((*shape, people), np.nan, np.float32), np.full((*shape, len(further)), np.nan, np.float32)
    stranger = np.zeros((len(judges), len(fars), *shape[1:], people), np.int64)
    seen = np.array([faces.vectors[judge.name].any(axis=1) for judge in judges])
    each = len(settings) * len(queries)
    drawn = any(picture is not None for found in recovered for row in found.pictures for picture in row)
    thresholds = tuple(_at(judge, fars, pictures=drawn) for judge in judges)
    for at, judge in enumerate(judges):
        for start in range(0, people, _PEOPLE_AT_ONCE):
            some = range(start, min(start + _PEOPLE_AT_ONCE, people))
            templates = np.concatenate([recovered[person].templates.reshape(each, -1) for person in some])
            pictures = [picture for person in some for picture in _pictures(recovered[person], each)]
            scores = judge.compare(templates, pictures, faces).reshape(len(some), *shape[1:], -1)
            for person, found in zip(some, scores, strict=True):
                mine = owners == person
                same[at, :, :, person] = found[..., first[person]]
                other[at][..., mine] = found[..., further[mine]]
                strangers = found[..., faces.identities != person]
                for number, threshold in enumerate(thresholds[at]):
                    stranger[at, number, :, :, person] = (strangers >= np.float32(threshold.cosine)).sum(axis=-1)
    by_person = np.array([np.bincount(faces.identities[row], minlength=people) for row in seen])
    return Verdicts(
        judges=tuple(judge.name for judge in judges),
        fars=fars,
        settings=tuple(settings),
        queries=queries,
        thresholds=(thresholds,) * len(settings),
        same=same,
        other=other,
        owners=owners,
        stranger=stranger,
        compared=(seen[:, first], seen[:, further]),
        strangers=seen.sum(axis=1, keepdims=True) - by_person,
    )


def _at(judge: TemplateJudge, fars: Sequence[float], *, pictures: bool) -> ByFar:
    """A judge's thresholds for what an attack ends in."""
    known = judge.thresholds if pictures else judge.template_thresholds
    return tuple(next(one for one in known if one.far == far) for far in fars)


def _pictures(found: Recovered, each: int) -> list[Picture | None]:
    return [picture for row in found.pictures for picture in row] or [None] * each


def shared_fars(judges: Sequence[TemplateJudge]) -> tuple[float, ...]:
    """Those that every judge has a threshold for, of pictures and of templates, falling."""
    rates = set.intersection(
        *({one.far for one in known} for judge in judges for known in (judge.thresholds, judge.template_thresholds))
    )
    return tuple(sorted(rates, reverse=True))


def chosen_settings(verdicts: Verdicts, seed: int) -> NDArray[np.int64]:
    """(queries, people): which setting counts for which person; the best one on the other half of the people.

    Best over all judges and FARs, by other pictures of the person and then by the same one; the first wins ties.
    """
    people = verdicts.people
    half = stream(seed, "validate", "halves").permutation(people) % 2
    same, other = (verdicts.accepted(kind).sum(axis=(0, 1)) for kind in ("same", "other"))
    gained = other + 1e-3 * same  # (settings, queries, people)
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

    def strangers(self, judges: list[int], far: int, query: int) -> tuple[int, int]:
        """Accepted pictures of other enrolled people, and all that were compared."""
        people = np.arange(self.verdicts.people)
        accepted = self.verdicts.stranger[:, far, self.chosen[query], query, people][judges]
        return int(accepted.sum()), int(self.verdicts.strangers[judges].sum())

    def measured(self, kind: str, judges: Sequence[int], far: int, query: int) -> Measured | None:
        """Accepted by some of the judges, "same" or "other"; None where there is nothing to compare with.

        Of each person the scores of the setting that was chosen for them, at thresholds of that setting.
        """
        key = kind, tuple(judges), far, query
        if key not in self._known:
            parts = [part for judge in judges for part in self._parts(kind, judge, far, query)]
            compared = sum(len(mated.scores) for mated, _ in parts)
            self._known[key] = rate_at(parts, self.draws) if compared else None
        return self._known[key]

    def share(self, kind: str, judges: Sequence[int], far: int, query: int) -> Share | None:
        """The same as a file has it."""
        found = self.measured(kind, judges, far, query)
        return None if found is None else found.share

    @cached_property
    def draws(self) -> Draws:
        """Of enrolled and calibrate people: the same ones for every attack, so that differences are paired."""
        return Draws(self.seed, level=_LEVEL)

    @cached_property
    def _known(self) -> dict[tuple[str, tuple[int, ...], int, int], Measured | None]:
        return {}

    def _parts(self, kind: str, judge: int, far: int, query: int) -> list[tuple[Mated, Threshold]]:
        """One for each threshold that settings of this judge have."""
        found = self.verdicts
        owners, seen = (
            (np.arange(found.people), found.compared[0]) if kind == "same" else (found.owners, found.compared[1])
        )
        chosen = self.chosen[query][owners]
        scores = getattr(found, kind)[judge, chosen, query, np.arange(len(owners))]
        limits = [by_judge[judge][far] for by_judge in found.thresholds]
        distinct = list(dict.fromkeys(limits))
        which = np.array([distinct.index(one) for one in limits])[chosen]
        parts = []
        for number, threshold in enumerate(distinct):
            rows = seen[judge] & (which == number)
            parts.append((Mated(owners[rows], scores[rows], found.people, "enrolled"), threshold))
        return parts

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
        everybody = range(len(self.verdicts.judges))
        found = [self.measured("other", everybody, at, query) for query in range(len(queries))]
        curve = [one for one in found if one is not None]
        if not curve:
            return None, ""
        value = _crossing(queries, np.array([one.value for one in curve]))
        ends = np.array([_crossing(queries, drawn) for drawn in np.stack([one.replicates.values for one in curve], 1)])
        low, high = np.quantile(ends, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2), method="nearest")
        if not np.isfinite(value):
            often = float(np.isfinite(ends).mean())
            return None, f"reached in {100 * often:.0f} % of resamples" if often > (1 - _LEVEL) / 2 else ""
        note = "" if np.isfinite(high) else f"the upper end is beyond {int(queries[-1])} questions"
        if value <= queries[0]:
            note = "already at the smallest number that was tried"
        return Estimate.within(value, Interval(min(low, value), min(high, queries[-1]), _LEVEL)), note

    def _benches(self) -> list[tuple[list[int], str]]:
        names = self.verdicts.judges
        return [([at], name) for at, name in enumerate(names)] + [(list(range(len(names))), ALL_JUDGES)]

    def _success(self, judges: list[int], name: str, far: int, query: int, attacks: Sequence[str]) -> Success:
        strangers, compared = self.strangers(judges, far, query)
        return Success(
            queries=self.verdicts.queries[query],
            far=self.verdicts.fars[far],
            judge=name,
            same=self.share("same", judges, far, query),
            other=self.share("other", judges, far, query),
            chance=strangers / max(compared, 1),
            attacks=sorted({attacks[number] for number in self.chosen[query]}) if attacks else [],
        )


def worst_curve(panel: Sequence[Verdicts], seed: int) -> Curve:
    """At each number of questions the attack and setting that are best on other people."""
    return Curve.of(panel[0].joined(panel[1:]), seed)


def pooled(curves: Sequence[Curve]) -> Curve:
    """The same attack on other people each time, as one; everybody keeps their setting and its thresholds."""
    every = [curve.verdicts for curve in curves]
    people, settings = (
        np.cumsum([0, *sizes]) for sizes in zip(*((one.people, len(one.settings)) for one in every), strict=True)
    )

    def apart(kind: str, axis: int) -> NDArray[Any]:
        """Settings of one set of people beside those of the next; what belongs to none of them is 0."""
        parts = [getattr(one, kind) for one in every]
        whole = np.concatenate([np.repeat(part[..., :1, :, :] * 0, settings[-1], axis=axis) for part in parts], axis=-1)
        ends = np.cumsum([0, *(part.shape[-1] for part in parts)])
        for number, part in enumerate(parts):
            whole[..., settings[number] : settings[number + 1], :, ends[number] : ends[number + 1]] = part
        return whole

    verdicts = replace(
        every[0],
        settings=tuple(setting for one in every for setting in one.settings),
        thresholds=tuple(by_judge for one in every for by_judge in one.thresholds),
        same=apart("same", 1),
        other=apart("other", 1),
        owners=np.concatenate([one.owners + start for one, start in zip(every, people, strict=False)]),
        stranger=apart("stranger", 2),
        compared=(
            np.concatenate([one.compared[0] for one in every], axis=-1),
            np.concatenate([one.compared[1] for one in every], axis=-1),
        ),
        strangers=np.concatenate([one.strangers for one in every], axis=-1),
    )
    chosen = [curve.chosen + start for curve, start in zip(curves, settings, strict=False)]
    return Curve(verdicts, np.concatenate(chosen, axis=1), curves[0].seed)


def ceilings(faces: Faces, judges: Sequence[TemplateJudge], seed: int) -> list[Ceiling]:
    """Real other pictures of each person against the enrolled one, each judge alone and all together."""
    fars, people = shared_fars(judges), len(faces.names)
    first = np.array([faces.rows(person)[0] for person in range(people)])
    further = np.setdiff1d(np.arange(len(faces.pictures)), first)
    owners = faces.identities[further]
    mated = []
    for judge in judges:
        scores = judge.compare_pictures(faces)[first[owners], further]
        seen = np.isfinite(scores)
        mated.append(Mated(owners[seen], scores[seen], people, "enrolled"))
    benches = [([at], judge.name) for at, judge in enumerate(judges)] + [(list(range(len(judges))), ALL_JUDGES)]
    found = []
    for bench, name in benches:
        for number, far in enumerate(fars):
            parts = [(mated[at], _at(judges[at], fars, pictures=True)[number]) for at in bench]
            if any(len(one.scores) for one, _ in parts):
                other = rate_at(parts, Draws(seed, level=_LEVEL)).share
                found.append(Ceiling(far=far, judge=name, other=other))
    return found


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
