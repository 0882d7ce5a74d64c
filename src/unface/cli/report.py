"""``unface report``: a result file as a page to read, forward and print. ``unface schema``: its format."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import HISTORY, QUIET
from unface.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unface.result.history import PastResult
    from unface.result.readings import Readable


class Format(StrEnum):
    """Files that have a schema."""

    AUDIT = "audit"
    VALIDATION = "validation"


def report(
    audit: Path = typer.Argument(
        ..., metavar="RESULT.json", help="What 'unface audit' or 'unface validate' wrote, or its folder."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="The page [default: report.html or validation.html beside it]."
    ),
    history: Path | None = HISTORY,
    force: bool = typer.Option(False, "--force", help="Overwrite a page that is there."),
    quiet: bool = QUIET,
) -> None:
    """Draw the page of an audit or a validation: one file that makes no network requests."""
    from unface.output.taken import require_distinct, require_new_file
    from unface.report.html import write_report
    from unface.result.audit import REPORT_FILE, AuditResult, audit_path
    from unface.result.validation import VALIDATION_PAGE, ValidationResult, validation_path

    validation = validation_path(audit)
    audit = validation or audit_path(audit)
    page = audit.parent / (VALIDATION_PAGE if validation else REPORT_FILE) if out is None else out
    require_distinct([page, history], [audit])
    require_new_file(page, force=force)
    if validation:
        from unface.report.validation import write_validation

        validated = ValidationResult.load(audit)
        written = write_validation(validated, page, _added(history, validated))
    else:
        audited = AuditResult.load(audit)
        written = write_report(audited, page, _added(history, audited))
    if not quiet:
        typer.echo(printable(str(written)))


def _added(history: Path | None, result: "Readable") -> "Sequence[PastResult]":
    from unface.result.history import add_to_history

    return () if history is None else add_to_history(history, result)


def schema(
    file: Format = typer.Argument(Format.AUDIT, help="Which file's format."),
) -> None:
    """Print the JSON Schema of audit.json or validation.json."""
    from unface.result.audit import json_schema
    from unface.result.validation import validation_schema

    typer.echo(json.dumps(json_schema() if file is Format.AUDIT else validation_schema(), indent=2))
