"""How many directions to remove: as given, or as many as hold a share of the energy."""

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError


class FitError(UnfaceError, ValueError):
    """An eraser cannot be fitted as asked; also a ValueError, which is what scikit-learn's tools look for."""


def chosen_rank(
    kind: str, spectrum: NDArray[np.float64], dim: int, identities: int, rank: int | None, energy: float | None
) -> int:
    """``energy`` decides where it is given, then ``rank``; neither means every direction there is."""
    if energy is not None:
        if not 0 < energy <= 1:
            raise FitError(f"{kind}: energy {energy:g}; expected a share of more than 0 and at most 1")
        share = np.cumsum(spectrum**2)
        return int(np.searchsorted(share, energy * share[-1] * (1 - 1e-12))) + 1 if len(share) else 0
    if rank is None:
        return len(spectrum)
    require_rank(kind, rank, dim)
    if rank > identities - 1:
        raise FitError(f"{kind}: rank {rank} with {identities} identities; expected at most {identities - 1}")
    if rank > len(spectrum):
        advice = "lower it" if len(spectrum) else "are vectors and identities the right ones?"
        raise FitError(f"{kind}: rank {rank}, but class means differ in {len(spectrum)} directions only; {advice}")
    return rank


def require_rank(kind: str, rank: int, dim: int) -> None:
    """A whole number from 0 to the number of dimensions."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise FitError(f"{kind}: rank {rank!r}; expected a whole number")
    if not 0 <= rank <= dim:
        raise FitError(f"{kind}: rank {rank} with {dim} dimensions; expected 0 to {dim}")
