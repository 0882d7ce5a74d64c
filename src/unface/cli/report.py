"""``unface report``: an audit.json as a page to read, forward and print. ``unface schema``: its format."""

import json
from pathlib import Path

import typer

from unface.cli.options import QUIET


def report(
    audit: Path = typer.Argument(..., metavar="AUDIT.json", help="What 'unface audit' wrote."),
    out: Path | None = typer.Option(None, "--out", help="The page [default: report.html beside the audit]."),
    force: bool = typer.Option(False, "--force", help="Overwrite a page that is there."),
    quiet: bool = QUIET,
) -> None:
    """Draw report.html from an audit: one file that makes no network requests."""
    from unface.output.taken import require_distinct, require_new_file
    from unface.report.html import write_report
    from unface.result.audit import REPORT_FILE, AuditResult, audit_path

    audit = audit_path(audit)
    page = audit.parent / REPORT_FILE if out is None else out
    require_distinct([page], [audit])
    require_new_file(page, force=force)
    written = write_report(AuditResult.load(audit), page)
    if not quiet:
        typer.echo(written)


def schema() -> None:
    """Print the JSON Schema of audit.json."""
    from unface.result.audit import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
