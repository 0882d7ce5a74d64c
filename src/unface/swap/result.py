"""What an attribute swap came to: shares, who they were counted on, and what they rest on."""

from dataclasses import dataclass, field

from unface.metrics import Interval, Replicates, Resolution


@dataclass(frozen=True, eq=False)
class Share:
    """``count`` of ``of`` victims, with an interval over identities."""

    count: int
    of: int
    interval: Interval
    replicates: Replicates = field(repr=False)
    """Of the same people, always drawn with the same weights: differences of two results come out paired."""

    @property
    def value(self) -> float:
        """The share."""
        return self.count / self.of


@dataclass(frozen=True, eq=False)
class Swap:
    """What came of moving some victims (images of test identities) to the other label."""

    identities: int
    read: Share
    """The classifier says the true label before the move: what is not read counts as flipped without any move."""
    accept: Share
    """cos(z, z̃) reaches the threshold: still the same person to a verifier."""
    flip: Share
    """The classifier says the other label after the move."""
    joint: Share
    """Both at once: the attack succeeded."""


@dataclass(frozen=True, eq=False)
class SwapResult:
    """The attack on all victims, and by the label they were moved to."""

    both: Swap
    to_zero: Swap
    to_one: Swap
    chance: float
    """Accuracy of always naming the label that most victims have; the classifier's is ``both.read``."""
    shrinkage: float
    """Of the classifier's covariance."""
    far: float
    threshold: float
    false_accepts: int
    impostors: int
    resolution: Resolution
    directions: int
    """Used: those asked for, or as many as there are beside within-identity variation."""
    left_out: int
    """Directions of within-identity variation; they hold the share ``within`` of it."""
    within: float
    step: float

    @property
    def trusted(self) -> bool:
        """Whether there is an attribute to swap: both labels are read better than by chance, at the lower ends too."""
        return self.to_zero.read.interval.low + self.to_one.read.interval.low > 1
