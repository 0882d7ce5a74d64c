"""Same-shoot pairs: how much of the TAR is the same backdrop and clothes rather than the same person elsewhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Interval, effective_trials, rate_interval
from unface.probe.kshot import RoleRows
from unface.probe.measure import Bootstrap
from unface.probe.trial import Trial
from unface.seeds import stream

_SAMPLED_IMPOSTORS = 200_000
_QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_MATED_QUANTILES = tuple(number / 50 for number in range(1, 50))
_LEFT_OUT = (0.9, 0.99, 0.999)
_PAIRS_AT_ONCE = 65_536
_OF_A_PAIR = ("identities", "scores")


class Context(Protocol):
    """Similarity of two pictures' surroundings, by something other than the audited space."""

    @property
    def name(self) -> str:
        """Where it comes from."""
        ...

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of the pairs (p, 2) of rows; NaN where it is not known."""
        ...


@dataclass(frozen=True, eq=False)
class GroupContext:
    """A group or session column: pictures of one group share their surroundings; a code below 0 means unknown."""

    name: str
    codes: NDArray[np.int64]

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        first, second = self.codes[rows[:, 0]], self.codes[rows[:, 1]]
        return np.where((first < 0) | (second < 0), np.nan, (first == second).astype(np.float64))


@dataclass(frozen=True, eq=False)
class SignatureContext:
    """A vector that describes each picture's surroundings, (n, c); similarity is the correlation of two of them.

    A vector that is constant or not finite says nothing.
    """

    name: str
    signatures: NDArray[np.float32]

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        centred = self.signatures - self.signatures.mean(axis=1, keepdims=True, dtype=np.float64)
        length = np.linalg.norm(centred, axis=1, keepdims=True)
        length[~(length > 0)] = np.nan
        return np.asarray(centred / length, dtype=np.float32)

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        directions, found = self._directions, np.empty(len(rows))
        for start in range(0, len(rows), _PAIRS_AT_ONCE):
            chunk = slice(start, start + _PAIRS_AT_ONCE)
            first, second = rows[chunk].T
            found[chunk] = np.einsum("pc,pc->p", directions[first], directions[second])
        return found


@dataclass(frozen=True)
class LeftOut:
    """TAR without mated pairs whose context similarity exceeds a threshold."""

    similarity: float
    accepted: int
    mated: int


@dataclass(frozen=True)
class Apart:
    """Mated pairs of two groups, such as two photo shoots: how many, and how many are accepted."""

    accepted: int
    mated: int
    people: int
    interval: Interval
    effective_n: float


@dataclass(frozen=True)
class ContextAdjusted:
    """TAR with mated pairs reweighted so that their context similarity is distributed as that of impostors."""

    value: float | None
    """None where no mated pair is like any impostor pair in context."""
    interval: Interval
    overlap: float
    """Share of the impostors' context distribution that any mated pair falls into; low means nothing to compare."""
    effective_pairs: float
    unknown: float
    """Share of mated pairs whose context is not known; they are left out."""
    suspects: int
    """Accepted mated pairs whose surroundings are the same, or more alike than those of 99.9 % of impostor pairs."""
    accepted: int
    """Accepted mated pairs whose context is known."""
    left_out: tuple[LeftOut, ...]
    apart: Apart | None
    """None where the context is no column of groups, or no mated pair is of two of them."""


def adjust_for_context(
    trial: Trial, far: float, context: Context, test: RoleRows, bootstrap: Bootstrap, seed: int
) -> ContextAdjusted | None:
    """Context-adjusted TAR of one trial at one rate; the threshold stays as it is. None where no context is known."""
    scores = np.concatenate([part.scores for part in trial.mated])
    mated = context.similarity(np.concatenate([part.rows for part in trial.mated]))
    impostor = context.similarity(_impostor_sample(test, seed))
    impostor, known = impostor[~np.isnan(impostor)], ~np.isnan(mated)
    if not len(impostor) or not known.any():
        return None
    weights = np.zeros(len(mated))
    weights[known], overlap = pair_weights(mated[known], impostor)
    accepted = (scores >= trial.thresholds[far]) & known
    total, hits = float(weights.sum()), float(weights[accepted].sum())
    interval = Interval(0.0, 1.0, bootstrap.level)
    if total:
        interval = rate_interval(hits, total, bootstrap.tar(trial, far, weights), trial.identities, bootstrap.level)
    suspect = (mated > np.quantile(impostor, _LEFT_OUT[-1])) | (mated >= 1)
    cuts = np.unique(np.quantile(impostor, _LEFT_OUT))
    return ContextAdjusted(
        value=hits / total if total else None,
        interval=interval,
        overlap=overlap,
        effective_pairs=total**2 / float((weights**2).sum()) if total else 0.0,
        unknown=1 - float(known.mean()),
        suspects=int(np.count_nonzero(accepted & suspect)),
        accepted=int(np.count_nonzero(accepted)),
        left_out=tuple(left for cut in cuts if (left := _left_out(float(cut), mated, accepted)).mated),
        apart=_apart(trial, far, known & (mated == 0), bootstrap) if isinstance(context, GroupContext) else None,
    )


def pair_weights(mated: NDArray[np.float64], impostor: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights that give mated pairs the impostors' distribution over bins of context similarity, and the overlap.

    Inside a bin mated pairs keep their own distribution. Most of them lie in the last few per cent of the impostors',
    so that bins of impostors alone are too wide there: a TAR that is all shoot would read twice the target.
    """
    edges = np.unique(np.concatenate([np.quantile(impostor, _QUANTILES), np.quantile(mated, _MATED_QUANTILES)]))
    mated_bin, impostor_bin = (np.searchsorted(edges, values, side="left") for values in (mated, impostor))
    bins = len(edges) + 1
    mated_share = np.bincount(mated_bin, minlength=bins) / len(mated)
    impostor_share = np.bincount(impostor_bin, minlength=bins) / len(impostor)
    ratio = np.divide(impostor_share, mated_share, out=np.zeros(bins), where=mated_share > 0)
    return ratio[mated_bin], float(impostor_share[mated_share > 0].sum())


def _apart(trial: Trial, far: float, apart: NDArray[np.bool_], bootstrap: Bootstrap) -> Apart | None:
    mated = int(np.count_nonzero(apart))
    if not mated:
        return None
    identities, scores = (np.concatenate([getattr(part, name) for part in trial.mated]) for name in _OF_A_PAIR)
    accepted = int(np.count_nonzero(scores[apart] >= trial.thresholds[far]))
    people = len(np.unique(identities[apart]))
    replicates = bootstrap.tar(trial, far, apart.astype(np.float64))
    interval = rate_interval(accepted, mated, replicates, people, bootstrap.level)
    effective = effective_trials(accepted / mated, replicates.variance(), people, mated)
    return Apart(accepted, mated, people, interval, effective)


def _left_out(cut: float, similarity: NDArray[np.float64], accepted: NDArray[np.bool_]) -> LeftOut:
    kept = similarity <= cut
    return LeftOut(cut, int(np.count_nonzero(accepted & kept)), int(np.count_nonzero(kept)))


def _impostor_sample(test: RoleRows, seed: int) -> NDArray[np.int64]:
    rng = stream(seed, "context impostors")
    i, j = rng.integers(0, len(test.rows), size=(2, _SAMPLED_IMPOSTORS))
    different = test.identities[i] != test.identities[j]
    return np.stack([test.rows[i[different]], test.rows[j[different]]], axis=1)
