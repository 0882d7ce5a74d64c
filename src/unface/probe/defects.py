"""What may be wrong with the labels: one picture under two identities, or one person under two names."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv

from unface.data import EmbeddingSet
from unface.pairs import Pairing, all_mated, cosine_space, impostors_above, open_screen, pair_up
from unface.threads import one_blas_thread

NEAR_DUPLICATE = 0.999
_NAMED_AT_MOST = 100_000
_FALSE_ALARM = 1e-3
_AS_ITSELF = 0.9
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class NearDuplicates:
    """Pairs of nearly the same vector: across identities (a picture under two of them), and within one."""

    cosine: float
    across: int
    within: int
    mated: int
    """Mated pairs that were looked through."""
    named: tuple[tuple[str, str, str, str], ...]
    """(id, identity, id, identity) of the pairs across identities, 100,000 of them at most."""


@dataclass(frozen=True)
class Lookalike:
    """Two identities whose pictures resemble each other as much as each resembles itself: one person, two names?"""

    first: str
    second: str
    across: float
    """Mean cosine between the two …"""
    within: float
    """… and the smaller of their own mean cosines."""


def near_duplicates(
    embeddings: EmbeddingSet, cosine: float = NEAR_DUPLICATE, *, device: str = "cpu", threads: int | None = None
) -> NearDuplicates:
    """Count pairs above a cosine; pairs across identities are named."""
    pairing = pair_up(cosine_space(embeddings.vectors), embeddings.identities)
    across = impostors_above(pairing, cosine, open_screen(pairing.space, device), threads=threads)
    named = tuple(_named(embeddings, int(a), int(b)) for a, b in across.rows[:_NAMED_AT_MOST])
    return NearDuplicates(cosine, len(across), _within(pairing, cosine), pairing.mated, named)


def lookalikes(embeddings: EmbeddingSet) -> tuple[Lookalike, ...]:
    """Identity pairs as alike as no two of so many people should be, and as alike as each is to itself."""
    unit = embeddings.unit().vectors.astype(np.float64)
    sizes = np.bincount(embeddings.identities)
    means = np.zeros((len(sizes), unit.shape[1]))
    np.add.at(means, embeddings.identities, unit)
    means /= sizes[:, None]
    centred = means - means.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1)
    directions = centred / np.maximum(lengths, np.finfo(float).tiny)[:, None]
    # what the spread of an identity's own images adds to the squared length of their mean
    own = lengths**2 - (1 - (means**2).sum(axis=1)) / np.maximum(sizes - 1, 1)
    own[sizes < 2] = np.inf
    with one_blas_thread():
        i, j = _pairs_above(directions, _unlikely_cosine(directions))
    across = np.einsum("pd,pd->p", centred[i], centred[j])
    alike = np.flatnonzero(across >= _AS_ITSELF * np.minimum(own[i], own[j]))
    return tuple(_lookalike(embeddings.names, means, sizes, int(i[at]), int(j[at])) for at in alike)


def _lookalike(
    names: tuple[str, ...], means: NDArray[np.float64], sizes: NDArray[np.int64], i: int, j: int
) -> Lookalike:
    # the mean of all cosines between two sets of unit vectors is the inner product of their means
    within = [float((means[at] @ means[at] * sizes[at] - 1) / (sizes[at] - 1)) for at in (i, j) if sizes[at] > 1]
    return Lookalike(names[i], names[j], float(means[i] @ means[j]), min(within))


def _pairs_above(directions: NDArray[np.float64], cosine: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs i < j of unit rows at least so alike, the most alike first."""
    found = []
    for start in range(0, len(directions), _ROWS_AT_ONCE):
        cosines = directions[start : start + _ROWS_AT_ONCE] @ directions.T
        i, j = np.nonzero(np.triu(cosines >= cosine, start + 1))
        found.append((i + start, j, cosines[i, j]))
    i, j, alike = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-alike, kind="stable")
    return i[order], j[order]


def _unlikely_cosine(directions: NDArray[np.float64]) -> float:
    """The cosine that any two of these directions reach with a probability of ``_FALSE_ALARM``, were they independent.

    Of two random directions in D dimensions, (1 − cosine) / 2 follows Beta((D − 1) / 2, (D − 1) / 2). D is what the
    cosines' variance says, or less where their highest hundredth is higher than that: people fill no space evenly.
    """
    count = len(directions)
    some = directions[np.unique(np.linspace(0, count - 1, min(count, _ROWS_AT_ONCE)).astype(np.int64))]
    cosines = (some @ some.T)[np.triu_indices(len(some), 1)]
    high = (1 - float(np.quantile(cosines, 0.99))) / 2

    def too_rare(dimension: float) -> float:
        return 0.01 - float(betainc((dimension - 1) / 2, (dimension - 1) / 2, high))

    dimension = max(2.0, 1 / max(float(np.mean(cosines**2)), np.finfo(float).tiny))
    if too_rare(dimension) > 0:
        dimension = brentq(too_rare, 2.0, dimension) if too_rare(2.0) < 0 else 2.0
    half = (dimension - 1) / 2
    return float(1 - 2 * betaincinv(half, half, _FALSE_ALARM / (count * (count - 1) / 2)))


def _within(pairing: Pairing, cosine: float) -> int:
    return int(np.count_nonzero(all_mated(pairing).scores >= cosine))


def _named(embeddings: EmbeddingSet, a: int, b: int) -> tuple[str, str, str, str]:
    names, codes, ids = embeddings.names, embeddings.identities, embeddings.ids
    return str(ids[a]), names[codes[a]], str(ids[b]), names[codes[b]]
