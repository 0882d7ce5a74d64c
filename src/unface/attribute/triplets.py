"""Cosines of pairs and triplets, read off the encodings of one space."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.attribute.encoding import Encodings
from unface.attribute.pairing import Pairing

_AT_ONCE = 8192


def cosine(vectors: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of rows of the vectors, index arrays of one shape: exactly 1 of a vector with itself, 0 with a vector of zeros.

    a·b / √(a·a · b·b) and not the product of two unit vectors, whose lengths are rounded.
    """
    left, right = first.reshape(-1), second.reshape(-1)
    found = np.empty(len(left))
    for start in range(0, len(left), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        a, b = vectors[left[part]].astype(np.float64), vectors[right[part]].astype(np.float64)
        ab, aa, bb = (np.einsum("nd,nd->n", x, y) for x, y in ((a, b), (a, a), (b, b)))
        length = np.sqrt(aa * bb)
        found[part] = np.divide(ab, length, where=length > 0, out=np.zeros_like(ab))
    return found.reshape(first.shape)


@dataclass(frozen=True, eq=False)
class Triplets:
    """Queries whose swap worked, by their canvases (t,)."""

    query: NDArray[np.int64]
    reference: NDArray[np.int64]
    donor: NDArray[np.int64]


def triplets_of(pairing: Pairing, encodings: Encodings) -> Triplets:
    """Those that can be compared."""
    worked = encodings.swapped[0, pairing.queries] >= 0
    return Triplets(pairing.queries[worked], pairing.references[worked], pairing.donors[worked])
