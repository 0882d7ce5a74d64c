"""release.json: whether a synthetic set exposes its training people, ``unface.release/1``.

``unface.release`` builds these models itself, so that a number has one type from its computation to the page. No name
of a person is in the file: exposed people are listed in exposed.csv, for its owner alone.
"""

from os import PathLike
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from unface.output.write import write_files
from unface.result.file import FalseAcceptRate, Finding, Frozen, Listing, Run
from unface.result.numbers import Estimate, Share
from unface.result.readings import Reading, ToldFile
from unface.result.words import count, percent, rate

EXPOSED_FILE = "exposed.csv"
SURE = 0.01
"""A test counts as evidence below this p-value: a release runs several."""


FEWEST_HOLDOUT = 19
"""With fewer people the smallest p-value, 1 / (people + 1), is above the false-discovery rate of 5 %."""


class SetFacts(Frozen):
    """One of the three sets: counts and a hash, no names."""

    name: str
    sha256: str
    rows: int
    people: int | None = Field(description="null where rows name no people, as most synthetic sets")
    clustered: bool = Field(description="people were found by clustering, for want of labels")
    dim: int
    encoder: str | None
    weights_sha256: str | None
    notes: list[str] = []


class PermutationTest(Frozen):
    """A one-sided permutation test over people's labels, training or holdout."""

    p: float
    exact: bool = Field(description="the whole null distribution was computed")
    permutations: int | None = Field(description="random labellings, where it was not: p = (b + 1) / (m + 1)")

    @model_validator(mode="after")
    def _permutations_are_counted(self) -> Self:
        if not self.exact and self.permutations is None:
            raise ValueError("a test that is not exact has no number of permutations")
        return self


class Linking(Frozen):
    """Whether this encoder links real people at all: TAR over pairs of real pictures of one person."""

    far: FalseAcceptRate
    tar: Share
    above_chance: bool = Field(description="the interval's lower end is above the false-accept rate")


class MembershipResult(Frozen):
    """Share of synthetic faces whose nearest real person is a training person."""

    share: Share
    null: float = Field(description="training people as a share of all real people")
    test: PermutationTest


class ExposureResult(Frozen):
    """Training people who are listed as exposed."""

    fdr: float = Field(description="of the people listed, at most this share is listed by accident, on average")
    exposed: Share | None = Field(
        description="of all training people; null where the holdout is too small to list anybody"
    )
    least: int = Field(description="people who must be nearer than the whole holdout before anybody can be listed")
    pictures: int = Field(description="pictures of a person that are compared, at most; more would raise the maximum")
    smallest_p: float

    @property
    def listed(self) -> int:
        """People who are listed."""
        return 0 if self.exposed is None else self.exposed.numerator


class EnrichmentResult(Frozen):
    """The people nearest to synthetic faces, of both sides: how many of them are training people."""

    nearest: int = Field(description="the nearest 2 % of all people, at least ten")
    training: int
    expected: float = Field(description="training people among them, by chance")
    p: float = Field(description="exact, one-sided (hypergeometric); of this view alone")


class SeparationResult(Frozen):
    """How well the nearest synthetic similarity tells training people from holdout people."""

    auc: Estimate
    fpr: float
    tpr: Share | None = Field(description="at this false-positive rate; null where the holdout is too small for it")
    average_precision: float = Field(description="mAP; depends on the class ratio, see coin")
    coin: float = Field(description="average precision of a coin: the share of training people")


class CopiesResult(Frozen):
    """Synthetic faces as near to a training picture as only one in so many pairs of strangers is."""

    far: FalseAcceptRate
    cosine: float
    strangers: int = Field(description="pairs of real strangers behind the threshold")
    false_accepts: int
    resolution: Literal["resolved", "coarse"]
    copies: Share = Field(description="of the synthetic faces")
    holdout: int = Field(description="the same for holdout pictures")
    expected: float = Field(
        description="in training if nothing was copied: among as many pictures of the holdout, whole people drawn"
    )
    excess: Estimate = Field(description="(copies − expected) / synthetic faces")
    test: PermutationTest


class RiskyPicture(Frozen):
    """A synthetic picture that is near to a training picture."""

    id: str
    training: float = Field(description="cosine with the nearest training picture")
    holdout: float = Field(description="cosine with the nearest holdout picture")
    people: int = Field(description="exposed people that this trait exposes")
    is_copy: bool = Field(description="reaches the threshold at the lowest false-accept rate")


class ViewResult(Frozen):
    """One encoder, or one facial trait."""

    name: str
    linking: Linking | None = Field(description="null where no real person has two pictures")
    membership: MembershipResult
    exposure: ExposureResult
    enrichment: EnrichmentResult | None = Field(default=None, description="null in files of earlier versions")
    separation: SeparationResult
    copies: list[CopiesResult]
    riskiest: list[RiskyPicture]


class RiskResult(Frozen):
    """Retrieval risk R(A, S, K): share of real queries whose K nearest released faces contain their person."""

    pictures: Literal["same", "other", "any"]
    identities: int
    released: int
    k: int
    share: Share
    chance: float


