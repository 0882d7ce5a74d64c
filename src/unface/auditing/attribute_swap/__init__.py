"""Attribute swap: vectors moved until they tell the other value of an attribute; still the same person?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unface.result.audit import AuditResult
from unface.result.file import Frozen
from unface.result.numbers import Share
from unface.result.parts import Option, Part, Section
from unface.result.words import count, percent, rate

if TYPE_CHECKING:
    from unface.auditing.attribute_swap.run import TwoValued
    from unface.auditing.bench import Bench
    from unface.page.tables import Cell


class SwapInSpace(Frozen):
    """One space."""

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


class SwapResults(Frozen):
    """The raw space, then each eraser's."""

    spaces: list[SwapInSpace]


class AttributeSwap(Part):
    """``column``: one of two values, such as 'smiling'."""

    name = "attribute_swap"
    schema = SwapResults

    def __init__(self, column: str) -> None:
        self.column = column

    def before(self, bench: Bench) -> tuple[TwoValued, SwapInSpace]:
        """Refuse a column without two values, and vectors whose attribute cannot be learned."""
        from unface.auditing.attribute_swap.run import swap_in_space, two_valued

        attribute = two_valued(bench.prepared, self.column)
        return attribute, swap_in_space("raw", bench.prepared.embeddings.vectors, bench, attribute)

    def run(self, bench: Bench, ready: tuple[TwoValued, SwapInSpace]) -> SwapResults:
        from unface.auditing.attribute_swap.run import swap_erased

        attribute, raw = ready
        return SwapResults(spaces=[raw, *swap_erased(bench, attribute)])

    @classmethod
    def of(cls, result: AuditResult) -> list[SwapInSpace]:
        """The swaps of an audit."""
        section = result.parts.get(cls.name)
        return section.spaces if isinstance(section, SwapResults) else []

    @classmethod
    def page(cls, result: AuditResult) -> list[Section | str]:
        from unface.page.tables import table
        from unface.page.templates import render

        if not cls.of(result):
            return ["attribute swaps"]
        columns = ("attribute, space", "both", "still the same person", "attribute flipped", "attribute read before")
        caption = "Vectors moved until they tell the other value of an attribute"
        text = "Vectors are moved until a classifier reads the other value of an attribute. "
        text += "Both at once: the attribute was changed and the person was not."
        drawn = table(caption, columns, [_row(swap) for swap in cls.of(result)])
        return [Section("swaps", "Attribute swaps", render("tables.jinja", tables=[drawn], text=text))]

    @classmethod
    def repeat(cls, result: AuditResult) -> list[Option]:
        if not cls.of(result):
            return []
        column = cls.of(result)[0].attribute
        return [Option("--attribute-swap", (column,), value=f"unface.auditing.AttributeSwap({column!r})")]


def _row(swap: SwapInSpace) -> tuple[Cell, ...]:
    from unface.page.tables import Cell, bounded, pairs

    coarse = ", coarse" if swap.resolution == "coarse" else ""
    at = f"{count(swap.directions, 'direction')}, FAR {rate(swap.far)}{coarse}"
    guess = f"{pairs(swap.accuracy)}; guessing: {percent(swap.majority)}"
    return (
        Cell(f"{swap.attribute}, {swap.space}", at),
        Cell(bounded(swap.joint), pairs(swap.joint), strong=True),
        Cell(bounded(swap.accept), pairs(swap.accept)),
        Cell(bounded(swap.flip), pairs(swap.flip)),
        Cell(bounded(swap.accuracy), guess if swap.trusted else f"{guess}; not better than chance, so no attribute"),
    )


PART = AttributeSwap
