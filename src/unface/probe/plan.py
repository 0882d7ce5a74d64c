"""What a run of the panel is to do: rates, shots, seeds, and which reading of the protocol."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from unface.errors import UnfaceError
from unface.metrics import RESOLVED_ACCEPTS, RESOLVED_PEOPLE, Resolution, identities_needed, resolution

_LOWEST_FAR = 1e-12
_PEOPLE_RESOLVED = 9  # the fewest with 30 pairs of people


class Variant(StrEnum):
    """``unface``: k limits learning only, thresholds from all seeds, intervals over identities.

    ``paper``: the ISP paper's own reading, which compares only the images that k others of each identity leave.
    """

    UNFACE = "unface"
    PAPER = "paper"


@dataclass(frozen=True)
class Plan:
    """Everything that decides the numbers beside the data and the split."""

    fars: tuple[float, ...] = (1e-3, 1e-4)
    ks: tuple[int, ...] = (1, 4, 16)
    seeds: int = 5
    seed: int = 0
    everything: int | None = None
    """The k that stands for all images: attackers learn from every one they have of each person."""
    variant: Variant = Variant.UNFACE
    quota: int | None = None
    """Impostor image pairs for each identity pair; all of them when None."""
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not self.fars or not self.ks:
            raise UnfaceError("at least one false-accept rate and one k are needed")
        for far in self.fars:
            if not 0 < far < 1:
                raise UnfaceError(f"a false-accept rate lies between 0 and 1, not {far:g}")
            if far < _LOWEST_FAR:
                raise UnfaceError(f"no set of pairs resolves a false-accept rate of {far:g}; ask for 1e-12 or more")
        if min(self.ks) < 1:
            raise UnfaceError(f"k is the number of support images, at least 1, not {min(self.ks)}")
        if self.seeds < 1:
            raise UnfaceError(f"at least one seed is needed, not {self.seeds}")
        if self.variant is Variant.PAPER and self.seeds < 2:
            raise UnfaceError("the paper variant takes its intervals from the spread over seeds; give at least 2")
        if self.seed < 0:
            raise UnfaceError(f"a seed is a number from 0, not {self.seed}")
        if self.quota is not None and self.quota < 1:
            raise UnfaceError(f"a quota is a number of image pairs, at least 1, not {self.quota}")

    @property
    def calibrating_seeds(self) -> int:
        """How many seeds' calibrate scores set thresholds and hyper-parameters (the ISP paper, A.4: one, frozen)."""
        return 1 if self.hold_out else self.seeds

    @property
    def hold_out(self) -> bool:
        """Whether k images of every identity are kept from being compared."""
        return self.variant is Variant.PAPER

    def draws(self, k: int) -> range:
        """The seeds of the draws at one k; all images can be drawn in one way."""
        return range(self.seed, self.seed + (1 if k == self.everything else self.seeds))


@dataclass(frozen=True)
class Resolved:
    """How well each rate is resolved at one k, by the distinct impostor pairs of calibrate: known before scoring."""

    impostors: int
    identities: int
    """Of calibrate."""
    of: Mapping[float, Resolution]
    needed: Mapping[float, int]
    """Calibrate identities that each rate would need to be shown at all, and …"""
    needed_for_resolved: Mapping[float, int]
    """… to count as resolved."""

    @property
    def measured(self) -> tuple[float, ...]:
        """The rates that are not refused, in the order asked for."""
        return tuple(far for far, how in self.of.items() if how is not Resolution.REFUSED)

    def judged(self, far: float, people: float) -> tuple[Resolution, int | None]:
        """What a rate is once ``people`` effective people stand behind its accepts, and who would resolve it.

        At one rate effective people grow with the people there are, or faster.
        """
        how = self.of[far]
        if how is Resolution.RESOLVED:
            how = resolution(far, self.impostors, people)
        if how is Resolution.RESOLVED:
            return how, None
        more = math.ceil(self.identities * RESOLVED_PEOPLE / max(people, 1.0)) if people < RESOLVED_PEOPLE else 0
        return how, max(self.needed_for_resolved[far], more)

    @property
    def reference(self) -> float:
        """The rate at which settings are chosen: the smallest resolved one, else the largest that is measured."""
        resolved = [far for far, how in self.of.items() if how is Resolution.RESOLVED]
        return min(resolved) if resolved else max(self.measured)


def resolve(fars: tuple[float, ...], impostors: int, identities: int) -> Resolved:
    """Apply the resolution rule to ``impostors`` image pairs of so many calibrate identities.

    However many pictures they have, fewer than 30 pairs of people resolve nothing: such rates are coarse at best.
    """
    people = identities * (identities - 1) // 2
    each = impostors / people if impostors else 1.0
    how = {far: resolution(far, impostors) for far in fars}
    if people < RESOLVED_ACCEPTS:
        how = {far: Resolution.COARSE if found is Resolution.RESOLVED else found for far, found in how.items()}
    return Resolved(
        impostors,
        identities,
        how,
        {far: identities_needed(far, each) for far in fars},
        {far: max(identities_needed(far, each, RESOLVED_ACCEPTS), _PEOPLE_RESOLVED) for far in fars},
    )
