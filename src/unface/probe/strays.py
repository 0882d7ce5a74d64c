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
    """Pictures as like another identity's mean as most of that identity's own, and like their own as strangers are.

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
        usual, strangers = _usual(own, codes, len(sizes)), _strangers(unit, codes, means)
        found = []
        for start in range(0, len(unit), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            like = unit[rows] @ means.T
            like[np.arange(len(like)), codes[rows]] = -np.inf
            home = own[rows] < strangers.most
            at, other = np.nonzero((like >= np.maximum(usual, strangers.never)[None, :]) & home[:, None])
            found += [(start + int(i), int(j)) for i, j in zip(at, other, strict=True)]
    names, ids = embeddings.names, embeddings.ids
    return tuple(Stray(str(ids[row]), names[codes[row]], names[other]) for row, other in found)


@dataclass(frozen=True)
class _Strangers:
    most: float
    """Nine in ten strangers are less like an identity's mean than this …"""
    never: float
    """… and with a probability of ``_FALSE_ALARM`` not one of all of them is more like it than this."""


def _strangers(unit: NDArray[np.float64], codes: NDArray[np.int64], means: NDArray[np.float64]) -> _Strangers:
    some = np.unique(np.linspace(0, len(unit) - 1, min(len(unit), _ROWS_AT_ONCE)).astype(np.int64))
    like = unit[some] @ means.T
    others = like[np.arange(len(means))[None, :] != codes[some, None]]
    centre = float(np.median(others))
    spread = 1.4826 * float(np.median(np.abs(others - centre)))
    # scaled up where the upper tail is heavier than a Gaussian's
    ninety_nine = float(np.quantile(others, 0.99))
    spread = max(spread, (ninety_nine - centre) / float(ndtri(0.99)))
    never = centre - float(ndtri(_FALSE_ALARM / (len(unit) * len(means)))) * spread
    return _Strangers(float(np.quantile(others, 0.9)), never)


def _usual(values: NDArray[np.float64], codes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """What four in five of each identity's values reach; infinite where there is but one."""
    order = np.lexsort((values, codes))
    sizes = np.bincount(codes, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.where(sizes > 1, values[order][starts + (sizes - 1) // 5], np.inf)
