"""protection.json: what a protected face set is good for, and who can be linked to it, ``unface.protection/1``."""

import math
import statistics
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from unface.result.file import FalseAcceptRate, Finding, Frozen, Run
from unface.result.numbers import Estimate, Share
from unface.result.readings import Reading, ToldFile
from unface.result.release import RiskResult
from unface.result.words import count, one_in, percent, rate

PAPER_K = 2
"""Nearest faces of the retrieval risk that paper 004 quotes."""
_LEVEL = 0.95
# Student's t, two-sided 95 %, by degrees of freedom; from ten on the value at ten is used, which is wider.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)

AttackerKind = Literal["recogniser", "trained on the release", "fine-tuned", "imitation"]


_Accuracy = Annotated[float, Field(ge=0, le=1)]


class PairsResult(Frozen):
    """Accuracy of recognisers that learned from a set, by the 10-fold rule; one recogniser for each seed."""

    name: str
    pairs: int
    seeds: list[int] = Field(min_length=1)
    by_seed: list[list[_Accuracy]] = Field(description="accuracy of each fold, for each seed")

    @model_validator(mode="after")
    def _folds_of_each_seed(self) -> Self:
        lengths = {len(folds) for folds in self.by_seed}
        if len(self.seeds) != len(self.by_seed) or len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"{len(self.seeds)} seeds do not have equally many folds each")
        return self

    @property
    def by_fold(self) -> list[float]:
        """Mean over seeds."""
        return [statistics.fmean(fold) for fold in zip(*self.by_seed, strict=True)]

    @property
    def accuracy(self) -> Estimate:
        """The mean over folds and seeds."""
        found = spread(self.by_seed)
        return Estimate(found.value, max(0.0, found.low), min(1.0, found.high), found.level)

    def less(self, other: "PairsResult") -> Estimate | None:
        """This accuracy less another one, fold by fold over the seeds of both; None where they share no seed."""
        mine, theirs = (dict(zip(one.seeds, one.by_seed, strict=True)) for one in (self, other))
        shared = [seed for seed in self.seeds if seed in theirs]
        if not shared or (self.name, len(self.by_fold)) != (other.name, len(other.by_fold)):
            return None
        return spread([[a - b for a, b in zip(mine[seed], theirs[seed], strict=True)] for seed in shared])


def spread(by_seed: list[list[float]]) -> Estimate:
    """The mean of seeds × folds. Folds and, where there are several, seeds are sources of noise that add up."""
    folds = [statistics.fmean(fold) for fold in zip(*by_seed, strict=True)]
    half = _half(folds) ** 2
    if len(by_seed) > 1:
        half += _half([statistics.fmean(one) for one in by_seed]) ** 2
    value = statistics.fmean(folds)
    return Estimate(value, value - math.sqrt(half), value + math.sqrt(half), _LEVEL)


def _half(values: list[float]) -> float:
    """Half of Student's interval of a mean."""
    if len(values) < 2:
        return 0.0
    return _T[min(len(values) - 1, len(_T)) - 1] * statistics.stdev(values) / math.sqrt(len(values))


class AttackerResult(Frozen):
    """TAR between real and released pictures of people who neither set the threshold nor chose the worst attacker."""

    name: str
    kind: AttackerKind
    far: FalseAcceptRate
    cosine: float = Field(description="threshold, set on pairs of strangers among calibrate people")
    achieved_far: float = Field(description="on the measured people: what chance would link")
    same: Share = Field(description="with what was made of the same picture")
    other: Share | None = Field(description="with what was made of another picture; null where people have only one")
    calibrate_other: float | None = Field(description="the same on calibrate people, by which the worst is chosen")
    retrieval: list[RiskResult]

    def risk(self, k: int, pictures: str) -> RiskResult | None:
        """Among all measured people."""
        here = [one for one in self.retrieval if (one.k, one.pictures) == (k, pictures)]
        return max(here, key=lambda one: one.identities, default=None)


class MethodResult(Frozen):
    """One way to protect the same pictures, at one mask ratio."""

    name: str
    ratio: float | None = Field(description="share of each picture that is hidden; null where nothing is")
    audited: bool = Field(default=False, description="the release that this file is about; the others stand beside it")
    pictures: int
    people: int
    utility: list[PairsResult]
    attackers: list[AttackerResult]

    @property
    def label(self) -> str:
        """With its ratio."""
        return self.name if self.ratio is None else f"{self.name}, {percent(self.ratio)} hidden"

    @property
    def worst(self) -> AttackerResult | None:
        """The attacker who links most calibrate people; never chosen by the people who are measured."""
        return max(self.attackers, key=lambda one: one.calibrate_other or 0.0, default=None)

    @property
    def accuracy(self) -> Estimate | None:
        """On the first set of pairs."""
        return self.utility[0].accuracy if self.utility else None


