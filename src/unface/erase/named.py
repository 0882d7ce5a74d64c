"""Erasers by the names that commands and audits use, at a given rank."""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

import numpy as np
from numpy.typing import NDArray

from unface.erase.class_means import ISP, LEACE, SAL, FairPCA
from unface.erase.controls import LabelFreePCA, RandomSubspace
from unface.erase.eraser import Eraser
from unface.erase.inlp import INLP
from unface.erase.rlace import RLACE
from unface.erase.utility_aware import UtilityLEACE, UtilityPCA
from unface.errors import UnfaceError

# The paper's 192 of 512 dimensions.
_USUAL_SHARE = 3 / 8

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
CONTROLS: Mapping[str, Callable[[int], Eraser]] = {"random": RandomSubspace, "pca": LabelFreePCA}


def make_eraser(name: str, rank: int, utility: NDArray[np.float32] | None = None) -> Eraser:
    """Ours, a control, or what another package registered under the entry point ``unface.erasers``."""
    if name in UTILITY_AWARE:
        if utility is None:
            raise UnfaceError(f"eraser {name!r} spares a task; give vectors of that task as --spare")
        return UTILITY_AWARE[name](rank, utility=utility)
    known = {**ERASERS, **CONTROLS}
    if name in known:
        return known[name](rank)
    for registered in entry_points(group="unface.erasers", name=name):
        made: Eraser = registered.load()(rank)
        return made
    raise UnfaceError(f"eraser {name!r} is not known; choose from {', '.join([*ERASERS, *UTILITY_AWARE, *CONTROLS])}")


def usual_rank(dim: int, identities: int) -> int:
    """Three eighths of the dimensions, or what so many identities allow."""
    return max(1, min(round(_USUAL_SHARE * dim), identities - 1))
