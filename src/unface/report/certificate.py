"""A certificate on the terminal, drawn from certificate.json alone."""

from rich.console import Console
from rich.text import Text

from unface.page.tables import bounded, print_safely, terminal_table
from unface.result.certificate import CertificateResult, MapResult
from unface.result.numbers import Mean
from unface.result.words import rate


def print_certificate(result: CertificateResult, console: Console) -> None:
    """The verdict, every map, pictures and findings; eighty columns are enough."""
    print_safely(console, Text(result.verdict, style="bold"))
    variant = "" if result.variant is None else f", {result.variant}"
    noise = "no noise" if result.noise is None else f"noise of {result.noise:.3g} grey levels"
    about = f"{result.front_end}{variant}: {result.kind}, {result.size} × {result.size} RGB, {noise}."
    print_safely(console, Text(about, style="dim"))
    console.print()
    drawn = terminal_table(None)
    drawn.add_column("map")
    for head in ("sent", "rank", "lost", "condition", "under noise", "on pictures"):
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
        shown = found.identity
        tar = [""] * 3 if shown is None else map(bounded, (shown.originals, shown.guesses, shown.reconstructions))
        rows = {"originals": None, "guess: mean of other people": found.guess_psnr, "reconstructions": found.psnr}
        for (name, quality), share in zip(rows.items(), tar, strict=True):
            drawn.add_row(name, _mean(quality), *([share] if share else []))
        print_safely(console, drawn)
    console.print()
    for finding in result.findings:
        print_safely(console, Text(f"· {finding.about}: {finding.text}"))
    for missing in result.not_measured:
        print_safely(console, Text(f"· not measured: {missing}", style="dim"))


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
