"""Tables as pages and terminals show them: every cell already in words, so that templates only place it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unface.errors import printable
from unface.result.audit import Point
from unface.result.file import Finding
from unface.result.numbers import Estimate, Rate, Share
from unface.result.words import ONE_WORD, decimals, factor, in_percent, interval, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as TerminalTable
    from rich.text import Text

NOT_MEASURED = "not measured"
_MARK = {"invalid": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "dim")}
_CELL_LETTERS = 200  # of a cell on the terminal
_HELD = "\ue000"  # a space at which no line may end; of no alphabet


@dataclass(frozen=True)
class Cell:
    """What is said, what is said in small below it, and whether it is the one to look at."""

    text: str
    small: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """Columns by their headings; the first cell of a row is the row's own heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell | str]]) -> Table:
    """Plain text stands for a cell of nothing else."""
    cells = tuple(tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    return Table(caption, tuple(columns), cells)


def bounded(found: Estimate) -> str:
    """6.6 % [6.2, 7.1]."""
    return f"{percent(found.value)} {interval(found.low, found.high)}"


def point_tar(point: Point) -> str:
    """The same, marked where the rate is coarse, and named where it was refused."""
    if point.tar is None:
        return "not resolved"
    return f"{'~' if point.resolution == 'coarse' else ''}{bounded(point.tar)}"


def multiple(value: float) -> str:
    """660 ×, 1.3 ×."""
    return f"{factor(value)} ×"


def pairs(found: Rate | Share) -> str:
    """6,270 of 95,000."""
    return f"{found.numerator:,} of {found.denominator:,}"


def difference(value: float, low: float, high: float) -> str:
    """−4.0 [−4.3, −3.7]: two shares apart, in percentage points; two digits of the largest end."""
    largest = 100 * max(abs(value), abs(low), abs(high))
    said = [f"{100 * one:+.{decimals(largest)}f}".replace("-", "−") for one in (value, low, high)]
    return f"{said[0]} [{said[1]}, {said[2]}]"


def terminal_table(title: str | None) -> "TerminalTable":
    """For the terminal, columns to be added: no lines, a heading at the left."""
    from rich.table import Table as TerminalTable

    return TerminalTable(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold"
    )


def space_table(
    title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], controls: Collection[str] = ()
) -> "TerminalTable":
    """For the terminal, a row for each space; those of controls are dim and say so."""
    from rich.text import Text

    made = terminal_table(title)
    for column in ("space", *columns):
        made.add_column(column)
    for name, cells in rows:
        is_control = name in controls
        shown = (f"{name} (control)" if is_control else name, *cells)
        made.add_row(*map(Text, shown), style="dim" if is_control else "")
    return made


def remarks(findings: Iterable[Finding] = (), not_measured: Iterable[str] = ()) -> "Iterator[Text]":
    """A line on the terminal for each finding, marked by how grave it is, and for what was not measured."""
    from rich.text import Text

    for finding in findings:
        mark, style = _MARK[finding.severity]
        yield Text(f"{mark} {finding.about}: {finding.text}", style=style)
    for missing in not_measured:
        yield Text(f"· not measured: {missing}", style="dim")


def print_safely(console: "Console", renderable: "RenderableType", **options: Any) -> None:
    """Print a line or a table whose words may come from anybody's file; see ``printable``. No number is broken."""
    safe = _safe(renderable)
    console.print(safe if options.get("soft_wrap") else _unbroken(safe, console, console.width), **options)


def _unbroken(renderable: "RenderableType", console: "Console", width: int) -> "RenderableType":
    """Text in lines that end outside of numbers; tables keep their cells as they are."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    if isinstance(renderable, Text) and not renderable.no_wrap:
        held = renderable.copy()
        held.plain = ONE_WORD.sub(lambda found: found[0].replace(" ", _HELD), held.plain)
        lines = held.wrap(console, width)
        for line in lines:
            line.plain = line.plain.replace(_HELD, " ")
        return Text("\n", style=renderable.style).join(lines)
    if isinstance(renderable, Panel):
        renderable.renderable = _unbroken(renderable.renderable, console, width - 4)
    elif isinstance(renderable, Group):
        return Group(*(_unbroken(one, console, width) for one in renderable.renderables))
    return renderable


def _safe(renderable: "RenderableType", most: int = 2_000) -> "RenderableType":
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table as TerminalTable
    from rich.text import Text

    if isinstance(renderable, Text | str):
        text = Text(renderable) if isinstance(renderable, str) else renderable
        safe = printable(text.plain, most)
        return text if safe == text.plain else Text(safe, style=text.style, no_wrap=text.no_wrap)
    if isinstance(renderable, Panel):
        renderable.renderable = _safe(renderable.renderable)
    elif isinstance(renderable, Group):
        return Group(*(_safe(one) for one in renderable.renderables))
    elif isinstance(renderable, TerminalTable):
        for column in renderable.columns:
            column.header = _safe(column.header, _CELL_LETTERS)
            column._cells = [_safe(cell, _CELL_LETTERS) for cell in column._cells]
        if renderable.title is not None:
            title = _safe(renderable.title)
            assert isinstance(title, Text)
            renderable.title = Text(title.plain, style=renderable.title_style or "")
        if renderable.caption is not None:
            caption = _safe(renderable.caption)
            renderable.caption = caption if isinstance(caption, Text | str) else None
    return renderable


def tar_cells(point: Point | None, style: str = "") -> "tuple[Text, Text]":
    """For the terminal: TAR in percent, whose sign is in the heading, and how many times chance."""
    from rich.text import Text

    if point is None or point.tar is None or point.times_chance is None:
        return Text("not resolved", style="dim"), Text("–", style="dim")
    coarse = "~" if point.resolution == "coarse" else ""
    value = f"{coarse}{in_percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}"
    return Text(value, style=style), Text(factor(point.times_chance), style=style)
