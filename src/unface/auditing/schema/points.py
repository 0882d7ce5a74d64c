"""What a probe achieved: operating points, curves, and the controls that can void them."""

from typing import Literal

from pydantic import Field

from unface.auditing.schema.numbers import Estimate, Frozen, Rate


class WithoutSuspects(Frozen):
    """TAR without mated pairs whose surroundings are more alike than a threshold."""

    similarity: float
    tar: Rate


class ContextAdjusted(Frozen):
    """TAR with mated pairs reweighted to the impostors' distribution of context similarity."""

    context: str = Field(description="column that says how alike two pictures' surroundings are")
    value: float | None = Field(description="null where no mated pair is like any impostor pair in context")
    low: float
    high: float
    level: float
    unknown: float = Field(description="share of mated pairs whose context is not known; left out")
    overlap: float = Field(description="share of the impostors' context distribution that mated pairs reach")
    effective_pairs: float
    suspects: Rate | None = Field(description="accepted mated pairs that share their surroundings, of all accepted")
    without_suspects: list[WithoutSuspects]


class Point(Frozen):
    """One probe at one k and one false-accept rate."""

    probe: str
    k: int
    far: float = Field(description="target false-accept rate")
    resolution: Literal["resolved", "coarse", "refused"]
    worst: bool = Field(description="the panel's best on calibrate at this k and FAR")
    tar: Estimate | None = Field(description="null when the rate is refused")
    achieved_far: Rate | None
    chance: float | None = Field(description="TAR of a probe that knows nothing")
    times_chance: float | None
    threshold: float | None
    calibrate_tar: float | None = Field(description="TAR on calibrate, by which the worst case is chosen")
    setting: dict[str, float]
    tar_by_seed: list[float]
    partial_auc: float | None = Field(default=None, description="paper variant, fewer than 10,000 impostor pairs")
    identities_needed: int | None = Field(default=None, description="calibrate identities that would resolve the rate")
    context_adjusted: ContextAdjusted | None = None
    notes: list[str] = []


class Curve(Frozen):
    """Operating points of one probe at one k on test identities."""

    probe: str
    k: int
    far: list[float]
    tar: list[float]
    eer: float


class ControlPoint(Frozen):
    """A probe on shuffled identities; chance is all it may reach."""

    probe: str
    k: int
    far: float
    tar: Estimate
    chance: float
    passed: bool


class Duplicates(Frozen):
    """Pairs of nearly the same vector."""

    cosine: float
    across_identities: int
    within_identities: int
    mated: int = Field(description="mated pairs that were looked through")


class Controls(Frozen):
    """What could make the numbers mean something else."""

    shuffled_identities: list[ControlPoint]
    near_duplicates: Duplicates
    lookalike_identities: int = Field(description="identity pairs that may be one person under two names")
    stray_pictures: int = Field(description="pictures that seem to show another identity than they are under")
