"""How alike two projections are, beside how alike two random ones of their ranks would be."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.erase.projection import Projection
from unface.errors import UnfaceError


@dataclass(frozen=True, eq=False)
class PrincipalCosines:
    """Cosines of the principal angles between what two projections remove, falling; and the largest by chance."""

    values: NDArray[np.float64]
    chance: float
    """Where the largest cosine of two random subspaces of these ranks concentrates; 1 says that dimensions alone
    force them to meet."""


def principal_cosines(a: Projection, b: Projection) -> PrincipalCosines:
    """All cosines σ(U_AᵀU_B); neither projection's encoder matters, only its dimensions."""
    if a.dim != b.dim:
        raise UnfaceError(f"principal cosines: {a.dim} and {b.dim} dimensions; both projections need the same number")
    if not a.rank or not b.rank:
        raise UnfaceError(f"principal cosines: ranks {a.rank} and {b.rank}; expected at least 1")
    overlap = a.directions.T @ b.directions
    values = np.minimum(np.linalg.svd(overlap, compute_uv=False), 1.0)
    return PrincipalCosines(values, chance_cosine(a.rank, b.rank, a.dim))


def chance_cosine(first: int, second: int, dim: int) -> float:
    """The upper edge of the Jacobi ensemble; for equal ranks its square is 4p(1 − p), p = r/d (Johnstone 2008)."""
    p, q = first / dim, second / dim
    if p + q >= 1:
        return 1.0
    return math.sqrt(p * (1 - q)) + math.sqrt(q * (1 - p))
