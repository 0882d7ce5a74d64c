"""audit.json: one audit as a file, ``unface.audit/2``. Pages, tables and gates read nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from unface.output.taken import require_no_result
from unface.output.write import write_files
from unface.result.face_gate import GateCertificate
from unface.result.file import AUDIT, Chart, FalseAcceptRate, Finding, Frozen, Given, Listing, ResultFile, Run
from unface.result.numbers import Certificate, Kept, Rate, Share
from unface.result.parts import BUILT_IN, NoSection, installed_part, listing_names, parts_of
from unface.result.readings import Reading
from unface.result.words import count, interval, percent, rate

if TYPE_CHECKING:
    import pandas

AUDIT_FILE, REPORT_FILE = AUDIT.file, AUDIT.page
_SHOWN_SPACES = 8


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
    apart: Share | None = Field(
        default=None, description="TAR of the mated pairs of two groups alone, such as two shoots; null for vectors"
    )

    @property
    def separable(self) -> bool:
        """Whether enough mated pairs are like impostor pairs in context for the adjusted TAR to mean something."""
        return self.value is not None and self.overlap >= 0.5

    @property
    def words(self) -> str:
        """3.1 % [2.2, 4.3], or that context and identity cannot be separated."""
        return "cannot be separated" if self.value is None else f"{percent(self.value)} {interval(self.low, self.high)}"


def _with_effective_n(tar: Share) -> Share:
    if tar.effective_n is None:
        raise ValueError("effective_n is missing")
    return tar


Tar = Annotated[Share, AfterValidator(_with_effective_n)]
"""The share of mated pairs that are accepted; pairs are counted once for each draw."""


class Point(Frozen):
    """One probe at one k and one false-accept rate."""

    probe: str
    k: int = Field(description="pictures of each of its own people that the attacker learns from, at most")
    far: FalseAcceptRate = Field(description="target false-accept rate, FMR in ISO/IEC 19795")
    resolution: Literal["resolved", "coarse", "refused"]
    worst: bool = Field(description="the panel's best on calibrate at this k and FAR")
    tar: Tar | None = Field(description="true-accept rate, 1 − FNMR in ISO/IEC 19795; pairs count once for each draw")
    tar_over_people: float | None = Field(
        default=None,
        description="mean over people of each one's own share of accepted pairs; tar counts pairs, of which people "
        "with many pictures have more",
    )
    achieved_far: Rate | None = Field(description="false-accept rate (FMR) on test identities at this threshold")
    chance: float | None = Field(description="TAR of a probe that knows nothing: the target FAR")
    times_chance: float | None = Field(description="TAR / target FAR")
    threshold: float | None
    calibrate_tar: float | None = Field(description="TAR on calibrate, by which the worst case is chosen")
    setting: dict[str, float]
    tar_by_seed: list[float] = Field(description="one for each draw; all pictures can be drawn in one way")
    partial_auc: float | None = Field(default=None, description="paper variant, fewer than 10,000 impostor pairs")
    identities_needed: int | None = Field(default=None, description="calibrate identities that would resolve the rate")
    context_adjusted: ContextAdjusted | None = None
    notes: list[str] = []

    @property
    def pairs(self) -> int:
        """Mated pairs that each draw compares."""
        return 0 if self.tar is None else self.tar.denominator // max(1, len(self.tar_by_seed))

    @property
    def differs_over_people(self) -> bool:
        """Whether the mean over people lies farther from TAR than half of its interval is wide."""
        if self.tar is None or self.tar_over_people is None:
            return False
        return abs(self.tar_over_people - self.tar.value) > (self.tar.high - self.tar.low) / 2

    @property
    def above_chance(self) -> bool:
        """Whether the whole interval lies above what a probe that knows nothing reaches."""
        return self.tar is not None and self.tar.low > self.baseline

    @property
    def baseline(self) -> float:
        """The achieved FAR, itself a count, and no less than the target: what must be exceeded to be above chance."""
        return self.far if self.achieved_far is None else max(self.achieved_far.value, self.far)


class Curve(Frozen):
    """Operating points of one probe at one k on test identities."""

    probe: str
    k: int
    far: list[float]
    tar: list[float]
    eer: float

    @model_validator(mode="after")
    def _as_many_of_each(self) -> Self:
        if len(self.far) != len(self.tar):
            raise ValueError(f"{len(self.far)} rates but {len(self.tar)} values of TAR")
        return self


class FitOverlap(Frozen):
    """Whether the people a ready projection was fitted on are also judged here."""

    people: int = Field(description="people the projection was fitted on")
    compared: int = Field(description="calibrate and test identities that were looked up")
    matches: int = Field(description="of them, those that its record matches")
    chance: float = Field(description="share of other people that match by chance")
    overlap: bool = Field(description="more match than chance explains, at odds of one in a million")

    @property
    def estimate(self) -> int:
        """About how many of those compared were fitted on."""
        return max(0, round((self.matches - self.chance * self.compared) / (1 - self.chance)))


class ErasedSource(Frozen):
    """The audited vectors themselves are released ones."""

    kind: str
    rank: int | None = Field(description="null for a store, which records the hash of its projection alone")
    gated: bool
    projection_sha256: str | None
    overlap: FitOverlap | None = Field(description="null where it is not known who the projection was fitted on")

    @property
    def name(self) -> str:
        """Of the space."""
        return f"erased by {'gated ' if self.gated else ''}{self.kind}" + ("" if self.rank is None else f" {self.rank}")


class Erasure(Frozen):
    """How a space was made from the raw one."""

    method: str
    control: bool = Field(description="random subspace or label-free PCA of equal rank: what an eraser must beat")
    rank: int = Field(description="dimensions removed")
    dim: int
    kept: int | None = Field(default=None, description="dimensions kept, by an eraser that decides what stays")
    mu: float | None = Field(default=None, description="how much people count beside copies, for a keeper")
    rank_rule: str = Field(description="how the rank was decided")
    fitted_on: str
    fit_identities: int | None = Field(description="null for a ready projection, which does not say")
    fit_images: int | None
    projection_sha256: str
    degenerate: int = Field(description="audited vectors of which nothing was left")
    spectrum: list[float] = Field(description="singular values, falling; the first belong to what was removed")
    certificate: Certificate | None
    overlap: FitOverlap | None = Field(
        default=None, description="of a ready projection; null where it does not record who it was fitted on"
    )
    gate: "GateUse | None" = Field(default=None, description="null where every vector is erased")


class GateUse(Frozen):
    """The face gate of an erasure: only what it takes for a face was changed."""

    certificate: GateCertificate
    missed_here: Rate = Field(
        description="pictures of test identities that were taken for something else and stayed raw"
    )


class SameRate(Frozen):
    """TAR of both spaces where the test identities themselves set the thresholds, at the target rate.

    Beside a change of which the calibrated thresholds accept unlike shares of test impostors, so that part of it may
    come from the thresholds.
    """

    tar: Rate
    against_tar: Rate
    achieved_far: Rate = Field(description="test impostors accepted by the calibrated threshold in this space")
    against_achieved_far: Rate = Field(description="in the other space")

    @property
    def factor(self) -> float:
        """How many times more the one threshold accepts than the other; infinite where that is none."""
        low, high = sorted((self.achieved_far.value, self.against_achieved_far.value))
        return high / low if low else math.inf


class Change(Frozen):
    """Worst-case TAR here less worst-case TAR in another space, on the same pairs; the interval is paired."""

    against: str = Field(description="name of the other space")
    k: int
    far: FalseAcceptRate
    probe: str
    against_probe: str
    value: float
    low: float
    high: float
    level: float
    same_rate: SameRate | None = Field(
        default=None, description="where achieved rates on test identities differ by more than 1.5; null elsewhere"
    )


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

    @property
    def is_control(self) -> bool:
        """Whether a control made it."""
        return self.erasure is not None and self.erasure.control

    def worst_at(self, k: int, far: float) -> Point | None:
        """The worst case at one k and rate; None where the rate is refused or was not asked for."""
        return next((point for point in self.points if point.worst and (point.k, point.far) == (k, far)), None)

    def worst_by_rate(self) -> list[Point]:
        """The worst case at each rate, lowest first, at the k that is worst on calibrate; resolved before coarse."""
        measured = [point for point in self.points if point.worst and point.tar]
        return [
            max(
                (point for point in measured if point.far == far),
                key=lambda point: (point.resolution == "resolved", point.calibrate_tar or 0),
            )
            for far in sorted({point.far for point in measured})
        ]


class ControlPoint(Frozen):
    """A probe on shuffled identities; chance is all it may reach."""

    probe: str
    k: int
    far: FalseAcceptRate
    tar: Tar
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

    shuffled_identities: list[ControlPoint] = Field(
        description="self-test of probes and pipeline; it cannot notice leaks in the data"
    )
    near_duplicates: Duplicates
    lookalike_identities: int = Field(description="identity pairs that may be one person under two names")
    stray_pictures: int = Field(description="pictures that seem to show another identity than they are under")


class Curated(Frozen):
    """Which pictures were used: fit and train people bring all, calibrate and test people a number at most."""

    images: int = Field(description="of each calibrate and test person, at most; paper variant: of everybody, exactly")
    most: int | None = Field(
        default=None, description="the most that a train person has, which k = all stands for; null: paper variant"
    )
    identities: int
    identities_dropped: int = Field(
        description="people with one image, who were left out; paper variant: with fewer than needed"
    )
    rows: int
    rows_dropped: int = Field(
        default=0, description="images of people who were left out, and further images of those who were used"
    )

    @property
    def equal(self) -> bool:
        """Whether everybody brings the same number."""
        return self.rows == self.identities * self.images

    @property
    def words(self) -> str:
        """60 × 8 images, or 60 people, 1,234 images."""
        if self.equal:
            return f"{self.identities:,} × {self.images} images"
        judged = f"calibrate and test at most {self.images} each"
        return f"{count(self.identities, 'person', 'people')}, {count(self.rows, 'image')}, {judged}"


class RoleCounts(Frozen):
    """Identities in each role; no identity has two."""

    fit: int
    train: int
    calibrate: int
    test: int
    seed: int | None
    sha256: str


class MeasuredProtocol(Frozen):
    """How it was measured."""

    variant: Literal["unface", "paper"]
    far: list[float] = Field(min_length=1)
    k: list[int] = Field(min_length=1)
    seeds: int
    seed: int
    probe: list[str]
    score: str
    bootstrap: str
    bootstraps: int
    level: float
    impostor_quota: int | None


@dataclass(frozen=True)
class Headline:
    """The operating point at which an audit is quoted: every space is compared at the same k and rate."""

    raw: Point

    @classmethod
    def among(cls, spaces: "Sequence[SpaceResult]") -> "Headline | None":
        """The lowest rate that is resolved before and after erasure; if none is, the highest: most people set it."""
        raw, *others = spaces
        heads = [cls(point) for point in raw.worst_by_rate()]
        for head in heads:
            left = head.least(others)
            if all(point.resolution == "resolved" for point in (head.raw, *(left[1:] if left else ()))):
                return head
        return heads[-1] if heads else None

    def least(self, spaces: "Sequence[SpaceResult]") -> "tuple[SpaceResult, Point] | None":
        """The eraser that leaves least on calibrate identities, and its worst case."""
        left = [(space, point) for space in spaces if space.by_eraser and (point := self.of(space)) is not None]
        return min(left, key=lambda one: one[1].calibrate_tar or 0.0) if left else None

    @property
    def k(self) -> int:
        """Pictures that the attacker has of each person."""
        return self.raw.k

    @property
    def far(self) -> float:
        """Target false-accept rate."""
        return self.raw.far

    def of(self, space: SpaceResult) -> Point | None:
        """The worst case of a space at this point."""
        return space.worst_at(self.k, self.far)

    def changes(self, space: SpaceResult) -> list[Change]:
        """The paired changes of a space at this point."""
        return [change for change in space.changes if (change.k, change.far) == (self.k, self.far)]


class AuditResult(ResultFile):
    """One audit: what was measured, on what, with which certainty, what was not, and the conclusion."""

    schema_: Literal["unface.audit/2"] = Field(default="unface.audit/2", alias="schema")
    valid: bool
    verdict: str
    findings: list[Finding]
    not_measured: list[str]
    source: Given
    curated: Curated
    roles: RoleCounts
    protocol: MeasuredProtocol
    spaces: list[SpaceResult] = Field(min_length=1, description="raw first, then erasers, then the controls")
    erased_by: ErasedSource | None = Field(default=None, description="null for vectors as an encoder made them")
    fit_source: Given | None = Field(default=None, description="set the erasers were fitted on, if not this one's own")
    attacker_source: Given | None = Field(default=None, description="people only the attacker has; in roles.train")
    gate_source: Given | None = Field(default=None, description="vectors without faces that the face gate learned from")
    copy_source: Given | None = Field(default=None, description="copies of pictures, if not in the audited set itself")
    controls: Controls
    parts: dict[str, Any] = Field(default={}, description="what each further part of the audit measured, by its name")
    run: Run
    listings: dict[str, Listing] = Field(default={}, exclude=True, repr=False)
    """By file name; written beside audit.json."""
    projections: dict[str, bytes] = Field(default={}, exclude=True, repr=False)
    """By space: the projections that were fitted for this audit, as ``Projection.save`` writes them."""

    @field_validator("parts")
    @classmethod
    def _known_sections(cls, parts: dict[str, Any]) -> dict[str, Any]:
        """Sections as their part's own type; one whose part is not installed here stays as it came."""
        sections = {}
        for name, section in parts.items():
            part = installed_part(name)
            if part is not None and part.schema is NoSection:
                raise ValueError(f"{name} has no section of its own")
            try:
                sections[name] = section if part is None else part.schema.model_validate(section)
            except ValidationError as error:
                details = [{**one, "loc": (name, *one["loc"])} for one in error.errors()]
                # The same details with longer paths, of a type that only pydantic can name.
                raise ValidationError.from_exception_data(name, details) from None  # type: ignore[arg-type]
        return sections

    @field_serializer("parts")
    def _as_json(self, parts: dict[str, Any]) -> dict[str, Any]:
        dumped = (
            section.model_dump(by_alias=True) if isinstance(section, Frozen) else section for section in parts.values()
        )
        return dict(zip(parts, dumped, strict=True))

    @model_validator(mode="after")
    def _consistent(self) -> "AuditResult":
        if self.valid and any(finding.severity == "invalid" for finding in self.findings):
            raise ValueError("valid, but a finding says that it is not")
        return self

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "AuditResult":
        """Read an audit.json, or the one in a folder that ``save`` wrote."""
        return super().load(audit_path(Path(path)))

    def save(self, folder: str | PathLike[str], page: str | None = None, *, force: bool = False) -> Path:
        """Write audit.json, and before it its page and the listings; returns the path of audit.json."""
        require_no_audit(Path(folder), force=force)
        private = {name: listing.csv() for name, listing in self.listings.items()}
        texts = {} if page is None else {REPORT_FILE: page}
        listings = {**dict.fromkeys(listing_names()), **private}
        write_files(Path(folder), {**texts, AUDIT_FILE: self.file_text()}, listings)
        return Path(folder) / AUDIT_FILE

    @property
    def raw(self) -> SpaceResult:
        """The vectors as they came."""
        return self.spaces[0]

    def space(self, name: str) -> SpaceResult | None:
        """A space by its name."""
        return next((space for space in self.spaces if space.name == name), None)

    @property
    def erased(self) -> list[SpaceResult]:
        """The spaces that erasers made."""
        return [space for space in self.spaces if space.by_eraser]

    @property
    def control_names(self) -> set[str]:
        """Of the spaces that are controls."""
        return {space.name for space in self.spaces if space.is_control}

    @property
    def worst(self) -> list[Point]:
        """The worst case of the raw space at each k and rate."""
        return [point for point in self.raw.points if point.worst]

    def k_words(self, k: int) -> str:
        """``4``, or ``8 (all)`` or ``all (up to 37)`` where attackers learn from every picture they have."""
        if k != self.curated.most:
            return str(k)
        return f"{k} (all)" if self.curated.equal else f"all (up to {k})"

    @property
    def headline(self) -> Headline | None:
        """Where this audit is quoted: the worst case at the lowest rate that is resolved on both sides.

        Every sentence, tile, table and finding compares spaces at this k and rate; None where no rate was resolved.
        """
        return Headline.among(self.spaces)

    def is_coarse(self, space: SpaceResult, change: Change) -> bool:
        """A difference is as coarse as its coarser side."""
        sides = [space, self.space(change.against)]
        points = [side.worst_at(change.k, change.far) for side in sides if side is not None]
        return any(point is not None and point.resolution == "coarse" for point in points)

    @property
    def subject(self) -> str:
        """The audited set, by name."""
        return self.source.name

    def readings(self) -> list[Reading]:
        """What ``unface diff`` and a history compare audits by; controls are left out."""
        return [one for part in parts_of(self) for one in part.readings(self)]

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {"variant": self.protocol.variant, "attackers": ", ".join(self.protocol.probe)}

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each space, probe, k, size of album and false-accept rate (needs pandas).

        ``album`` and ``against`` are the pictures of a person on both sides: 1 and 1 for photo pairs.
        """
        import pandas

        albums = self.parts.get("albums")
        found = [(space, point, point.k, 1, 1) for space in self.spaces for point in space.points]
        for one in getattr(albums, "points", []):
            space = self.space(one.space)
            if space is not None and one.second > 1:
                found.append((space, one, getattr(albums, "k", 0), one.first, one.second))
        rows = []
        for space, point, k, first, second in found:
            tar, achieved = point.tar, point.achieved_far
            rows.append(
                {
                    "space": space.name,
                    "control": space.is_control,
                    "removed": 0 if space.erasure is None else space.erasure.rank,
                    "probe": point.probe,
                    "worst": point.worst,
                    "k": k,
                    "album": first,
                    "against": second,
                    "far": point.far,
                    "resolution": point.resolution,
                    "tar": None if tar is None else tar.value,
                    "low": None if tar is None else tar.low,
                    "high": None if tar is None else tar.high,
                    "accepted": None if tar is None else tar.numerator,
                    "mated": None if tar is None else tar.denominator,
                    "achieved_far": None if achieved is None else achieved.value,
                    "chance": point.chance,
                    "times_chance": point.times_chance,
                }
            )
        return pandas.DataFrame(rows)

    def plot(self) -> Chart:
        """An Altair chart: TAR of the worst attacker over k, a line for each space."""
        # By name, since pages stand above result files.
        return cast(Chart, import_module("unface.report.notebook").audit_chart(self))

    def _repr_html_(self) -> str:
        return cast(str, import_module("unface.report.notebook").audit_html(self))

    def __repr__(self) -> str:
        head = self.headline
        at = "no rate resolved"
        if head is not None:
            points = {space.name: head.of(space) for space in self.spaces}
            tars = [f"{name} {percent(one.tar.value)}" for name, one in points.items() if one and one.tar]
            shown = ", ".join(tars[:_SHOWN_SPACES]) + (", …" if len(tars) > _SHOWN_SPACES else "")
            at = f"TAR at FAR {rate(head.far)}, k = {head.k}: {shown}"
        state = "" if self.valid else "INVALID, "
        return f"<AuditResult {state}{self.source.name}: {at}; {count(len(self.findings), 'finding')}>"

    __str__ = __repr__


def audit_path(path: Path) -> Path:
    """The audit.json that is meant by its own path or by its folder's."""
    return path / AUDIT_FILE if path.is_dir() else path


def require_no_audit(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds a finished audit, before any work is done for it."""
    require_no_result(folder, AUDIT_FILE, REPORT_FILE, *listing_names(), force=force)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of audit.json, with the sections of the built-in parts."""
    from pydantic.json_schema import models_json_schema

    sections = {name: part.schema for name in BUILT_IN if (part := installed_part(name)) and part.schema.model_fields}
    models: list[type[BaseModel]] = [AuditResult, *sections.values()]
    # In one call, so that all share one table of definitions.
    references, shared = models_json_schema([(model, "serialization") for model in models], by_alias=True)
    definitions: dict[str, Any] = shared["$defs"]
    audit = definitions.pop("AuditResult")
    audit["properties"]["parts"]["properties"] = {
        name: references[model, "serialization"] for name, model in sections.items()
    }
    return {**audit, "$defs": definitions}
