"""Inversion on the page: one table, a row for each space."""

from unface.page.tables import Cell, bounded, pairs, table
from unface.page.templates import render
from unface.result.inversion import InversionCell, InversionResult, SpaceFacts
from unface.result.parts import Section
from unface.result.validation import ALL_JUDGES
from unface.result.words import count, percent, rate


def section(found: InversionResult) -> Section:
    """At the rate that the inversion quotes."""
    headline = found.headline
    far = None if headline is None else headline.point.far
    spaces = {space.name: space for space in found.spaces}
    rows = [_row(cell, spaces[cell.space], far) for cell in found.cells] if far is not None else []
    judges = ", ".join(judge.name for judge in found.judges)
    attacks = ", ".join(dict.fromkeys(cell.attack for cell in found.cells))
    text = (
        "An attacker with the encoder and a generator of faces searches for a face whose vector is the stored one "
        f"({attacks}). One vector of each of {count(found.people.targets, 'person', 'people')} was attacked; {judges} "
        f"judged. {_controls(found, far)}"
    )
    caption = f"Faces made from vectors, accepted at FAR {rate(far)}" if far is not None else "Faces made from vectors"
    columns = ("space", "other photos of the person", "the attacked photo", "other people (chance)", "cosine reached")
    body = render("tables.jinja", tables=[table(caption, columns, rows)], text=text)
    return Section("inversion", "From vector to face", body)


def _row(cell: InversionCell, space: SpaceFacts, far: float | None) -> tuple[Cell, ...]:
    point = cell.point(far)
    assert point is not None, "every cell has the rates of its judges"
    second = "" if space.second is None else f"another real photo {space.second.value:.2f}"
    return (
        Cell(cell.space, "did not converge: a failure says nothing" if cell.converged is False else ""),
        Cell("–") if point.other is None else Cell(bounded(point.other), pairs(point.other), strong=True),
        Cell(bounded(point.same), pairs(point.same)),
        Cell(percent(point.derangement.value)),
        Cell("–" if cell.reached is None else f"{cell.reached.value:.2f}", second),
    )


def _controls(found: InversionResult, far: float | None) -> str:
    said = [
        f"{control.name} {percent(point.same.value)}"
        for control in (found.cells[0].controls if found.cells else [])
        for point in control.at
        if (point.far, point.judge) == (far, ALL_JUDGES)
    ]
    said += [
        f"another real photo {percent(one.other.value)}"
        for one in found.ceiling
        if (one.far, one.judge) == (far, ALL_JUDGES)
    ]
    return f"Beside it: {', '.join(said)}." if said else ""
