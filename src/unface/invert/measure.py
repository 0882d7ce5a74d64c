"""From reconstructions to rates: judges with thresholds of other people, controls in the same terms, paired changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces import Detector
from unface.invert.ports import Ledger
from unface.judge import Recogniser, Threshold, face_frames
from unface.judge.template import FARS, Tally, tally, template_thresholds, unit_rows
from unface.metrics import Replicates, Scheme, identity_weights, paired_interval, roc
from unface.pairs import all_mated, cosine_space, pair_up, sample_impostors
from unface.result.inversion import (
    EqualError,
    InversionCeiling,
    InversionChange,
    InversionJudge,
    InversionSuccess,
    Passes,
)
from unface.result.numbers import Estimate, Interval
from unface.result.validation import ALL_JUDGES
from unface.result.words import rate
from unface.seeds import stream
from unface.threads import one_blas_thread, parallel_map

_REPLICATES = 2000


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
        """From its (n, d) unit vectors of calibrate people; rows of zeros (no face) are left out."""
        there = vectors.any(axis=1)
        kept, codes = vectors[there], np.unique(people[there], return_inverse=True)[1].astype(np.int64)
        thresholds = template_thresholds(kept, codes, FARS, threads=threads)
        if not thresholds:
            raise UnfaceError(
                f"judge {name!r}: {len(kept):,} pictures of calibrate people do not resolve FAR {rate(max(FARS))}; "
                "give more people"
            )
        with one_blas_thread():
            return cls(name, thresholds, equal_error_point(kept, codes), independent)

    def cosines(self, fars: Sequence[float | None]) -> list[float]:
        """At these rates; None is the EER threshold."""
        known: dict[float | None, float] = {one.far: one.cosine for one in self.thresholds}
        if self.equal_error is not None:
            known[None] = self.equal_error.cosine
        return [known[far] for far in fars]

    def facts(self) -> InversionJudge:
        """As the file has it."""
        return InversionJudge(
            name=self.name,
            independent=self.independent,
            thresholds=[one.facts() for one in self.thresholds],
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
    """Accepted comparisons of one set of faces or templates, by judge and over all of them."""

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
            tallies[juror.name] = tally(blank, rows, vectors[there], people.identities[there], juror.cosines(fars))
        return cls(tuple(fars), tallies)

    @property
    def all(self) -> Tally:
        """Rates of this are means over judges."""
        first, *others = self.by.values()
        return sum(others, first)

    def success(self) -> list[InversionSuccess]:
        """Each judge alone where there are several, then all together."""
        benches = {**(self.by if len(self.by) > 1 else {}), ALL_JUDGES: self.all}
        return [
            InversionSuccess(
                far=far,
                judge=judge,
                same=found.share("same", at),
                other=found.share("other", at) if found.other_of.sum() else None,
                derangement=found.chance(at),
            )
            for judge, found in benches.items()
            for at, far in enumerate(self.fars)
        ]

    def ceiling(self) -> list[InversionCeiling]:
        """Of the attacked pictures themselves: how often other pictures of the person match them."""
        benches = {**(self.by if len(self.by) > 1 else {}), ALL_JUDGES: self.all}
        return [
            InversionCeiling(far=far, judge=judge, other=found.share("other", at))
            for judge, found in benches.items()
            if found.other_of.sum()
            for at, far in enumerate(self.fars)
        ]


def changes(attack: str, space: str, raw: Judged, erased: Judged) -> list[InversionChange]:
    """Raw less erased by all judges; the same targets are resampled on both sides."""
    return [
        InversionChange(
            attack=attack,
            space=space,
            far=far,
            same=_less(raw.all, erased.all, "same", at),
            other=_less(raw.all, erased.all, "other", at) if raw.all.other_of.sum() else None,
        )
        for at, far in enumerate(raw.fars)
    ]


def _less(raw: Tally, erased: Tally, kind: str, at: int) -> Estimate:
    accepted = getattr(raw, kind)[at] - getattr(erased, kind)[at]
    compared = getattr(raw, f"{kind}_of")
    weights = target_weights(len(compared))
    values = (weights @ accepted) / np.maximum(weights @ compared, np.finfo(float).tiny)
    people = int(np.count_nonzero(compared))
    ends = paired_interval(accepted / compared.sum(), Replicates(values, mirrored=True), people)
    return Estimate.within(float(accepted.sum() / compared.sum()), ends)


def target_weights(count: int) -> NDArray[np.float64]:
    """(replicates, targets): the same that shares are resampled with."""
    return identity_weights(Scheme.DOUBLE_OR_NOTHING, count, _REPLICATES, 0, "templates")


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
