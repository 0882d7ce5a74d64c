"""Translate: can these vectors be turned into a face recogniser's template of the person, by a linear map?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.result.audit import AuditResult
from unface.result.file import Finding, Frozen, Given, note
from unface.result.numbers import Estimate, Rate, Share
from unface.result.parts import Option, Part, Section
from unface.result.readings import AS_GIVEN, Reading
from unface.result.words import one_in, percent, rate

if TYPE_CHECKING:
    from unface.auditing.bench import Bench
    from unface.auditing.translate.run import Pairs
    from unface.data import Source


class TranslatedAt(Frozen):
    """Templates of test people at one false-accept rate."""

    far: float
    resolution: Literal["resolved", "coarse"]
    threshold: float = Field(description="that this share of calibrate strangers' pictures reaches")
    same: Share = Field(description="accepted against the recogniser's vector of the very picture")
    other: Share | None = Field(description="accepted against other pictures of the person; null where there are none")
    chance: Rate = Field(description="accepted against pictures of everybody else")
    change: Estimate | None = Field(description="of other less that of the raw space, paired; null for the raw space")


class TranslatedSpace(Frozen):
    """One space; the map is learned anew in each."""

    space: str
    control: bool
    strength: float = Field(description="regularisation of the map, chosen on calibrate people")
    at: list[TranslatedAt]


class TranslateCeiling(Frozen):
    """Two pictures of one test person by the recogniser itself: what a perfect template would reach."""

    far: float
    other: Share | None


class TranslateResults(Frozen):
    """The raw space, then each eraser's and each control's."""

    recogniser: Given
    train_pictures: int = Field(description="that the map was learned on")
    spaces: list[TranslatedSpace]
    ceiling: list[TranslateCeiling]


class Translate(Part):
    """``second``: a recogniser's vectors of the same pictures, by id; anything ``read_embeddings`` takes."""

    name = "translate"
    schema = TranslateResults

    def __init__(self, second: Source) -> None:
        self.second = second

    def before(self, bench: Bench) -> Pairs:
        """Match the pictures of both sets, and refuse what cannot be matched."""
        from unface.auditing.translate.run import match_pictures

        return match_pictures(bench, self.second)

    def run(self, bench: Bench, ready: Pairs) -> TranslateResults:
        from unface.auditing.translate.run import translate_spaces

        return translate_spaces(bench, ready)

    @classmethod
    def of(cls, result: AuditResult) -> TranslateResults | None:
        """The section of an audit."""
        section = result.parts.get(cls.name)
        return section if isinstance(section, TranslateResults) else None

    @classmethod
    def readings(cls, result: AuditResult) -> list[Reading]:
        found = cls.of(result)
        return [
            Reading(
                "template recovered",
                AS_GIVEN if one.space == result.raw.name else one.space,
                f"FAR {rate(at.far)}",
                at.other or at.same,
            )
            for one in (found.spaces if found else [])
            if not one.control
            for at in one.at
        ]

    @classmethod
    def findings(cls, result: AuditResult) -> list[Finding]:
        found = cls.of(result)
        if found is None:
            return []
        point = headline(found.spaces[0])
        share = point.other or point.same
        if share.low <= 3 * max(point.chance.value, point.far):
            return []
        what = "other pictures of the same person" if point.other else "the same picture"
        text = (
            f"A linear map turns these vectors into {_name(found)} templates that match {what} {percent(share.value)} "
        )
        text += f"of the time, at {one_in(point.far)}. Learning it took pictures, but no identity labels."
        return [note("translate", text)]

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        found = cls.of(result)
        if found is None:
            return ["templates of a face recogniser"]
        from unface.auditing.translate.page import section

        return [section(found)]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        found = cls.of(result)
        if found is None:
            return []
        name = found.recogniser.name
        return [Option("--translate", (name,), value=f"unface.auditing.Translate({name!r})")]


def headline(space: TranslatedSpace) -> TranslatedAt:
    """At FAR 1e-3, or the lowest rate there is."""
    return next((point for point in space.at if point.far == 1e-3), space.at[-1])


def _name(found: TranslateResults) -> str:
    return found.recogniser.encoder or f"'{found.recogniser.name}'"


def ceiling_words(found: TranslateResults) -> str:
    """What a perfect template would reach."""
    there = [f"{percent(one.other.value)} at FAR {rate(one.far)}" for one in found.ceiling if one.other is not None]
    return f"Two real pictures of one person: {', '.join(there)}." if there else ""


PART = Translate
