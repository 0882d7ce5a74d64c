"""What attribution came to: three measures in each space, with intervals over identities, and what they rest on."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from unface.metrics import Interval


@dataclass(frozen=True)
class Estimate:
    """A mean or median over ``of`` pairs or triplets of ``identities`` people."""

    value: float
    interval: Interval
    of: int
    identities: int


@dataclass(frozen=True)
class Share:
    """``count`` of ``of`` triplets of ``identities`` people."""

    count: int
    of: int
    identities: int
    interval: Interval

    @property
    def value(self) -> float:
        """The share."""
        return self.count / self.of


@dataclass(frozen=True)
class Fii:
    """Face importance: what blurring the face takes from cos(q, r), less what blurring as much background takes."""

    index: Estimate
    face_drop: Estimate
    background_drop: Estimate
    similarity: Estimate
    """cos(q, r) before anything is blurred."""


@dataclass(frozen=True)
class Blurred:
    """Context preferred to identity with all three faces blurred at ``sigma``."""

    sigma: float
    preferred: Share


@dataclass(frozen=True)
class Crossover:
    """Where a curve crosses ½, between grid points on a straight line; None where it never does."""

    value: float | None
    interval: Interval | None
    """Of the draws that cross at all."""
    crossing: float
    """The share of draws that do."""


@dataclass(frozen=True)
class Cpi:
    """Context preference over the blur series."""

    at: tuple[Blurred, ...]
    change: Estimate
    """ΔCPI: at the strongest blur less without blur."""
    crossover: Crossover
    """σ*."""
    donor_nearer: Share
    """Swapped pictures nearer to the donor's picture than to the host's: for a recogniser, swaps that took."""


@dataclass(frozen=True)
class Revealed:
    """Similarity of a query that shows ``share`` of its background to both references, and which one it prefers."""

    share: float
    preferred: Share
    to_context: Estimate
    to_identity: Estimate


@dataclass(frozen=True)
class BStar:
    """How much background has to be seen before context overtakes identity."""

    median: Estimate
    """Of the smallest B on the grid (the ISP paper, eq. 20)."""
    crossing: Estimate
    """Median of where the two similarities cross between grid points, which the grid rounds up."""
    at_zero: Share
    """Censored at 0: context is preferred with no background in sight."""
    at_one: Share
    """Censored at 1: identity is preferred with all of it in sight."""
    at: tuple[Revealed, ...]
    rising: Share
    """Triplets whose similarity to the context never falls as more is revealed."""
    flat: Share
    """Triplets whose similarity to the identity stays about as it is."""


@dataclass(frozen=True)
class SpaceAttribution:
    """One space; None is not measured: pairs or triplets of two identities are needed."""

    name: str
    fii: Fii | None
    cpi: Cpi | None
    b_star: BStar | None


class Step(StrEnum):
    """Where something was left out."""

    PICTURE = "picture"
    PAIRING = "pairing"
    RING = "ring"
    SWAP = "swap"


@dataclass(frozen=True)
class LeftOut:
    """A picture that could not be used for something, by its id."""

    id: str
    step: Step
    reason: str


@dataclass(frozen=True)
class Spread:
    """Of a number over what it was measured on; all 0 of nothing."""

    mean: float
    std: float
    largest: float
    of: int


@dataclass(frozen=True)
class Quality:
    """The checks of the ISP paper, App. D.6."""

    pictures: int
    usable: int
    identities: int
    """With a usable picture."""
    padding: Spread
    fcr: Spread
    fcr_difference: Spread
    """Of queries and references, as a share of the query's."""
    area_difference: Spread
    """Of ring and face, as a share of the face, over canvases that have a ring."""
    pairs: int
    """Queries with a reference: the same person, elsewhere."""
    swaps_tried: int
    swaps: int
    left_out: tuple[LeftOut, ...]

    def counts(self) -> Mapping[Step, Mapping[str, int]]:
        """How many were left out, by step and reason."""
        return {
            step: dict(sorted(Counter(one.reason for one in self.left_out if one.step is step).items()))
            for step in Step
        }


@dataclass(frozen=True)
class Attribution:
    """One encoder: its raw space first, then each projection, all from the same encodings."""

    encoder: str
    size: int
    axes: str
    """How the ellipse's axes were read, ``semi`` or ``full``."""
    quality: Quality
    spaces: tuple[SpaceAttribution, ...]
    seed: int
    level: float
    replicates: int