class PaperResult(Frozen):
    """The trait privacy score of paper 003, of one trait or of all together, and what it measures."""

    trait: str
    components: int = Field(description="of the mixture, by evidence")
    average_precision: float = Field(description="mAP of telling members from synthetic faces, as published")
    accuracy: float = Field(description="at γ")
    flagged: float = Field(description="share of synthetic faces that the score says are in the training set")
    fresh: float = Field(description="mAP with holdout people in the place of members, beside their own pictures")
    fresh_auc: float = Field(description="AUC of members over such holdout people; 0.5: membership does not show")
    person_left_out: float = Field(description="mAP with each member's own person left out, not the picture alone")


class ExchangeabilityResult(Frozen):
    """Whether a classifier can separate training pictures from holdout pictures."""

    auc: float
    limit: float
    people: int = Field(description="of each side")
    holds: bool
    needed: int | None = Field(
        default=None, description="people of each side with whom a shift of AUC 0.6 is found with a chance of 0.8"
    )

    @property
    def testable(self) -> bool:
        """Whether there were enough people to find a difference that matters; a difference that was found counts."""
        return not self.holds or self.needed is None or self.people >= self.needed


class ExactCopies(Frozen):
    """Synthetic faces with exactly the vector of a real picture, by the first view."""

    faces: int = Field(default=0, description="of a training picture")
    people: int = Field(default=0, description="training people they show")
    holdout: int = Field(default=0, description="faces with exactly the vector of a holdout picture")

    @property
    def found(self) -> bool:
        """Whether faces were copied; vectors so coarse that strangers collide do so in the holdout too."""
        return self.faces > self.holdout


