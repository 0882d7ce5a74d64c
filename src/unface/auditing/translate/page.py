"""Translate on the page: one table, a row for each space."""

from unface.auditing.translate import TranslatedSpace, TranslateResults, ceiling_words, headline
from unface.page.tables import NOT_MEASURED, Cell, bounded, pairs, table
from unface.page.templates import render
from unface.result.parts import Section
from unface.result.words import percent, rate, signed_points


def section(found: TranslateResults) -> Section:
    """At the rate that the audit quotes for it."""
    far = headline(found.spaces[0]).far
    name = found.recogniser.encoder or found.recogniser.name
    caption = f"Templates of {name} made of these vectors, accepted at FAR {rate(far)}"
    columns = ("space", "other pictures of the person", "the same picture", "change", "everybody else")
    text = f"A linear map from these vectors to those of {name}, learned on {found.train_pictures:,} pictures of train "
    text += f"people and judged by {name} on test people; learned anew in each space. {ceiling_words(found)}"
    drawn = table(caption, columns, [_row(space) for space in found.spaces])
    body = render("tables.jinja", tables=[drawn], text=text)
    return Section("translate", "From vector to face template", body, sources=(("Recogniser", found.recogniser),))


def _row(space: TranslatedSpace) -> tuple[Cell, ...]:
    point = headline(space)
    coarse = "~" if point.resolution == "coarse" else ""
    other = Cell(NOT_MEASURED)
    if point.other is not None:
        other = Cell(f"{coarse}{bounded(point.other)}", pairs(point.other), strong=True)
    change = Cell("")
    if point.change is not None:
        ends = f"{signed_points(point.change.low)} to {signed_points(point.change.high)} points"
        change = Cell(signed_points(point.change.value), ends)
    return (
        Cell(space.space, "control of equal rank" if space.control else ""),
        other,
        Cell(f"{coarse}{bounded(point.same)}", pairs(point.same)),
        change,
        Cell(percent(point.chance.value), f"{point.chance.numerator:,} of {point.chance.denominator:,}"),
    )
