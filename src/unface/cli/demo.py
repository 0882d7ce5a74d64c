"""``unface demo``: the whole loop on people who do not exist, by real encoders, from vectors that come with unface."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import FORCE, JSON, QUIET, THREADS

if TYPE_CHECKING:
    from unface.progress import Progress
    from unface.result.validation import ValidationResult

QUESTIONS = "questions"
VALIDATION_PAGE = "validation.html"

IN_ALBUMS = "sscd-int8"
"""Whose report also compares albums of four pictures: one is enough to see."""


def demo(
    out: Path = typer.Option(Path("unface-demo"), "--out", help="Folder for report.html and one of each encoder."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure, erase, measure again: what a face recogniser and two general encoders reveal about 480 people.

    At the end, 200 questions to a face system that only answers with a score.

    Nobody is in the pictures: a generator drew them. No network, no weights, no torch.
    """
    from unface.auditing import Albums, Protocol, audit
    from unface.cli.show import keep, progress_bars, show_side_by_side
    from unface.data import EMBEDDED_ENCODERS, nobody, things
    from unface.result.audit import require_no_audit
    from unface.result.validation import ValidationResult

    results = {}
    for folder in (out, *(out / encoder for encoder in EMBEDDED_ENCODERS)):
        require_no_audit(folder, force=force)
    ValidationResult.require_new(out / QUESTIONS, force=force)
    with progress_bars(quiet=quiet or json) as progress:
        for encoder in EMBEDDED_ENCODERS:
            result = audit(
                nobody(encoder),
                k="all",
                eraser=("isp", "leace"),
                utility=[things(encoder)],
                parts=(Albums((1, 4)),) if encoder == IN_ALBUMS else (),
                protocol=Protocol(probe=("cosine", "lda", "plda"), threads=threads),
                progress=progress,
            )
            results[encoder] = (result, out / encoder)
            keep(*results[encoder], None, force=force)
        asked = _ask_200_questions(out / QUESTIONS, progress)
    show_side_by_side(results, out, json=json, quiet=quiet)
    if not (quiet or json):
        from rich.console import Console

        from unface.report.validation import print_validation

        console = Console()
        console.print("\n200 questions to a face system", style="bold underline")
        print_validation(asked, console)
        typer.echo(f"\n{out / QUESTIONS / VALIDATION_PAGE}: the page of these questions")


def _ask_200_questions(folder: Path, progress: "Progress") -> "ValidationResult":
    """What a face recogniser that only answers with a score reveals; a ledger of an earlier demo is used again."""
    from unface.report.validation import write_validation
    from unface.validate.embedded import embedded_case
    from unface.validate.ledger import LEDGER_FILE
    from unface.validate.run import Plan, validate

    result = validate(embedded_case(), Plan(200), folder / LEDGER_FILE, progress=progress).result
    result.save(folder)
    write_validation(result, folder / VALIDATION_PAGE)
    return result