class ReleaseResult(ToldFile):
    """release.json."""

    schema_: Literal["unface.release/1"] = Field(default="unface.release/1", alias="schema")
    synthetic: SetFacts
    training: SetFacts
    holdout: SetFacts
    exchangeable: ExchangeabilityResult | None = Field(description="null where there are too few people to tell")
    views: list[ViewResult] = Field(
        min_length=1, description="the first one decides; those that do not link people are left out"
    )
    fused: ExposureResult | None = Field(description="all views together; null where there is one")
    overall: PermutationTest | None = Field(
        default=None, description="the one test behind the verdict, of all measurements; null in earlier files"
    )
    exact: ExactCopies = ExactCopies()
    retrieval: list[RiskResult] = Field(description="empty where released rows name no training people")
    paper: list[PaperResult] = Field(default=[], description="only where asked for; no verdict rests on it")
    findings: list[Finding]
    not_measured: list[str] = []
    run: Run

    @model_validator(mode="after")
    def _people_of_both_sides(self) -> Self:
        if None in (self.training.people, self.holdout.people):
            raise ValueError("training or holdout has no number of people")
        return self

    @property
    def main(self) -> ViewResult:
        """The view that the verdict is about."""
        return self.views[0]

    @property
    def exposure(self) -> ExposureResult:
        """The one that lists most people: the main view, all together, or a single view that passes the correction."""
        lists = [self.fused or self.main.exposure, self.main.exposure]
        return max(lists + [one.exposure for one in self.enriched], key=lambda one: one.listed)

    @property
    def corrected(self) -> dict[str, float]:
        """By view: the p-value of its enrichment, corrected for the number of views (Holm)."""
        tests = sorted((one.enrichment.p, one.name) for one in self.views if one.enrichment is not None)
        found, highest = dict[str, float](), 0.0
        for rank, (p, name) in enumerate(tests):
            highest = max(highest, min(p * (len(tests) - rank), 1.0))
            found[name] = highest
        return found

    @property
    def enriched(self) -> list[ViewResult]:
        """Views whose nearest people are training people, after the correction: one copied trait is enough."""
        corrected = self.corrected
        return [one for one in self.views if corrected.get(one.name, 1.0) < SURE]

    @property
    def comparable(self) -> bool:
        """Whether there is no evidence against the holdout."""
        return self.exchangeable is None or self.exchangeable.holds

    @property
    def confirmed(self) -> bool:
        """Whether all measurements together show more than chance: only then a set is advised against."""
        return self.overall is None or self.overall.p < SURE

    @property
    def evidence(self) -> list[str]:
        """What shows exposure, in words."""
        member, found = self.main.membership, list[str]()
        if self.exact.found:
            faces = count(self.exact.faces, "synthetic face is", "synthetic faces are")
            people = count(self.exact.people, "training person", "training people")
            found.append(f"{faces} an exact copy of a picture of {people}")
        if not self.comparable or not self.confirmed:  # p-values do not hold, or are those of chance
            return found
        if member.test.p < SURE:
            found.append(
                f"{percent(member.share.value)} of the synthetic faces are nearest to a training person, where "
                f"{percent(member.null)} is chance (p = {member.test.p:.2g})"
            )
        for view in self.enriched:
            near = view.enrichment
            assert near is not None
            found.append(
                f"by {view.name}, {near.training:,} of the {near.nearest:,} people nearest to synthetic faces "
                f"are training people, where {near.expected:.1f} is chance (p = {self.corrected[view.name]:.2g})"
            )
        sure = [one for one in self.main.copies if one.test.p < SURE]
        if sure:
            one = min(sure, key=lambda copies: copies.far)
            found.append(
                f"{count(one.copies.numerator, 'synthetic face is', 'synthetic faces are')} as near to a training "
                f"picture as one in {round(1 / one.far):,} pairs of strangers is, where the holdout leads to expect "
                f"{one.expected:.1f} (p = {one.test.p:.2g})"
            )
        if not found and self.overall is not None:
            found.append(
                "synthetic faces are nearer to training people than to holdout people, all measurements taken together "
                f"(p = {self.overall.p:.2g})"
            )
        return found

    @property
    def decision(self) -> Literal["exposes people", "leaks", "no evidence", "not comparable"]:
        """What the numbers say, in one word."""
        if not self.comparable:
            return "leaks" if self.evidence else "not comparable"
        if self.exposure.listed and self.confirmed:
            return "exposes people"
        return "leaks" if self.evidence else "no evidence"

    @property
    def verdict(self) -> str:
        """The decision in plain words."""
        exposure, people = self.exposure, self.training.people or 0
        match self.decision:
            case "not comparable":
                return (
                    "These numbers cannot decide: training and holdout pictures differ by more than their people. "
                    "Give a holdout from the same source, with the same camera and crop."
                )
            case "exposes people":
                return (
                    f"Do not publish this set as it is: it exposes {exposure.listed:,} of its "
                    f"{count(people, 'training person', 'training people')}{self._alone(exposure)}. Of these "
                    f"{exposure.listed:,}, on average at most {percent(exposure.fdr)} are false alarms."
                )
            case "leaks":
                said = f"Do not publish this set as it is: {'; '.join(self.evidence)}."
                if self.exact.found:
                    return said
                needed = f"with this holdout that takes {count(exposure.least, 'person', 'people')}"
                if exposure.least > people:
                    needed = "this holdout is too small to list anybody"
                return f"{said} No single person could be listed; {needed}."
        return self._nothing_shown(exposure)

    def _nothing_shown(self, exposure: ExposureResult) -> str:
        """What "no evidence" is worth."""
        if exposure.listed and self.overall is not None:
            return (
                f"No evidence that this set as a whole exposes its training people (p = {self.overall.p:.2g}), but "
                f"{count(exposure.listed, 'person is', 'people are')} listed as exposed: look at their pictures. "
                "Of sets that expose nobody, at most one in twenty has such a list."
            )
        if exposure.least > (self.training.people or 0):
            return (
                "No evidence that this set exposes its training people, but this holdout is too small to list anybody: "
                f"it has {count(self.holdout.people or 0, 'person', 'people')}, and at least {FEWEST_HOLDOUT} are "
                "needed."
            )
        return (
            f"No evidence that this set exposes its training people. This holdout can only show exposure of "
            f"{count(exposure.least, 'person', 'people')} or more; fewer can go unnoticed."
        )

    def _alone(self, exposure: ExposureResult) -> str:
        """The view that a list is of, where it is neither the main one nor all together."""
        if exposure is self.fused or exposure is self.main.exposure:
            return ""
        return next(f" by {one.name} alone" for one in self.views if one.exposure is exposure)

    @property
    def valid(self) -> bool:
        """Whether the numbers may be used."""
        return self.comparable and all(finding.severity != "invalid" for finding in self.findings)

    @property
    def subject(self) -> str:
        """The synthetic set, by name."""
        return self.synthetic.name

    def readings(self) -> list[Reading]:
        """What ``unface diff`` and a history compare releases by."""
        main = self.main
        exposed = self.exposure.exposed
        found = [Reading("nearest is a training person", main.name, "all faces", main.membership.share)]
        if exposed is not None:
            found.insert(0, Reading("people exposed", "", f"FDR {percent(self.exposure.fdr)}", exposed, headline=True))
        found += [Reading("copies", main.name, f"FAR {rate(one.far)}", one.copies) for one in main.copies]
        return [*found, Reading("separation, AUC", main.name, "people", main.separation.auc, is_share=False)]

    def conditions(self) -> dict[str, str]:
        """Settings that have to agree for numbers to be comparable."""
        return {"views": ", ".join(view.name for view in self.views)}

    def save(
        self,
        folder: str | PathLike[str],
        page: str | None = None,
        *,
        exposed: Listing | None = None,
        shows_faces: bool = False,
    ) -> Path:
        """Write release.json, and before it its page and exposed.csv where people are listed; returns the path.

        The listing, and a page that shows faces, are readable by their owner alone.
        """
        listing = None if exposed is None else exposed.csv()
        pages = {} if page is None else {self.file_kind().page: page}
        private: dict[str, str | None] = {**(pages if shows_faces else {}), EXPOSED_FILE: listing}
        texts = {**({} if shows_faces else pages), self.file_kind().file: self.file_text()}
        write_files(Path(folder), texts, private)
        return Path(folder) / self.file_kind().file