class SecondRelease(Frozen):
    """What a second release of the same pictures adds, for one attacker who knows which belong together."""

    attacker: str
    same_seed_shown: float = Field(description="share of patches that either release shows, with the same mask seed")
    other_seed_shown: float = Field(description="the same with another mask seed")
    one: Share = Field(description="TAR with what was made of another picture, from one release")
    both: Share = Field(description="from the mean of both releases' vectors")


class ReleaseFacts(Frozen):
    """The audited release: counts and hashes, no names."""

    name: str
    sha256: str
    people: int
    pictures: int
    preset: str
    loss: str
    recogniser: str | None
    model_sha256: str


class ProtectionResult(ToldFile):
    """protection.json."""

    schema_: Literal["unface.protection/1"] = Field(default="unface.protection/1", alias="schema")
    release: ReleaseFacts
    calibrate_people: int
    measured_people: int
    methods: list[MethodResult] = Field(min_length=1)
    second: SecondRelease | None
    findings: list[Finding]
    not_measured: list[str] = []
    run: Run

    @property
    def audited(self) -> MethodResult:
        """The release."""
        return next((one for one in self.methods if one.audited), self.methods[0])

    @property
    def originals(self) -> MethodResult | None:
        """The ceiling: the pictures as they were."""
        return next((one for one in self.methods if one.name == "originals"), None)

    @property
    def plain(self) -> MethodResult | None:
        """A plain masked autoencoder at the audited mask ratio."""
        here = [one for one in self.methods if one.name == "plain MAE" and one.ratio == self.audited.ratio]
        return here[0] if here else None

    @property
    def links(self) -> bool:
        """Whether the worst attacker links people beyond chance."""
        worst = self.audited.worst
        share = None if worst is None else worst.other or worst.same
        return worst is not None and share is not None and share.low > max(worst.far, worst.achieved_far)

    @property
    def verdict(self) -> str:
        """Who is linked, and what the release is good for."""
        method, worst, before = self.audited, self.audited.worst, self.originals
        said = []
        if worst is not None:
            share, photo = (worst.other, "another photo") if worst.other else (worst.same, "the original photo")
            assert share is not None
            if self.links:
                said.append(
                    f"This release does not fully hide who is in it. Given {photo} of a person, the strongest attacker "
                    f"links {percent(share.value)} of the released faces to them, at {one_in(worst.far)}"
                    f"{self._ceiling(worst)}."
                )
            else:
                said.append(
                    f"Given {photo} of a person, the strongest attacker links {percent(share.value)} of the released "
                    f"faces to them, at {one_in(worst.far)}. That is not more than chance; the true share "
                    f"may be as high as {percent(share.high)}{self._ceiling(worst)}."
                )
        if method.utility:
            found = method.utility[0]
            ceiling = None if before is None else before.accuracy
            beside = "" if ceiling is None else f"; trained on the originals, {percent(ceiling.value)}"
            right = f"judges {percent(found.accuracy.value)} of photo pairs correctly ({found.name}; guessing: 50 %)"
            said.append(f"A recogniser trained on this set {right}{beside}.")
        return " ".join(said) or "Nothing was measured."

    def _ceiling(self, worst: AttackerResult) -> str:
        before = None if self.originals is None else self.originals.worst
        if before is None or before.other is None or worst.other is None:
            return ""
        return f". With the originals: {percent(before.other.value)}"

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return all(finding.severity != "invalid" for finding in self.findings)

    @property
    def subject(self) -> str:
        """The release, by name."""
        return self.release.name

    def readings(self) -> list[Reading]:
        """What ``unface diff`` and a history compare protections by."""
        found = []
        worst = self.audited.worst
        if worst is not None:
            at = f"FAR {rate(worst.far)}"
            found.append(Reading("TAR, another picture", "release", at, worst.other, headline=True))
            found.append(Reading("TAR, the same picture", "release", at, worst.same))
            found += [
                Reading("retrieval risk", "release", f"K = {one.k}, {one.pictures} picture", one.share)
                for one in worst.retrieval
                if one.identities == max(each.identities for each in worst.retrieval)
            ]
        return [
            *found,
            *(Reading("accuracy", "release", one.name, one.accuracy, "higher") for one in self.audited.utility),
        ]

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {
            "attackers": ", ".join(one.name for one in self.audited.attackers),
            "people": count(self.measured_people, "person", "people"),
        }
