"""Erasers by the names that commands and audits use, at a given rank."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from unface.erase.class_means import ISP, LEACE, SAL, FairPCA
from unface.erase.controls import LabelFreePCA, RandomSubspace
from unface.erase.eraser import Eraser
from unface.erase.inlp import INLP
from unface.erase.keeper import Keeper
from unface.erase.rlace import RLACE
from unface.erase.utility_aware import UtilityLEACE, UtilityPCA
from unface.errors import UnfaceError
from unface.functions import registered, unknown

# The paper's 192 of 512 dimensions.
_USUAL_SHARE = 3 / 8
# 64 of 512, where a keeper found as many copies as ISP at 192 removed and leaked a third as much.
_USUALLY_KEPT = 1 / 8
USUAL_MU = 0.3

ERASERS: Mapping[str, Callable[[int], Eraser]] = {
    "isp": ISP,
    "isp-whitened": lambda rank: ISP(rank, whitened=True),
    "leace": LEACE,
    "sal": SAL,
    "inlp": INLP,
    "rlace": RLACE,
    # Most of it for class means; at unfair = rank it would be SAL.
    "fair-pca": lambda rank: FairPCA(rank, unfair=rank - rank // 4),
}
# They need the vectors of the task that is to be spared.
UTILITY_AWARE: Mapping[str, type[UtilityPCA] | type[UtilityLEACE]] = {
    "utility-pca": UtilityPCA,
    "utility-leace": UtilityLEACE,
}
KEEPER = "keeper"
"""It needs copies, or a task, and decides what stays."""
CONTROLS: Mapping[str, Callable[[int], Eraser]] = {"random": RandomSubspace, "pca": LabelFreePCA}


def make_eraser(
    name: str,
    rank: int,
    utility: NDArray[np.float32] | None = None,
    *,
    nuisance: NDArray[np.float64] | None = None,
    mu: float = USUAL_MU,
) -> Eraser:
    """Ours, a control, or what another package registered under the entry point ``unface.erasers``."""
    if name == KEEPER:
        if nuisance is None:
            raise UnfaceError(
                f"eraser {name!r} needs copies of pictures (--copies, or a column copy_of) or a task (--spare)"
            )
        if rank >= len(nuisance):
            raise UnfaceError(f"{name}: {rank} of {len(nuisance)} dimensions to remove; at least one must be kept")
        return Keeper(len(nuisance) - rank, mu=mu, nuisance=nuisance)
    if name in UTILITY_AWARE:
        if utility is None:
            raise UnfaceError(f"eraser {name!r} spares a task; give vectors of that task as --spare")
        return UTILITY_AWARE[name](rank, utility=utility)
    known = {**ERASERS, **CONTROLS}
    if name in known:
        return known[name](rank)
    others: Eraser | None = registered("eraser", name, lambda make: make(rank))
    if others is not None:
        return others
    raise unknown("eraser", name, [*ERASERS, *UTILITY_AWARE, KEEPER, *CONTROLS])


def usual_rank(dim: int, identities: int) -> int:
    """Three eighths of the dimensions, or what so many identities allow."""
    return max(1, min(round(_USUAL_SHARE * dim), identities - 1))


def usually_kept(dim: int) -> int:
    """Dimensions that a keeper releases: an eighth."""
    return max(1, round(_USUALLY_KEPT * dim))
