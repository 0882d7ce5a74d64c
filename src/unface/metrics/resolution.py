"""Which false-accept rates a set of impostor pairs can resolve."""

import math
from enum import StrEnum

RESOLVED_ACCEPTS = 30
COARSE_ACCEPTS = 3


class Resolution(StrEnum):
    """Resolved from 30 expected false accepts, coarse from 3, refused below."""

    RESOLVED = "resolved"
    COARSE = "coarse"
    REFUSED = "refused"


def resolution(far: float, impostors: int) -> Resolution:
    """How well ``impostors`` calibrate pairs resolve a false-accept rate."""
    expected = far * impostors * (1 + 1e-12)
    if expected >= RESOLVED_ACCEPTS:
        return Resolution.RESOLVED
    return Resolution.COARSE if expected >= COARSE_ACCEPTS else Resolution.REFUSED


def identities_needed(far: float, pairs_each: float, accepts: int = COARSE_ACCEPTS) -> int:
    """Calibrate identities that give ``accepts`` expected false accepts, ``pairs_each`` image pairs for each two."""
    # m (m − 1) / 2 · pairs_each · far ≥ accepts, with the same slack as above for what is just enough
    return math.ceil((1 + math.sqrt(1 + 8 * accepts / (far * pairs_each * (1 + 1e-12)))) / 2)
