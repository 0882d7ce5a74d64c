"""From reconstructions to rates: judges with thresholds of other people, controls in the same terms, paired changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces import Detector
from unface.invert.ports import Ledger
from unface.judge import Recogniser, face_frames, threshold_facts
from unface.judge.template import FARS, Tally, chance, measured, picture_thresholds, tally, unit_rows
from unface.metrics import roc
from unface.pairs import all_mated, cosine_space, pair_up, sample_impostors
from unface.result.inversion import (
    EqualError,
    InversionCeiling,
    InversionChange,
    InversionJudge,
    InversionSuccess,
    Passes,
)
from unface.result.numbers import Estimate, Interval, Rate
from unface.result.validation import ALL_JUDGES
from unface.result.words import rate
from unface.score import Draws, Measured, Threshold, rate_at
from unface.seeds import stream
from unface.threads import one_blas_thread, parallel_map


@dataclass(frozen=True, eq=False)
class People:
    """The targets: all their pictures, one of each person attacked."""

    identities: NDArray[np.int64]
    """(N,) codes 0 … n − 1 of the pictures."""
    rows: NDArray[np.int64]
    """(n,) the attacked picture of each person."""
    vectors: NDArray[np.float32]
    """(N, d) unit vectors of the attacked encoder, before any projection."""
    seen: Mapping[str, NDArray[np.float32]]
    """By judge: (N, d') unit vectors; zeros where it found no face. The attacked pictures have one."""

    def __post_init__(self) -> None:
        for name, vectors in self.seen.items():
            if not vectors[self.rows].any(axis=1).all():
                raise UnfaceError(f"judge {name!r}: finds no face on an attacked picture; choose another picture")

    def between(self, start: int, stop: int) -> "People":
        """Some people, with codes from 0 on."""
        kept = (self.identities >= start) & (self.identities < stop)
        place = np.cumsum(kept) - 1
        return People(
            self.identities[kept] - start,
            place[self.rows[start:stop]],
            self.vectors[kept],
            {name: vectors[kept] for name, vectors in self.seen.items()},
        )


@dataclass(frozen=True, eq=False)
class Juror:
    """A judge with the thresholds that calibrate people set."""

    name: str
    thresholds: tuple[Threshold, ...]
    equal_error: EqualError | None
    independent: bool = True

    @classmethod
    def calibrated(
        cls,
        name: str,
        vectors: NDArray[np.float32],
        people: NDArray[np.int64],
        *,
        independent: bool = True,
        threads: int | None = None,
    ) -> "Juror":
        """From its (n, d) unit vectors of calibrate people, coded alike for every judge; rows of zeros show no face."""
        there = vectors.any(axis=1)
        kept, codes = vectors[there], np.unique(people[there], return_inverse=True)[1].astype(np.int64)
        everybody = np.unique(people, return_inverse=True)[1].astype(np.int64)
        thresholds = picture_thresholds(vectors, everybody, FARS, threads=threads)
        if not thresholds:
            raise UnfaceError(
                f"judge {name!r}: {len(kept):,} pictures of calibrate people do not resolve FAR {rate(max(FARS))}; "
                "give more people"
            )
        with one_blas_thread():
            return cls(name, thresholds, equal_error_point(kept, codes), independent)

    def at(self, fars: Sequence[float | None]) -> list[Threshold]:
        """Thresholds at these rates; None is the paper's, of equal errors, whose noise intervals leave out."""
        known: dict[float | None, Threshold] = {one.far: one for one in self.thresholds}
        if self.equal_error is not None:
            known[None] = Threshold.known(self.equal_error.far, self.equal_error.cosine)
        return [known[far] for far in fars]

    def facts(self) -> InversionJudge:
        """As the file has it."""
        return InversionJudge(
            name=self.name,
            independent=self.independent,
            thresholds=[threshold_facts(one) for one in self.thresholds],
            equal_error=self.equal_error,
        )


def equal_error_point(vectors: NDArray[np.float32], people: NDArray[np.int64]) -> EqualError | None:
    """The paper's "minimum EER" threshold; None where nobody has two pictures."""
    pairing = pair_up(cosine_space(np.ascontiguousarray(vectors)), people)
    mated = all_mated(pairing).scores
    if not len(mated):
        return None
    points = roc(mated, sample_impostors(pairing))
    at = int(np.abs(points.far - points.frr).argmin())
    far, frr = float(points.far[at]), float(points.frr[at])
    return EqualError(rate=(far + frr) / 2, cosine=float(points.thresholds[at]), far=far)


def shared_fars(jury: Sequence[Juror]) -> list[float | None]:
    """Rates that every judge has a threshold for, falling; then None, the EER threshold."""
    rates = set.intersection(*({one.far for one in juror.thresholds} for juror in jury))
    paper: list[float | None] = [None] if all(juror.equal_error is not None for juror in jury) else []
    return [*sorted(rates, reverse=True), *paper]


def embed_faces(
    pictures: NDArray[np.uint8], recognisers: Mapping[str, Recogniser], detector: Detector
) -> dict[str, NDArray[np.float32]]:
    """By recogniser: (n, d) unit vectors of the main faces of RGB pictures (n, h, w, 3); zeros where there is none."""
    wanted = [recogniser.wanted for recogniser in recognisers.values()]
    frames = parallel_map(lambda picture: face_frames(picture, detector, wanted), pictures)
    has_face = [at for at, frame in enumerate(frames) if frame is not None]
    made = {}
    for number, (name, recogniser) in enumerate(recognisers.items()):
        vectors = np.zeros((len(pictures), recogniser.space.dim), np.float32)
        if has_face:
            vectors[has_face] = recogniser.embed([frame[number] for frame in frames if frame is not None])
        made[name] = vectors
    return made


@dataclass(frozen=True, eq=False)
class Judged:
    """One set of faces or templates, as each judge sees it."""

    fars: tuple[float | None, ...]
    by: Mapping[str, Tally]

    @classmethod
    def of(cls, made: Mapping[str, NDArray[np.floating]], people: People, jury: Sequence[Juror]) -> "Judged":
        """``made`` by judge: (n, d') vectors of what was reconstructed of each target; zeros where it saw no face."""
        fars, tallies = shared_fars(jury), {}
        for juror in jury:
            vectors = people.seen[juror.name]
            there = vectors.any(axis=1)
            rows = (np.cumsum(there) - 1)[people.rows]
            blank = np.where(made[juror.name].any(axis=1, keepdims=True), made[juror.name], np.nan)
            tallies[juror.name] = tally(blank, rows, vectors[there], people.identities[there], juror.at(fars))
        return cls(tuple(fars), tallies)

    @property
    def benches(self) -> dict[str, list[Tally]]:
        """Each judge alone where there are several, then all together, whose rates are means over judges."""
        alone = {name: [found] for name, found in self.by.items()} if len(self.by) > 1 else {}
        return {**alone, ALL_JUDGES: list(self.by.values())}

    def measured(self, kind: str, at: int) -> Measured | None:
        """By all judges, at rate number ``at``."""
        return measured(list(self.by.values()), kind, at)

    def gained(self, far: float, people: NDArray[np.bool_]) -> float:
        """How often some people are matched, by all judges: other pictures first, the attacked one among equals."""
        shares = []
        for kind in ("other", "same"):
            parts = [(getattr(one, kind).of(people), one.thresholds[self.fars.index(far)]) for one in self.by.values()]
            compared = sum(len(mated.scores) for mated, _ in parts)
            accepted = sum(int(mated.accepts(threshold.cosine).sum()) for mated, threshold in parts)
            shares.append(accepted / max(compared, 1))
        return shares[0] + 1e-3 * shares[1]

    def with_half_of(self, other: "Judged", far: float, mine: NDArray[np.bool_]) -> InversionSuccess:
        """By all judges: of some people these reconstructions, of everybody else the other ones."""
        sides = [
            (tally, tally.thresholds[judged.fars.index(far)], judged.fars.index(far), people)
            for judged, people in ((self, mine), (other, ~mine))
            for tally in judged.by.values()
        ]
        shares = []
        for kind in ("same", "other"):
            parts = [(getattr(tally, kind).of(people), threshold) for tally, threshold, _, people in sides]
            shares.append(rate_at(parts, Draws()).share if any(len(mated.scores) for mated, _ in parts) else None)
        same, others = shares
        assert same is not None, "every target has its picture"
        strangers = sum(int(tally.stranger[at, people].sum()) for tally, _, at, people in sides)
        compared = sum(int(tally.stranger_of[people].sum()) for tally, _, _, people in sides)
        chance_of = Rate.counted(strangers, compared)
        return InversionSuccess(far=far, judge=ALL_JUDGES, same=same, other=others, derangement=chance_of)

    def success(self) -> list[InversionSuccess]:
        """At every rate, by every bench of judges."""
        found = []
        for judge, bench in self.benches.items():
            for at, far in enumerate(self.fars):
                same, other = (measured(bench, kind, at) for kind in ("same", "other"))
                assert same is not None, "every target has its picture"
                found.append(
                    InversionSuccess(
                        far=far,
                        judge=judge,
                        same=same.share,
                        other=None if other is None else other.share,
                        derangement=chance(bench, at),
                    )
                )
        return found

    def ceiling(self) -> list[InversionCeiling]:
        """Of the attacked pictures themselves: how often other pictures of the person match them."""
        return [
            InversionCeiling(far=far, judge=judge, other=other.share)
            for judge, bench in self.benches.items()
            for at, far in enumerate(self.fars)
            if (other := measured(bench, "other", at)) is not None
        ]


def changes(attack: str, space: str, raw: Judged, erased: Judged) -> list[InversionChange]:
    """Raw less erased by all judges; the same targets and calibrate people are drawn anew on both sides."""
    found = []
    for at, far in enumerate(raw.fars):
        pairs = [(raw.measured(kind, at), erased.measured(kind, at)) for kind in ("same", "other")]
        same, other = (
            None if before is None or after is None else Estimate.within(*before.less(after)) for before, after in pairs
        )
        assert same is not None, "every target has its picture"
        found.append(InversionChange(attack=attack, space=space, far=far, same=same, other=other))
    return found


def median(values: NDArray[np.floating]) -> Estimate | None:
    """Over targets, who are resampled for the interval; None where there is no value."""
    known = np.asarray(values, np.float64)[np.isfinite(values)]
    if not len(known):
        return None
    draws = stream(0, "invert", "median").integers(0, len(known), (1000, len(known)))
    low, high = np.quantile(np.median(known[draws], axis=1), (0.025, 0.975))
    value = float(np.median(known))
    return Estimate.within(value, Interval(min(float(low), value), max(float(high), value), 0.95))


def real_cosines(released: NDArray[np.float32], people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) mean cosines with the target: of the person's other pictures (NaN without any), and of strangers'.

    ``released`` (N, d) are the store's vectors of all pictures.
    """
    unit = unit_rows(released)
    cosines = unit[people.rows] @ unit.T
    mine = people.identities[people.rows][:, None] == people.identities
    others = mine.copy()
    others[np.arange(len(people.rows)), people.rows] = False
    with np.errstate(invalid="ignore"):
        second = np.where(others, cosines, 0).sum(axis=1) / others.sum(axis=1)
    return second, np.where(mine, 0, cosines).sum(axis=1) / (~mine).sum(axis=1)


def passes(ledger: Ledger, targets: int = 1) -> Passes:
    """A ledger as the file has it, for one of so many targets."""
    each = {name.replace(" ", "_"): number / targets for name, number in ledger.passes.items()}
    return Passes(**each, seconds=ledger.seconds / targets)
