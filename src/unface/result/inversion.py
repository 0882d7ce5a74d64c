"""inversion.json: whether stored vectors can be turned back into faces, ``unface.inversion/1``.

``unface.invert`` builds these models itself, so that a number has one type from its computation to the page.
"""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from unface.result.file import FalseAcceptRate, Finding, Frozen, Run, lacks_a_rate_alone, why_unusable
from unface.result.numbers import Estimate, Rate, Share
from unface.result.readings import Reading, ToldFile
from unface.result.validation import ALL_JUDGES, JudgeThreshold, without_a_rate
from unface.result.words import one_in, percent, rate, rough

RAW = "raw"
NOT_CONVERGED = "not converged"
"""What a finding is about where an attack stayed below the cosine of another real picture."""


class Attacked(Frozen):
    """The encoder whose vectors are inverted."""

    name: str
    dim: int
    weights_sha256: str | None
    aligned: bool = Field(description="whether it takes an aligned face; other encoders see whole pictures")


class TargetPeople(Frozen):
    """Whose vectors are inverted, and who else was needed: counts, no names. Nobody has two roles."""

    source: str
    generated: bool = Field(description="people who do not exist")
    targets: int = Field(description="one picture of each is attacked")
    pictures: int = Field(description="of the targets, with those that only judge")
    train: int = Field(description="people an attacker learns from")
    calibrate: int = Field(description="people that set the judges' thresholds")
    sha256: str
    notes: list[str] = []


class PriorFacts(Frozen):
    """The generator of faces that attacks search."""

    name: str
    size: int = Field(description="pixels of a side of its pictures here")


class EqualError(Frozen):
    """Where a judge errs alike on both sides: the threshold at which the paper accepts."""

    rate: float
    cosine: float
    far: float = Field(description="strangers that it accepts")


class InversionJudge(Frozen):
    """One judge, and what it rests on."""

    name: str
    independent: bool = Field(description="false for a recogniser that the attack itself learned from")
    thresholds: list[JudgeThreshold]
    equal_error: EqualError | None = Field(description="null where calibrate people have one picture each")


class SpaceFacts(Frozen):
    """One attacked space."""

    name: str
    kind: str | None = Field(description="of the projection; null: vectors as they are")
    rank: int = Field(description="dimensions removed")
    dim: int = Field(description="dimensions left in the store")
    projection_sha256: str | None
    second: Estimate | None = Field(description="median cosine of another real picture of the person with the target")
    strangers: Estimate = Field(description="median cosine of other people's pictures with the target")


class InversionSuccess(Frozen):
    """How often reconstructions pass for the person, at one threshold, by one judge or by all."""

    far: FalseAcceptRate | None = Field(description="null: at each judge's EER threshold, as the paper does")
    judge: str
    same: Share = Field(description="accepted against the attacked picture (type I)")
    other: Share | None = Field(description="accepted against other pictures of the person (type II)")
    derangement: Rate = Field(description="accepted against everybody else: chance for these very reconstructions")


class InversionControl(Frozen):
    """Faces that nobody optimised, in the reconstructions' place."""

    name: Literal["random face", "best of pool"]
    cosine: Estimate | None = Field(description="median cosine with the target in the attacked space")
    at: list[InversionSuccess]


class Passes(Frozen):
    """Single pictures through the encoder and the prior."""

    encoder_forward: float
    encoder_backward: float
    prior_forward: float
    prior_backward: float
    seconds: float


class InversionCell(Frozen):
    """One attack on one space."""

    attack: str
    space: str
    settings: dict[str, float | str]
    knows: list[str] = Field(description="the threat model: what the attacker knew")
    gives: str = Field(description="pictures, or the recogniser whose templates they are")
    targets: int
    no_face: int = Field(description="reconstructions in which no face was found; they count as failures")
    reached: Estimate | None = Field(description="median cosine of the reconstruction with the target; null: templates")
    converged: bool | None = Field(
        description="whether that is at least the median of another real picture; if not, failing says nothing"
    )
    at: list[InversionSuccess]
    controls: list[InversionControl] = []
    each: Passes = Field(description="for one target")
    shared: Passes = Field(description="for all targets together: the pool, a map, a network")

    def point(self, far: float | None, judge: str = ALL_JUDGES) -> InversionSuccess | None:
        """One threshold and judge."""
        return next((one for one in self.at if (one.far, one.judge) == (far, judge)), None)


class InversionChange(Frozen):
    """Raw less erased, on the same targets: what erasing took away, in shares."""

    attack: str
    space: str
    far: FalseAcceptRate | None
    same: Estimate
    other: Estimate | None


class InversionCeiling(Frozen):
    """Other real pictures of the person against the attacked one: what a perfect attack would reach."""

    far: FalseAcceptRate | None
    judge: str
    other: Share


class InversionWorst(Frozen):
    """The worst case on one space: of half of the targets, the attack that was best on the other half."""

    space: str
    attacks: list[str] = Field(min_length=1, description="that were chosen")
    at: InversionSuccess


