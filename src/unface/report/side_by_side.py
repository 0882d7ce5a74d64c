"""Several encoders on the same pictures: one table, one page, the verdict of each."""

import os
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup
from rich.table import Table as Drawn
from rich.text import Text

from unface.auditing import AuditResult, headline
from unface.auditing.schema import SpaceResult
from unface.auditing.words import rate
from unface.report.cells import Cell, Table, multiple, point_tar, table
from unface.report.templates import environment, page_file, policy, write_page

Audits = Mapping[str, AuditResult]
"""By encoder."""


def write_side_by_side(audits: Audits, links: Mapping[str, str], path: str | os.PathLike[str]) -> Path:
    """The page; ``links`` lead to each encoder's own report, from the folder of ``path``."""
    style = page_file("report.css")
    page = environment().get_template("side_by_side.html.jinja")
    text = page.render(audits=audits, links=links, table=comparison(audits), style=Markup(style), policy=policy(""))
    return write_page(text, path)


def comparison(audits: Audits) -> Table:
    """A row for each encoder and space: worst case at every rate, at the k of the encoder's headline."""
    fars = list(dict.fromkeys(far for result in audits.values() for far in result.protocol.fars))
    rows = []
    for name, result in audits.items():
        for space in result.spaces:
            cells = [_cell(result, space, far) for far in fars]
            rows.append((Cell(name, _used(result)), _space(space), *cells))
    columns = ("encoder", "space", *(f"worst-case TAR at FAR {rate(far)}" for far in fars))
    return table("The same pictures by each encoder", columns, rows)


def side_by_side_table(audits: Audits) -> Drawn:
    """The same on the terminal."""
    found = comparison(audits)
    drawn = Drawn(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in found.columns:
        drawn.add_column(column)
    for row in found.rows:
        drawn.add_row(*(Text(f"{cell.text} {cell.small}".strip()) for cell in row))
    return drawn


def _cell(result: AuditResult, space: SpaceResult, far: float) -> Cell:
    head = headline(result.raw.points)
    k = result.protocol.ks[-1] if head is None else head.k
    point = next((p for p in space.points if p.worst and (p.k, p.far) == (k, far)), None)
    if not result.valid:
        return Cell("invalid")
    if point is None or point.times_chance is None:
        return Cell("not resolved")
    return Cell(point_tar(point), f"{multiple(point.times_chance)} chance, {point.probe}, k = {k}")


def _space(space: SpaceResult) -> Cell:
    if space.erasure is None:
        return Cell("raw")
    return Cell(space.name, f"{space.erasure.rank} of {space.erasure.dim} removed")


def _used(result: AuditResult) -> str:
    licence = f"; weights: {result.source.licence}" if result.source.licence else ""
    return f"{result.source.rows:,} pictures, {result.curated.identities:,} identities used{licence}"
