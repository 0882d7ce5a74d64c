"""A certificate as a page and on the terminal, drawn from certificate.json alone."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from unface.gate import GateResult
from unface.output.write import write_file
from unface.page.tables import Table, bounded, print_safely, remarks, table, terminal_table
from unface.page.templates import render_page
from unface.report.opening import certificate_opening
from unface.result.certificate import CertificateResult, MapResult, PicturesResult
from unface.result.numbers import Mean
from unface.result.words import rate

_MAPS = ("map", "sent", "rank", "lost", "condition", "under noise", "on pictures")


def write_certificate(result: CertificateResult, path: Path, decision: GateResult | None = None) -> Path:
    """Write the page, whole or not at all."""
    write_file(path, render_certificate(result, decision).encode(), option="--out")
    return path


def render_certificate(result: CertificateResult, decision: GateResult | None = None) -> str:
    """The page; the same bytes for the same file and ``decision``, a policy's."""
    maps = table(
        "Every map that the front end may draw for a picture", _MAPS, (_cells(m, result.inputs) for m in result.maps)
    )
    return render_page(
        "unface.report:certificate.html.jinja",
        result=result,
        opening=certificate_opening(result, decision),
        maps=maps,
        pictures=_pictures_table(result),
        noise=_noise(result),
    )


def _pictures_table(result: CertificateResult) -> Table | None:
    found = result.pictures
    if found is None:
        return None
    heads = ("picture", "PSNR, dB", *([] if found.identity is None else [f"linked at FAR {rate(found.identity.far)}"]))
    title = f"{found.pictures:,} pictures of {found.people:,} people, protected and solved for"
    return table(title, heads, _picture_rows(found))


def _picture_rows(found: PicturesResult) -> list[tuple[str, ...]]:
    """What came back beside a guess and the originals: its quality, and the share that is linked where it was tried."""
    qualities = {"originals": None, "guess: mean of other people": found.guess_psnr, "reconstructions": found.psnr}
    rows = [(name, _mean(quality)) for name, quality in qualities.items()]
    if found.identity is None:
        return [*rows]
    linked = (found.identity.originals, found.identity.guesses, found.identity.reconstructions)
    return [(*row, bounded(share)) for row, share in zip(rows, linked, strict=True)]


def _noise(result: CertificateResult) -> str:
    return "no noise" if result.noise is None else f"noise of {result.noise:.3g} grey levels"


def print_certificate(result: CertificateResult, console: Console) -> None:
    """The verdict, every map, pictures and findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    variant = "" if result.variant is None else f", {result.variant}"
    about = f"{result.front_end}{variant}: {result.kind}, {result.size} × {result.size} RGB, {_noise(result)}."
    print_safely(console, Text(about, style="dim"))
    console.print()
    drawn = terminal_table(None)
    drawn.add_column("map")
    for head in _MAPS[1:]:
        drawn.add_column(head, justify="right")
    for one in result.maps:
        drawn.add_row(*_cells(one, result.inputs))
    print_safely(console, drawn)
    if result.pictures is not None:
        found = result.pictures
        console.print()
        drawn = terminal_table(None)
        drawn.add_column(f"{found.pictures:,} pictures, {found.people:,} people")
        drawn.add_column("PSNR, dB", justify="right")
        if found.identity is not None:
            drawn.add_column(f"TAR at FAR {rate(found.identity.far)}", justify="right")
        for row in _picture_rows(found):
            drawn.add_row(*row)
        print_safely(console, drawn)
    console.print()
    for remark in remarks(result.findings, result.not_measured):
        print_safely(console, remark)


def _cells(one: MapResult, inputs: int) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.outputs:,}",
        f"{one.rank:,}",
        f"{inputs - one.rank:,}",
        "–" if one.condition is None else f"{one.condition:,.0f}",
        "–" if one.noise_psnr is None else f"{one.noise_psnr:.1f} dB",
        "–" if one.psnr is None else f"{one.psnr.value:.1f} dB",
    )


def _mean(found: Mean | None) -> str:
    return "–" if found is None else f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"
