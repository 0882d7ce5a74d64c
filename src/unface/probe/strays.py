"""Pictures that seem to be under the wrong name: like another identity's own, and not like their own identity's."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from unface.data import EmbeddingSet
from unface.threads import one_blas_thread

_FALSE_ALARM = 1e-3
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Stray:
    """A picture, whose it is said to be, and whose it seems to be."""

    id: str
    identity: str
    resembles: str


def strays(embeddings: EmbeddingSet) -> tuple[Stray, ...]:
    """Pictures as like another identity's mean as most of that identity's own, and like their own as a stranger may be.

    One such picture makes an impostor pair with every picture of the person it shows; a handful set the threshold.
    """
    unit = embeddings.unit().vectors.astype(np.float64)
    unit -= unit.mean(axis=0)
    codes, sizes = embeddings.identities, np.bincount(embeddings.identities)
    sums = np.zeros((len(sizes), unit.shape[1]))
    np.add.at(sums, codes, unit)
    means = sums / sizes[:, None]
    with one_blas_thread():
        # without the picture itself, which would resemble its own mean by being in it
        own = np.einsum("nd,nd->n", unit, (sums[codes] - unit) / np.maximum(sizes[codes] - 1, 1)[:, None])
        usual, never = _usual(own, codes, len(sizes)), _never_among_strangers(unit, codes, means)
        found = []
        for start in range(0, len(unit), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            like = unit[rows] @ means.T
            like[np.arange(len(like)), codes[rows]] = -np.inf
            lost = (own[rows] <= usual[codes[rows]]) & (own[rows] < never)
            alike = np.argwhere((like >= np.maximum(usual, never)) & lost[:, None])
            found += [(start + int(row), int(other)) for row, other in alike]
    names, ids = embeddings.names, embeddings.ids
    return tuple(Stray(str(ids[row]), names[codes[row]], names[other]) for row, other in found)


def _never_among_strangers(unit: NDArray[np.float64], codes: NDArray[np.int64], means: NDArray[np.float64]) -> float:
    """How like an identity's mean a stranger's picture is with a probability of ``_FALSE_ALARM`` among all of them."""
    some = np.unique(np.linspace(0, len(unit) - 1, min(len(unit), _ROWS_AT_ONCE)).astype(np.int64))
    like = unit[some] @ means.T
    others = like[np.arange(len(means))[None, :] != codes[some, None]]
    centre = float(np.median(others))
    spread = 1.4826 * float(np.median(np.abs(others - centre)))
    # scaled up where the upper tail is heavier than a Gaussian's
    ninety_nine = float(np.quantile(others, 0.99))
    spread = max(spread, (ninety_nine - centre) / float(ndtri(0.99)))
    return centre - float(ndtri(_FALSE_ALARM / (len(unit) * len(means)))) * spread


def _usual(values: NDArray[np.float64], codes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """What four in five of each identity's values reach; infinite where there is but one."""
    order = np.lexsort((values, codes))
    sizes = np.bincount(codes, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.where(sizes > 1, values[order][starts + (sizes - 1) // 5], np.inf)
