"""What erasers did: the spaces they made, what changed there, what it cost, and how far it carries."""

from typing import Literal

from pydantic import Field

from unface.auditing.schema.given import Given
from unface.auditing.schema.numbers import Bounds, Estimate, Frozen
from unface.auditing.schema.points import Curve, Point
from unface.result.numbers import Kept, Share


class Certificate(Frozen):
    """Linear identity left, on identities that the fit did not see."""

    identities: int
    images: int
    energy_left: Bounds = Field(description="share of between-identity variance left by the linear map")
    fisher_before: Bounds
    fisher_left: Bounds = Field(description="largest ratio of between- to within-identity variance in one direction")
    covers: str


class Erasure(Frozen):
    """How a space was made from the raw one."""

    method: str
    control: bool = Field(description="random subspace or label-free PCA of equal rank: what an eraser must beat")
    rank: int = Field(description="dimensions removed")
    dim: int
    rank_rule: str = Field(description="how the rank was decided")
    fitted_on: str
    fit_identities: int | None = Field(description="null for a ready projection, which does not say")
    fit_images: int | None
    projection_sha256: str
    degenerate: int = Field(description="audited vectors of which nothing was left")
    spectrum: list[float] = Field(description="singular values, falling; the first belong to what was removed")
    certificate: Certificate | None


class Change(Frozen):
    """Worst-case TAR here less worst-case TAR in another space, on the same pairs; the interval is paired."""

    against: str = Field(description="name of the other space")
    k: int
    far: float
    probe: str
    against_probe: str
    value: float
    low: float
    high: float
    level: float


class SpaceResult(Frozen):
    """Everything measured in one space: the raw vectors, or what an eraser made of them."""

    name: str
    erasure: Erasure | None = Field(default=None, description="null for the raw space")
    points: list[Point]
    curves: list[Curve]
    changes: list[Change] = []
    utility: list[Kept] = []

    @property
    def by_eraser(self) -> bool:
        """Whether an eraser made it: not the raw space, and no control."""
        return self.erasure is not None and not self.erasure.control

    def worst_at(self, k: int, far: float) -> Point | None:
        """The worst case at one k and rate; None where the rate is refused or was not asked for."""
        return next((point for point in self.points if point.worst and (point.k, point.far) == (k, far)), None)


class SweepPoint(Frozen):
    """One rank, or one number of fit identities."""

    method: str
    control: bool
    rank: int
    fit_identities: int
    probe: str = Field(description="worst case, chosen on calibrate")
    calibrate_tar: float
    tar: Estimate
    chance: float
    times_chance: float
    utility: list[Kept] = []


class Sweep(Frozen):
    """The same measurement over ranks or over numbers of fit identities, at one k and one rate."""

    over: Literal["rank", "identities"]
    k: int
    far: float
    resolution: Literal["resolved", "coarse"]
    seeds: int
    probes: list[str] = Field(description="those in closed form: many points, so the slow attacker is left out")
    points: list[SweepPoint]


class TransferCell(Frozen):
    """Worst-case TAR on one set, in the raw space or after a projection fitted on one of the two."""

    fitted_on: str | None = Field(description="name of the set, null for raw")
    tested_on: str
    k: int
    far: float
    resolution: Literal["resolved", "coarse"]
    probe: str
    tar: Estimate
    chance: float
    times_chance: float


class Transfer(Frozen):
    """Fit on A, test on B, and back."""

    method: str
    rank: int
    first: str
    second: Given
    cells: list[TransferCell]
    cosines: list[float] = Field(description="of the principal angles between the two projections, falling")
    chance_cosine: float = Field(description="where the largest of two random subspaces of this rank concentrates")


class Map(Frozen):
    """t-SNE of some test identities; identities are numbered, never named."""

    space: str
    perplexity: float
    x: list[float]
    y: list[float]
    identity: list[int]


class AttributeSwap(Frozen):
    """Vectors moved until they tell the other value of an attribute: still the same person to the verifier?"""

    space: str
    attribute: str
    far: float
    resolution: Literal["resolved", "coarse"]
    threshold: float
    directions: int
    accuracy: Share = Field(description="of the attribute's classifier on test identities, before any move")
    majority: float = Field(description="accuracy of always saying the more frequent value")
    trusted: bool = Field(description="whether both values are read better than by chance")
    accept: Share = Field(description="still accepted as the same person")
    flip: Share = Field(description="the classifier says the other value")
    joint: Share = Field(description="both at once")
