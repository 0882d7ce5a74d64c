"""What was measured about a projection on identities it was not fitted on, and what that does not cover."""

from dataclasses import dataclass

COVERS = (
    "linear access to single vectors, on the identities and images it was measured on;"
    " not verification at any false-accept rate, not other data, not non-linear attackers"
)


@dataclass(frozen=True)
class Estimate:
    """A value with its interval over other draws of identities."""

    value: float
    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Certificate:
    """Identity that is left after a projection, beside what was there before; 0 is none, for all three."""

    identities: int
    images: int
    energy_left: Estimate
    """Share of the between-identity variance that survives the linear map, sampling noise taken off."""
    fisher_before: Estimate
    fisher_left: Estimate
    """Largest ratio of between- to within-identity variance along one direction of the released vectors: the direction
    is chosen on one half of the identities and measured on the other, so that the choice costs no optimism."""
    covers: str = COVERS
