"""Before and after on the terminal: the worst case of each space, what changed, and what is still useful."""

from rich.table import Table
from rich.text import Text

from unface.auditing import AuditResult, headline
from unface.auditing.schema import Kept, SpaceResult
from unface.auditing.words import interval, percent, rate, signed_points


def spaces_table(result: AuditResult) -> Table:
    """One row for each space at the headline's k; utility as the share kept."""
    head = headline(result.raw.points)
    k = result.protocol.ks[-1] if head is None else head.k
    measures = _measures(result)
    title = f"worst case at k = {k}, and what is kept"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")
    table.add_column("space")
    table.add_column("removed", justify="right")
    for far in result.protocol.fars:
        table.add_column(f"TAR % at FAR {rate(far)}")
        table.add_column("× chance", justify="right")
        table.add_column("against raw")
    for measure, on in measures:
        table.add_column(f"{measure} kept, {on}", justify="right")
    for space in result.spaces:
        leakage = [cell for far in result.protocol.fars for cell in _leakage(space, k, far)]
        kept = [_kept(space, measure, on) for measure, on in measures]
        control = bool(space.erasure and space.erasure.control)
        table.add_row(_name(space), _removed(space), *leakage, *kept, style="dim" if control else "")
    return table


def _measures(result: AuditResult) -> list[tuple[str, str]]:
    return list(dict.fromkeys((kept.measure, kept.on) for space in result.spaces for kept in space.utility))


def _name(space: SpaceResult) -> Text:
    return Text(f"{space.name} (control)" if space.erasure and space.erasure.control else space.name)


def _removed(space: SpaceResult) -> Text:
    return Text("–" if space.erasure is None else f"{space.erasure.rank} of {space.erasure.dim}")


def _leakage(space: SpaceResult, k: int, far: float) -> tuple[Text, Text, Text]:
    point = next((p for p in space.points if p.worst and (p.k, p.far) == (k, far)), None)
    if point is None or point.tar is None or point.times_chance is None:
        return Text("not resolved", style="dim"), Text("–", style="dim"), Text("")
    coarse = "~" if point.resolution == "coarse" else ""
    value = percent(point.tar.value).removesuffix(" %")
    multiple = f"{point.times_chance:,.0f}" if point.times_chance >= 10 else f"{point.times_chance:.1f}"
    change = next((c for c in space.changes if (c.against, c.k, c.far) == ("raw", k, far)), None)
    words = "" if change is None else f"{signed_points(change.value)}{_sure(change.low, change.high)}"
    return Text(f"{coarse}{value} {interval(point.tar.low, point.tar.high)}"), Text(multiple), Text(words)


def _sure(low: float, high: float) -> str:
    return f" [{signed_points(low)}, {signed_points(high)}]"


def _kept(space: SpaceResult, measure: str, on: str) -> Text:
    found: Kept | None = next((kept for kept in space.utility if (kept.measure, kept.on) == (measure, on)), None)
    return Text("–" if found is None else percent(found.retained.value))
