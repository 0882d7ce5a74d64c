"""Made-up people with a binary attribute whose place among the dimensions is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.seeds import stream
from unface.swap import RowsOf

NUISANCE = 8
"""Dimensions in which pictures of one person differ; the attribute has the next one, the others hold identity."""


@dataclass(frozen=True, eq=False)
class People:
    """Unit vectors (n, d), identities (n,) and labels (n,); a third of the identities for each role."""

    vectors: NDArray[np.float32]
    identities: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def roles(self) -> tuple[RowsOf, RowsOf, RowsOf]:
        count = int(self.identities.max()) + 1
        train, calibrate, test = (np.flatnonzero(self.identities * 3 // count == third) for third in range(3))
        return (
            (train, self.identities[train]),
            (calibrate, self.identities[calibrate]),
            (test, self.identities[test]),
        )


def people(
    identities: int = 180,
    images: int = 6,
    dim: int = 48,
    *,
    gap: float = 0.5,
    noise: float = 0.05,
    nuisance: float = 1.0,
    offset: float = 0.0,
    seed: int = 0,
) -> People:
    """Half of the identities at −gap, half at +gap in the attribute's dimension, with so much noise between people.

    ``offset`` is common to all, in the last dimension: the larger, the less lengths differ before they are made one.
    """
    rng = stream(seed, "swap people")
    codes = np.repeat(np.arange(identities), images)
    labels = np.arange(identities) % 2
    means = np.zeros((identities, dim))
    means[:, NUISANCE] = gap * (2 * labels - 1) + noise * rng.standard_normal(identities)
    means[:, NUISANCE + 1 :] = 0.25 * rng.standard_normal((identities, dim - NUISANCE - 1))
    means[:, -1] += offset
    spread = np.full(dim, 0.01)
    spread[:NUISANCE] = nuisance / np.sqrt(NUISANCE)
    raw = means[codes] + spread * rng.standard_normal((len(codes), dim))
    return People(unit(raw), codes, labels[codes])


def unit(raw: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), np.float32)
