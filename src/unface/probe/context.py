"""Same-shoot pairs: how much of the TAR is the same backdrop and clothes rather than the same person elsewhere."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Interval, rate_interval
from unface.probe.kshot import RoleRows
from unface.probe.measure import Bootstrap
from unface.probe.trial import Trial
from unface.seeds import stream

_SAMPLED_IMPOSTORS = 200_000
_QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_LEFT_OUT = (0.9, 0.99, 0.999)


class Context(Protocol):
    """Similarity of two pictures' surroundings, by something other than the audited space."""

    @property
    def name(self) -> str:
        """Where it comes from."""
        ...

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of the pairs (p, 2) of rows."""
        ...


@dataclass(frozen=True, eq=False)
class GroupContext:
    """A group or session column: pictures of one group share their surroundings; a code below 0 means unknown."""

    name: str
    codes: NDArray[np.int64]

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        first, second = self.codes[rows[:, 0]], self.codes[rows[:, 1]]
        return np.asarray((first == second) & (first >= 0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SignatureContext:
    """A vector that describes each picture's surroundings, (n, c); similarity is the correlation of two of them."""

    name: str
    signatures: NDArray[np.float32]

    def similarity(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        centred = self.signatures - self.signatures.mean(axis=1, keepdims=True, dtype=np.float64)
        centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.finfo(float).tiny)
        return np.asarray(np.einsum("pc,pc->p", centred[rows[:, 0]], centred[rows[:, 1]]))


@dataclass(frozen=True)
class LeftOut:
    """TAR without mated pairs whose context similarity exceeds a threshold."""

    similarity: float
    accepted: int
    mated: int


@dataclass(frozen=True)
class ContextAdjusted:
    """TAR with mated pairs reweighted so that their context similarity is distributed as that of impostors."""

    value: float
    interval: Interval
    overlap: float
    """Share of the impostors' context distribution that any mated pair falls into; low means nothing to compare."""
    effective_pairs: float
    suspects: int
    """Accepted mated pairs whose surroundings are the same, or more alike than those of 99.9 % of impostor pairs."""
    left_out: tuple[LeftOut, ...]


def adjust_for_context(
    trial: Trial, far: float, context: Context, test: RoleRows, bootstrap: Bootstrap, seed: int
) -> ContextAdjusted:
    """Context-adjusted TAR of one trial at one rate; the threshold stays as it is."""
    rows = np.concatenate([part.rows for part in trial.mated])
    scores = np.concatenate([part.scores for part in trial.mated])
    mated = context.similarity(rows)
    impostor = context.similarity(_impostor_sample(test, seed))
    weights, overlap = pair_weights(mated, impostor)
    accepted = scores >= trial.thresholds[far]
    replicates = bootstrap.tar(trial, far, weights)
    total, hits = float(weights.sum()), float(weights[accepted].sum())
    suspect = (mated > np.quantile(impostor, _LEFT_OUT[-1])) | (mated >= 1)
    return ContextAdjusted(
        value=hits / total if total else 0.0,
        interval=rate_interval(hits, max(total, np.finfo(float).tiny), replicates, trial.identities, bootstrap.level),
        overlap=overlap,
        effective_pairs=total**2 / float((weights**2).sum()) if total else 0.0,
        suspects=int(np.count_nonzero(accepted & suspect)),
        left_out=tuple(_left_out(float(cut), mated, accepted) for cut in np.unique(np.quantile(impostor, _LEFT_OUT))),
    )


def pair_weights(mated: NDArray[np.float64], impostor: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights that give mated pairs the impostors' distribution over bins of context similarity, and the overlap."""
    edges = np.unique(np.quantile(impostor, _QUANTILES))
    mated_bin, impostor_bin = (np.searchsorted(edges, values, side="left") for values in (mated, impostor))
    bins = len(edges) + 1
    mated_share = np.bincount(mated_bin, minlength=bins) / len(mated)
    impostor_share = np.bincount(impostor_bin, minlength=bins) / len(impostor)
    ratio = np.divide(impostor_share, mated_share, out=np.zeros(bins), where=mated_share > 0)
    return ratio[mated_bin], float(impostor_share[mated_share > 0].sum())


def _left_out(cut: float, similarity: NDArray[np.float64], accepted: NDArray[np.bool_]) -> LeftOut:
    kept = similarity <= cut
    return LeftOut(cut, int(np.count_nonzero(accepted & kept)), int(np.count_nonzero(kept)))


def _impostor_sample(test: RoleRows, seed: int) -> NDArray[np.int64]:
    rng = stream(seed, "context impostors")
    i, j = rng.integers(0, len(test.rows), size=(2, _SAMPLED_IMPOSTORS))
    different = test.identities[i] != test.identities[j]
    return np.stack([test.rows[i[different]], test.rows[j[different]]], axis=1)
