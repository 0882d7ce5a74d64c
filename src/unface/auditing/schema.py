"""audit.json: the whole result as a file format, ``unface.audit/1``. Reports, gates and tables read nothing else."""

from os import PathLike
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal["unface.audit/1"] = "unface.audit/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


class Rate(_Frozen):
    """A share as counts; pairs are counted once for each seed that compares them."""

    value: float
    numerator: int
    denominator: int


class Estimate(Rate):
    """A rate with its interval and what it is worth."""

    low: float
    high: float
    level: float
    method: str
    identities: int = Field(description="test identities behind the pairs")
    effective_n: float = Field(description="independent trials that would spread as much")


class WithoutSuspects(_Frozen):
    """TAR without mated pairs whose surroundings are more alike than a threshold."""

    similarity: float
    tar: Rate


class ContextAdjusted(_Frozen):
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


class Point(_Frozen):
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


class Curve(_Frozen):
    """Operating points of one probe at one k on test identities."""

    probe: str
    k: int
    far: list[float]
    tar: list[float]
    eer: float


class SpaceResult(_Frozen):
    """Everything measured in one space: the raw vectors, or what an eraser made of them."""

    name: str
    points: list[Point]
    curves: list[Curve]


class ControlPoint(_Frozen):
    """A probe on shuffled identities; chance is all it may reach."""

    probe: str
    k: int
    far: float
    tar: Estimate
    chance: float
    passed: bool


class Duplicates(_Frozen):
    """Pairs of nearly the same vector."""

    cosine: float
    across_identities: int
    within_identities: int
    mated: int = Field(description="mated pairs that were looked through")


class Controls(_Frozen):
    """What could make the numbers mean something else."""

    shuffled_identities: list[ControlPoint]
    near_duplicates: Duplicates
    lookalike_identities: int = Field(description="identity pairs that may be one person under two names")
    stray_pictures: int = Field(description="pictures that seem to show another identity than they are under")


class Finding(_Frozen):
    """Something the reader must know before using the numbers."""

    severity: Literal["invalid", "warning", "note"]
    about: str
    text: str


class Given(_Frozen):
    """What was audited. No path and no identity name."""

    name: str
    sha256: str
    rows: int
    identities: int
    dim: int
    encoder: str | None
    weights_sha256: str | None
    notes: list[str]


class Curated(_Frozen):
    """The balanced part that was used."""

    images: int
    identities: int
    identities_dropped: int
    rows: int


class RoleCounts(_Frozen):
    """Identities in each role; no identity has two."""

    fit: int
    train: int
    calibrate: int
    test: int
    seed: int | None
    sha256: str


class Protocol(_Frozen):
    """How it was measured."""

    variant: Literal["unface", "paper"]
    fars: list[float]
    ks: list[int]
    seeds: int
    seed: int
    probes: list[str]
    score: str
    bootstrap: str
    bootstraps: int
    level: float
    impostor_quota: int | None


class Run(_Frozen):
    """When and with what; the only part that differs between two runs of the same audit."""

    unface: str
    started: str
    seconds: float


class AuditResult(_Frozen):
    """One audit: what was measured, on what, how surely, what was not, and what it comes to."""

    schema_: Literal["unface.audit/1"] = Field(default=SCHEMA, alias="schema")
    valid: bool
    verdict: str
    findings: list[Finding]
    not_measured: list[str]
    source: Given
    curated: Curated
    roles: RoleCounts
    protocol: Protocol
    spaces: list[SpaceResult]
    controls: Controls
    run: Run
    suspects: list[tuple[str, str, str, str, str]] = Field(default=[], exclude=True, repr=False)
    """(why, id, identity, id, identity): kept beside audit.json, never in it."""

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write audit.json, and suspects.csv where there are any; returns the path of audit.json."""
        from unface.auditing.save import save_audit

        return save_audit(self, Path(folder), force=force)

    @property
    def worst(self) -> list[Point]:
        """The worst case of the raw space at each k and rate."""
        return [point for point in self.spaces[0].points if point.worst]
