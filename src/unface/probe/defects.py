"""What may be wrong with the labels: one picture under two identities, one person under two names, labels at random."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet
from unface.pairs import Pairing, all_mated, cosine_space, impostors_above, open_screen, pair_up

NEAR_DUPLICATE = 0.999
_OUTLIER = 6.0
_NAMED_AT_MOST = 20


@dataclass(frozen=True)
class NearDuplicates:
    """Pairs of nearly the same vector: across identities (a picture under two of them), and within one."""

    cosine: float
    across: int
    within: int
    named: tuple[tuple[str, str, str, str], ...]
    """(id, identity, id, identity) of the first few pairs across identities."""


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
    return NearDuplicates(cosine, len(across), _within(pairing, cosine), named)


def lookalikes(embeddings: EmbeddingSet) -> tuple[Lookalike, ...]:
    """Identity pairs that stand out from all others and reach their own mean similarity."""
    unit = embeddings.unit().vectors.astype(np.float64)
    sizes = np.bincount(embeddings.identities)
    means = np.zeros((len(sizes), unit.shape[1]))
    np.add.at(means, embeddings.identities, unit)
    means /= sizes[:, None]
    # the mean of all cosines between two sets of unit vectors is the inner product of their means
    across = means @ means.T
    own = (np.diag(across) * sizes - 1) / np.maximum(sizes - 1, 1)
    own[sizes < 2] = np.inf
    i, j = np.triu_indices(len(sizes), 1)
    between, within = across[i, j], np.minimum(own[i], own[j])
    found = np.flatnonzero((between >= 0.9 * within) & (_robust_z(between) > _OUTLIER))
    found = found[np.argsort(-between[found], kind="stable")][:_NAMED_AT_MOST]
    names = embeddings.names
    return tuple(Lookalike(names[i[at]], names[j[at]], float(between[at]), float(within[at])) for at in found)


def _within(pairing: Pairing, cosine: float) -> int:
    return int(np.count_nonzero(all_mated(pairing).scores >= cosine))


def _named(embeddings: EmbeddingSet, a: int, b: int) -> tuple[str, str, str, str]:
    names, codes, ids = embeddings.names, embeddings.identities, embeddings.ids
    return str(ids[a]), names[codes[a]], str(ids[b]), names[codes[b]]


def _robust_z(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centre = np.median(values)
    spread = 1.4826 * np.median(np.abs(values - centre))
    return np.asarray((values - centre) / max(spread, np.finfo(float).tiny))
