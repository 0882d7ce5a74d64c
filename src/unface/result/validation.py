"""validation.json: what a face system that only answers with a score reveals, ``unface.validation/1``.

``unface.validate`` builds these models itself, so that a number has one type from its computation to the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field, field_validator

from unface.result.file import (
    Chart,
    FalseAcceptRate,
    Finding,
    Frozen,
    ResultFile,
    Run,
    lacks_a_rate_alone,
    why_unusable,
)
from unface.result.numbers import Estimate, Share
from unface.result.readings import Reading
from unface.result.words import count, one_in, percent, rate, rough

if TYPE_CHECKING:
    import pandas

ALL_JUDGES = "all"
"""The judge of a point that counts every judge's verdicts together."""


class TargetFacts(Frozen):
    """What was asked. No password, no key, no picture."""

    name: str
    kind: str = Field(description="function, command, http, built-in, or the name of an entry point")
    decisions_only: bool
    local: bool = Field(description="whether it runs on this machine")
    authorised_by: str | None = Field(description="who allowed it; needed where it is not local")


class Enrolled(Frozen):
    """Who was enrolled: counts and a hash, no names."""

    source: str
    generated: bool = Field(description="people who do not exist")
    people: int
    pictures: int = Field(description="of all of them: one enrolled, the others to judge by")
    sha256: str
    notes: list[str] = []


class Attacker(Frozen):
    """What the attacker brought."""

    encoder: str = Field(description="its own; what it recovers is a template of this encoder")
    queries: str = Field(description="where its faces come from")
    generated: bool
    pictures: int


class Asked(Frozen):
    """The ledger in numbers, over all people."""

    budget: int = Field(description="questions for each person")
    counted: int = Field(description="questions, counted before each was sent")
    answered: int
    lost: int = Field(description="sent, or about to be sent, without an answer; never sent again")
    people_finished: int
    ended: str | None = Field(description="why the run ended early; null where the whole budget was used")
    sha256: str = Field(description="of the ledger file")


class JudgeThreshold(Frozen):
    """The cosine that a pair must reach at one false-accept rate."""

    far: FalseAcceptRate
    cosine: float
    impostors: int
    false_accepts: int
    resolution: Literal["resolved", "coarse"]


class JudgeFacts(Frozen):
    """One judge and what it rests on."""

    name: str
    independent: bool = Field(description="neither the target's encoder nor the attacker's")
    thresholds: list[JudgeThreshold] = Field(description="for pictures")
    template_thresholds: list[JudgeThreshold] = Field(
        default=[],
        description="for templates, where they are judged through a map; empty where thresholds are the same",
    )
    notes: list[str] = []


class Success(Frozen):
    """What an attack reached after a number of questions for each person, at one rate, by one judge or by all."""

    queries: int
    far: FalseAcceptRate
    judge: str
    same: Share | None = Field(description="accepted against the enrolled picture")
    other: Share | None = Field(description="accepted against other pictures of the person; null where there are none")
    chance: float = Field(description="the same, judged against other enrolled people")
    attacks: list[str] = Field(default=[], description="of the worst case: the attacks that were chosen")


class AttackResult(Frozen):
    """One attack over the number of questions."""

    name: str
    adaptive: bool
    settings: list[dict[str, float]] = Field(description="chosen, each on people it was not used for")
    at: list[Success]

    def point(self, queries: int, far: float, judge: str = ALL_JUDGES) -> Success | None:
        """One point of the curve."""
        wanted = (queries, far, judge)
        return next((one for one in self.at if (one.queries, one.far, one.judge) == wanted), None)


class Ceiling(Frozen):
    """Other pictures of the person in the attack's place: what a perfect attack would reach."""

    far: FalseAcceptRate
    judge: str
    other: Share


class Hardening(Frozen):
    """A change to the target's answers, and what it costs the attacker."""

    measure: str = Field(description="in words: scores rounded to 0.1, decisions only, …")
    applies_to: Literal["answers of this run", "built-in target"]
    far: FalseAcceptRate
    other: Share | None = Field(description="best attack at the whole budget")
    queries_to_half: Estimate | None = Field(description="until half of the people are recovered; null: not reached")
    largest: int = Field(description="questions that were tried at most")
    note: str = ""


@dataclass(frozen=True)
class ValidationHeadline:
    """The number that a validation is quoted by: the worst attack at the largest number of questions."""

    attack: str
    """Its name; of two that were each the best on one half of the people, both."""
    point: Success