@dataclass(frozen=True)
class InversionHeadline:
    """The number that an inversion is quoted by: the worst case on the raw vectors."""

    cells: tuple[InversionCell, ...]
    """The attack; of two that were each the best on one half of the targets, both."""
    point: InversionSuccess

    @property
    def attack(self) -> str:
        """By name."""
        return " or ".join(cell.attack for cell in self.cells)

    @property
    def space(self) -> str:
        """That was attacked."""
        return self.cells[0].space

    @property
    def gives_pictures(self) -> bool:
        """Whether faces were made; else a recogniser's templates."""
        return any(cell.gives == "pictures" for cell in self.cells)

    @property
    def unconverged(self) -> bool:
        """Whether no chosen attack came near enough for a failure to mean anything."""
        return all(cell.converged is False for cell in self.cells)


class InversionResult(ToldFile):
    """inversion.json."""

    schema_: Literal["unface.inversion/1"] = Field(default="unface.inversion/1", alias="schema")
    encoder: Attacked
    people: TargetPeople
    prior: PriorFacts | None
    judges: list[InversionJudge] = Field(min_length=1)
    spaces: list[SpaceFacts]
    cells: list[InversionCell]
    worst_case: list[InversionWorst] = Field(default=[], description="by space and rate, all judges together")
    changes: list[InversionChange] = []
    ceiling: list[InversionCeiling]
    findings: list[Finding]
    not_measured: list[str] = []
    run: Run

    @model_validator(mode="after")
    def _spaces_of_cells(self) -> Self:
        known = {space.name for space in self.spaces}
        missing = next((cell.space for cell in self.cells if cell.space not in known), None)
        if missing is not None:
            raise ValueError(f"an attack is on space {missing!r}, which the file does not describe")
        for worst in self.worst_case:
            if any(self.cell(attack, worst.space) is None for attack in worst.attacks):
                raise ValueError(f"the worst case on space {worst.space!r} names an attack that was not run there")
        return self

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return all(finding.severity != "invalid" for finding in self.findings)

    @property
    def far(self) -> list[float]:
        """The rates there are, falling."""
        return sorted({point.far for cell in self.cells for point in cell.at if point.far is not None}, reverse=True)

    def cell(self, attack: str, space: str) -> InversionCell | None:
        """One attack on one space."""
        return next((one for one in self.cells if (one.attack, one.space) == (attack, space)), None)

    def worst(self, far: float, space: str = RAW) -> InversionHeadline | None:
        """The attack that was chosen on other targets; the largest of several measured rates would overstate it."""
        for worst in self.worst_case:
            if (worst.space, worst.at.far) == (space, far):
                cells = tuple(cell for cell in self.cells if cell.space == space and cell.attack in worst.attacks)
                return InversionHeadline(cells, worst.at)
        found = [
            InversionHeadline((cell,), point)
            for cell in self.cells
            if cell.space == space and (point := cell.point(far)) is not None
        ]
        return max(found, key=lambda one: inverted(one.point).value, default=None)

    @property
    def headline(self) -> InversionHeadline | None:
        """At FAR 1e-3, or the lowest rate there is, on the raw vectors or the first space."""
        rates = self.far
        if not rates:
            return None
        far = 1e-3 if 1e-3 in rates else rates[-1]
        names = [space.name for space in self.spaces]
        return self.worst(far, RAW if RAW in names else names[0])

    @property
    def verdict(self) -> str:
        """The headline in plain words."""
        headline = self.headline
        far = None if headline is None else headline.point.far
        if not self.valid and (far is None or not lacks_a_rate_alone(self.findings)):
            return f"These numbers cannot be used: {why_unusable(self.findings)}."
        if headline is None or far is None:
            return "Nothing was measured."
        point = headline.point
        share, at = inverted(point), one_in(far)
        target = "other photos of the person" if point.other is not None else "the photo it was made from"
        if not self.valid:
            return without_a_rate(self.findings, share, point.derangement.value, target)
        made = "face" if headline.gives_pictures else "face template"
        coarse = any(one.resolution == "coarse" for judge in self.judges for one in judge.thresholds if one.far == far)
        roughly = rough("coarse" if coarse else "resolved")
        if share.low > max(point.derangement.value, far):
            return (
                f"From a stored {self.encoder.name} vector, an attacker makes a {made} that matches {target} "
                f"{percent(share.value)} of the time, at {at}.{roughly}"
            )
        if all(one.converged is False for one in self.cells if one.space == headline.space):
            return f"No attack recovered a face at {at}, but none converged either: this says nothing about privacy."
        return (
            f"No attack turned a stored {self.encoder.name} vector into a face that matches {target} more often than "
            f"chance, at {at} ({percent(share.value)}, at most {percent(share.high)}).{roughly}"
        )

    @property
    def subject(self) -> str:
        """The attacked encoder, by name."""
        return self.encoder.name

    def readings(self) -> list[Reading]:
        """What ``unface diff`` and a history compare inversions by: the worst attack on each space."""
        headline, found = self.headline, []
        for space in self.spaces:
            for far in self.far:
                worst = self.worst(far, space.name)
                quoted = headline is not None and headline.point.far == far
                share = None if worst is None else inverted(worst.point)
                found.append(Reading("faces recovered", space.name, f"FAR {rate(far)}", share, headline=quoted))
        return found

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {
            "judges": ", ".join(judge.name for judge in self.judges),
            "attacks": ", ".join(dict.fromkeys(cell.attack for cell in self.cells)),
        }


def inverted(point: InversionSuccess) -> Share:
    """The share that counts: other pictures, or the attacked one where there are no others."""
    return point.other if point.other is not None else point.same
