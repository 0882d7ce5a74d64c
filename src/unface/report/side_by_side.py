"""Several encoders on the same pictures: one table, one page, the verdict of each."""

import os
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from unface.auditing import AuditResult, headline
from unface.auditing.schema import SpaceResult
from unface.auditing.words import percent, rate
from unface.report.cells import Cell, Table, multiple, point_tar, table
from unface.report.side_by_side_charts import worst_cases
from unface.report.templates import environment, page_file, policy, write_page

Audits = Mapping[str, AuditResult]
"""By encoder."""


def write_side_by_side(audits: Audits, links: Mapping[str, str], path: str | os.PathLike[str]) -> Path:
    """The page; ``links`` lead to each encoder's own report, from the folder of ``path``."""
    style = page_file("report.css")
    page = environment().get_template("side_by_side.html.jinja")
    drawn = worst_cases(audits)
    text = page.render(
        audits=audits, links=links, charts=drawn, table=comparison(audits), style=Markup(style), policy=policy("")
    )
    return write_page(text, path)


def print_side_by_side(audits: Audits, console: Console) -> None:
    """Every verdict, then the table."""
    for name, result in audits.items():
        console.print(Text(name, style="bold").append(f": {result.verdict}\n", style="not bold"))
    console.print(side_by_side_table(audits))


def comparison(audits: Audits) -> Table:
    """A row for each encoder and space: worst case at every rate, at the k of the encoder's headline."""
    fars, uses = _fars(audits), _uses(audits)
    rows = []
    for name, result in audits.items():
        for space in result.spaces:
            kept = {(one.measure, one.on): percent(one.retained.value) for one in space.utility}
            cells = [_cell(result, space, far) for far in fars]
            encoder = Cell(name, _used(result) if space is result.raw else "")
            rows.append((encoder, _space(space), *cells, *(Cell(kept.get(use, "")) for use in uses)))
    columns = (f"worst-case TAR at FAR {rate(far)}" for far in fars)
    kept_columns = (f"{measure} on {on} kept" for measure, on in uses)
    return table("The same pictures by each encoder", ("encoder", "space", *columns, *kept_columns), rows)


def side_by_side_table(audits: Audits) -> Drawn:
    """The same in 80 columns: an encoder is a line of its own, signs of percent are in the heading, sets below."""
    drawn = Drawn(box=None, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left", caption_style="dim")
    drawn.add_column("encoder", vertical="bottom", no_wrap=True)
    drawn.add_column("removed", vertical="bottom", justify="right", no_wrap=True)
    uses = _uses(audits)
    for heading in (*(f"TAR % at FAR {rate(far)}" for far in _fars(audits)), *(measure for measure, _ in uses)):
        drawn.add_column(heading.replace("@", "\n@"), vertical="bottom", justify="right")
    named = ""
    for encoder, space, *cells in comparison(audits).rows:
        if named != encoder.text:
            if named:
                drawn.add_row()
            drawn.add_row(Text(encoder.text, style="bold"))
            named = encoder.text
        removed = space.small.removesuffix(" removed").replace(" of ", "/")
        plain = (Text(cell.text.replace(" %", ""), no_wrap=True) for cell in cells)
        drawn.add_row(Text(f"  {space.text}"), Text(removed, style="dim"), *plain)
    sets = dict.fromkeys(on for _, on in uses)
    said = (f"{', '.join(measure for measure, where in uses if where == on)} on {on}" for on in sets)
    drawn.caption = Text(f"kept, % of raw: {'; '.join(said)}") if uses else None
    return drawn


def _fars(audits: Audits) -> list[float]:
    return list(dict.fromkeys(far for result in audits.values() for far in result.protocol.fars))


def _uses(audits: Audits) -> list[tuple[str, str]]:
    """(measure, on what), as often as any space has them."""
    spaces = [space for result in audits.values() for space in result.spaces]
    return list(dict.fromkeys((kept.measure, kept.on) for space in spaces for kept in space.utility))


def _cell(result: AuditResult, space: SpaceResult, far: float) -> Cell:
    head = headline(result.raw.points)
    k = result.protocol.ks[-1] if head is None else head.k
    point = space.worst_at(k, far)
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
