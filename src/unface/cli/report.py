"""``unface report``: a result file as a page to read, forward and print. ``unface schema``: its format."""

import json
from enum import StrEnum
from pathlib import Path

import typer

from unface.cli.options import QUIET
from unface.errors import printable


class Format(StrEnum):
    """Files that have a schema."""

    AUDIT = "audit"
    VALIDATION = "validation"
    RELEASE = "release"


def report(
    audit: Path = typer.Argument(
        ..., metavar="RESULT.json", help="What 'unface audit', 'validate' or 'release' wrote, or its folder."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="The page [default: report.html, validation.html or release.html beside it]."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite a page that is there."),
    quiet: bool = QUIET,
) -> None:
    """Draw the page of an audit, a validation or a release: one file that makes no network requests."""
    from unface.output.taken import require_distinct, require_new_file
    from unface.report.html import write_report
    from unface.result.audit import REPORT_FILE, AuditResult, audit_path
    from unface.result.release import RELEASE_PAGE, ReleaseResult, release_path
    from unface.result.validation import VALIDATION_PAGE, ValidationResult, validation_path

    validation, release = validation_path(audit), release_path(audit)
    audit = validation or release or audit_path(audit)
    usual = VALIDATION_PAGE if validation else RELEASE_PAGE if release else REPORT_FILE
    page = audit.parent / usual if out is None else out
    require_distinct([page], [audit])
    require_new_file(page, force=force)
    if validation:
        from unface.report.validation import write_validation

        written = write_validation(ValidationResult.load(audit), page)
    elif release:
        from unface.report.release import write_release

        written = write_release(ReleaseResult.load(audit), page)
    else:
        written = write_report(AuditResult.load(audit), page)
    if not quiet:
        typer.echo(printable(str(written)))


def schema(
    file: Format = typer.Argument(Format.AUDIT, help="Which file's format."),
) -> None:
    """Print the JSON Schema of audit.json, validation.json or release.json."""
    from unface.result.audit import json_schema
    from unface.result.release import release_schema
    from unface.result.validation import validation_schema

    schemas = {Format.AUDIT: json_schema, Format.VALIDATION: validation_schema, Format.RELEASE: release_schema}
    typer.echo(json.dumps(schemas[file](), indent=2))