class ValidationResult(ResultFile):
    """validation.json."""

    schema_: Literal["unface.validation/1"] = Field(default="unface.validation/1", alias="schema")
    target: TargetFacts
    enrolled: Enrolled
    attacker: Attacker
    asked: Asked
    judges: list[JudgeFacts] = Field(min_length=1)
    attacks: list[AttackResult]
    worst_case: AttackResult | None = Field(
        default=None,
        description="at each number of questions, of half of the people, the attack that was best on the other half",
    )
    shuffled: list[AttackResult] = Field(description="control: the same attacks on answers in another order")
    ceiling: list[Ceiling]
    hardening: list[Hardening] = []
    findings: list[Finding]
    not_measured: list[str] = []
    run: Run

    @field_validator("attacks")
    @classmethod
    def _named_once(cls, attacks: list[AttackResult]) -> list[AttackResult]:
        if len({attack.name for attack in attacks}) < len(attacks):
            raise ValueError("two attacks have one name")
        return attacks

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return all(finding.severity != "invalid" for finding in self.findings)

    @property
    def far(self) -> list[float]:
        """The rates there are, falling."""
        return sorted({point.far for attack in self.attacks for point in attack.at}, reverse=True)

    def worst(self, far: float, queries: int) -> ValidationHeadline | None:
        """The attack that was chosen on other people; the largest of several measured rates would overstate it."""
        candidates = [self.worst_case] if self.worst_case is not None else self.attacks
        found = [
            ValidationHeadline(" or ".join(point.attacks) or attack.name, point)
            for attack in candidates
            if (point := attack.point(queries, far)) is not None and measured(point) is not None
        ]
        return max(found, key=lambda one: _value(one.point), default=None)

    @property
    def headline(self) -> ValidationHeadline | None:
        """At FAR 1e-3, or the lowest rate there is, after as many questions as there were."""
        rates = self.far
        if not rates:
            return None
        far = 1e-3 if 1e-3 in rates else rates[-1]
        numbers = {point.queries for attack in self.attacks for point in attack.at if point.far == far}
        return self.worst(far, max(numbers))

    @property
    def verdict(self) -> str:
        """The headline in plain words."""
        headline = self.headline
        share = None if headline is None else measured(headline.point)
        if not self.valid and (headline is None or share is None or not lacks_a_rate_alone(self.findings)):
            return f"These numbers cannot be used: {why_unusable(self.findings)}."
        if headline is None or share is None:
            return "Nothing was measured."
        point = headline.point
        target = "other photos of that person" if point.other is not None else "the enrolled photo"
        if not self.valid:
            return without_a_rate(self.findings, share, point.chance, target)
        at = f"{one_in(point.far)}"
        known = [one for judge in self.judges for one in (*judge.thresholds, *judge.template_thresholds)]
        coarse = any(one.resolution == "coarse" for one in known if one.far == point.far)
        roughly = rough("coarse" if coarse else "resolved")
        if share.low <= max(point.chance, point.far):
            return (
                f"After {count(point.queries, 'question')} about a person, no attack recovered a face template better "
                f"than chance, at {at} ({percent(share.value)}, at most {percent(share.high)}).{roughly}"
            )
        return (
            f"After {count(point.queries, 'question')} about a person, an attacker recovers a face template that "
            f"matches {target} {percent(share.value)} of the time, at {at}.{roughly}"
        )

    @property
    def subject(self) -> str:
        """The target, by name."""
        return self.target.name

    def readings(self) -> list[Reading]:
        """What ``unface diff`` and a history compare validations by: the worst attack after so many questions."""
        headline, found = self.headline, []
        points = [point for attack in self.attacks for point in attack.at]
        for far in self.far:
            for queries in sorted({point.queries for point in points if point.far == far}):
                worst = self.worst(far, queries)
                quoted = headline is not None and (headline.point.far, headline.point.queries) == (far, queries)
                at = f"{count(queries, 'question')}, FAR {rate(far)}"
                share = None if worst is None else measured(worst.point)
                found.append(Reading("recovered", "", at, share, headline=quoted))
        return found

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {
            "attacker's encoder": self.attacker.encoder,
            "judges": ", ".join(judge.name for judge in self.judges),
            "attacks": ", ".join(attack.name for attack in self.attacks),
        }

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each attack, number of questions, false-accept rate, judge and kind of picture (needs pandas)."""
        import pandas

        rows = []
        for attack in self.attacks:
            for point in attack.at:
                for pictures, share in (("other", point.other), ("same", point.same)):
                    if share is not None:
                        rows.append(
                            {
                                "attack": attack.name,
                                "queries": point.queries,
                                "far": point.far,
                                "judge": point.judge,
                                "pictures": pictures,
                                "recovered": share.value,
                                "low": share.low,
                                "high": share.high,
                                "accepted": share.numerator,
                                "compared": share.denominator,
                                "chance": point.chance,
                            }
                        )
        return pandas.DataFrame(rows)

    def plot(self) -> Chart:
        """An Altair chart: what each attack recovers over the number of questions."""
        # By name, since pages stand above result files.
        return cast(Chart, import_module("unface.report.notebook").validation_chart(self))

    def _repr_html_(self) -> str:
        return cast(str, import_module("unface.report.notebook").validation_html(self))

    def __repr__(self) -> str:
        state = "" if self.valid else "INVALID, "
        return f"<ValidationResult {state}{self.target.name}: {self.verdict} {count(len(self.findings), 'finding')}>"

    __str__ = __repr__


def without_a_rate(findings: Sequence[Finding], share: Share, chance: float, target: str) -> str:
    """What may be concluded where success cannot be stated at a false-accept rate."""
    matched = f"what the attack makes matches {target} {percent(share.value)} of the time, and other people "
    matched += percent(chance)
    said = f"No rate of success can be stated: {why_unusable(findings)}."
    if share.low > chance:
        return f"{said} What can be said: the attack recovers something of these people, since {matched}."
    return f"{said} That it recovers anything of these people cannot be said either: {matched}."


def measured(point: Success) -> Share | None:
    """The share that counts: other pictures, or the enrolled one where there are no others."""
    return point.other if point.other is not None else point.same


def _value(point: Success) -> float:
    share = measured(point)
    return -1.0 if share is None else share.value
