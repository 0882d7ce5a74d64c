"""An audit on the terminal: verdict first, then the table, then what to know about it."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from unface.auditing import AuditResult, Finding, Point
from unface.auditing.words import count, rate
from unface.report.attribution_lines import attribution_line
from unface.report.spaces import plain_table, spaces_tables, tar_cells

_MARK = {"invalid": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "dim")}


def print_audit(result: AuditResult, console: Console) -> None:
    """Print an audit: what each space leaves the attacker, then the raw space probe by probe."""
    console.print(_verdict(result))
    console.print(Text(_caption(result)), style="dim")
    console.print()
    if len(result.spaces) > 1:
        for table in spaces_tables(result):
            console.print(table)
            console.print()
    console.print(_table(result, result.raw.points))
    console.print(Group(*_below(result)), highlight=False)


def _verdict(result: AuditResult) -> RenderableType:
    style = "green" if result.valid else "red"
    return Panel(Text(result.verdict), title="verdict" if result.valid else "invalid", border_style=style, expand=False)


def _caption(result: AuditResult) -> str:
    source, curated, roles = result.source, result.curated, result.roles
    dropped = f", {curated.identities_dropped:,} with fewer left out" if curated.identities_dropped else ""
    return (
        f"{source.name}: {count(source.rows, 'vector')} of {source.dim} dimensions, "
        f"{count(source.identities, 'identity', 'identities')}.  "
        f"Used: {curated.identities:,} × {curated.images} images{dropped}.  "
        f"Roles: fit {roles.fit}, train {roles.train}, calibrate {roles.calibrate}, test {roles.test}."
    )


def _table(result: AuditResult, points: list[Point]) -> Table:
    table = plain_table("raw space, probe by probe" if len(result.spaces) > 1 else None)
    table.add_column("probe")
    for far in result.protocol.fars:
        table.add_column(f"TAR % at FAR {rate(far)}")
        table.add_column("× chance", justify="right")
        table.add_column("")
    for k in result.protocol.ks:
        at_k = [point for point in points if point.k == k]
        shares = [cell for far in result.protocol.fars for cell in _denominators(at_k, far)]
        table.add_row(f"k = {k}", *shares, style="dim")
        for probe in result.protocol.probes:
            row = [point for point in at_k if point.probe == probe]
            table.add_row(probe, *(cell for far in result.protocol.fars for cell in _cells(row, far)))
        table.add_row()
    return table


def _denominators(at_k: list[Point], far: float) -> tuple[str, str, str]:
    """What the rows below are shares of."""
    tar = next(point.tar for point in at_k if point.far == far)
    return f"of {tar.denominator:,} pairs" if tar else "", "", ""


def _cells(row: list[Point], far: float) -> tuple[Text, Text, Text]:
    point = next(point for point in row if point.far == far)
    style, mark = ("bold", "◂") if point.worst else ("", "")
    return *tar_cells(point, style), Text(mark, style=style)


def _below(result: AuditResult) -> Iterator[RenderableType]:
    controls = result.controls.shuffled_identities
    passed = sum(point.passed for point in controls)
    yield Text(
        f"◂ worst case: the probe that was best on calibrate identities. {100 * result.protocol.level:g} % intervals: "
        + ("identities resampled" if result.protocol.variant == "unface" else "spread over seeds, which under-covers")
        + (". ~: coarse." if any(p.resolution == "coarse" for p in result.raw.points) else "."),
        style="dim",
    )
    yield Text(
        f"Control, identities shuffled: {passed} of {len(controls)} at chance.",
        style="" if passed == len(controls) else "bold red",
    )
    if result.attribution is not None:
        yield Text(attribution_line(result.attribution))
    for finding in result.findings:
        yield _finding(finding)
    for note in result.source.notes:
        yield Text(f"· reading: {note}", style="dim")
    for missing in result.not_measured:
        yield Text(f"· not measured: {missing}", style="dim")


def _finding(finding: Finding) -> Text:
    mark, style = _MARK[finding.severity]
    return Text(f"{mark} {finding.about}: {finding.text}", style=style)
