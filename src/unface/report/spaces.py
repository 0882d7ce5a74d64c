"""Before and after on the terminal: the worst case of each space, what changed, and what is still useful."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from unface.auditing import AuditResult, headline
from unface.auditing.schema import Change, Point, SpaceResult
from unface.auditing.words import factor, in_percent, interval, rate, signed_points


def spaces_tables(result: AuditResult) -> Iterator[Table]:
    """What each space leaves the attacker, at the headline's k; then what it keeps of use."""
    head = headline(result.raw.points)
    yield _leakage(result, result.protocol.ks[-1] if head is None else head.k)
    if any(space.utility for space in result.spaces):
        yield _utility(result)


def _leakage(result: AuditResult, k: int) -> Table:
    table = plain_table(f"worst case at k = {k} (? no sure change from raw)")
    table.add_column("space")
    table.add_column("removed", justify="right")
    for far in result.protocol.fars:
        table.add_column(f"TAR % at FAR {rate(far)}")
        table.add_column("× chance", justify="right")
        table.add_column("from raw", justify="right")
    for space in result.spaces:
        cells = [cell for far in result.protocol.fars for cell in _cells(space, k, far)]
        table.add_row(_name(space), _removed(space), *cells, style=_style(space))
    return table


def _utility(result: AuditResult) -> Table:
    measures = list(dict.fromkeys((kept.measure, kept.on) for space in result.spaces for kept in space.utility))
    table = plain_table("share kept, %")
    table.add_column("space")
    for measure, on in measures:
        table.add_column(f"{measure}, {on}")
    for space in result.spaces[1:]:
        found = {(kept.measure, kept.on): kept.retained for kept in space.utility}
        shares = [found.get(which) for which in measures]
        cells = [f"{100 * one.value:.0f} [{100 * one.low:.0f}, {100 * one.high:.0f}]" if one else "–" for one in shares]
        table.add_row(_name(space), *map(Text, cells), style=_style(space))
    return table


def plain_table(title: str | None) -> Table:
    """Columns to be added; no lines, a heading at the left."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")


def _name(space: SpaceResult) -> Text:
    return Text(f"{space.name} (control)" if space.erasure and space.erasure.control else space.name)


def _style(space: SpaceResult) -> str:
    return "dim" if space.erasure and space.erasure.control else ""


def _removed(space: SpaceResult) -> Text:
    return Text("–" if space.erasure is None else f"{space.erasure.rank} of {space.erasure.dim}")


def _cells(space: SpaceResult, k: int, far: float) -> tuple[Text, Text, Text]:
    point = space.worst_at(k, far)
    change = next((c for c in space.changes if (c.against, c.k, c.far) == ("raw", k, far)), None)
    return *tar_cells(point), Text("" if point is None else _changed(change))


def tar_cells(point: Point | None, style: str = "") -> tuple[Text, Text]:
    """TAR in percent, whose sign is in the heading, and how many times chance."""
    if point is None or point.tar is None or point.times_chance is None:
        return Text("not resolved", style="dim"), Text("–", style="dim")
    coarse = "~" if point.resolution == "coarse" else ""
    value = f"{coarse}{in_percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}"
    return Text(value, style=style), Text(factor(point.times_chance), style=style)


def _changed(change: Change | None) -> str:
    if change is None:
        return ""
    sure = change.high < 0 or change.low > 0
    return f"{signed_points(change.value)}{'  ' if sure else ' ?'}"
