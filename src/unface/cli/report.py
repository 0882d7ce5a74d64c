"""``unface report``: an audit.json as a page to read, forward and print. ``unface schema``: its format."""

import json
from pathlib import Path

import typer

from unface.cli.options import QUIET
from unface.errors import UnfaceError


def report(
    audit: Path = typer.Argument(..., metavar="AUDIT.json", help="What 'unface audit' wrote."),
    out: Path | None = typer.Option(None, "--out", help="The page [default: report.html beside the audit]."),
    force: bool = typer.Option(False, "--force", help="Overwrite a page that is there."),
    quiet: bool = QUIET,
) -> None:
    """Draw report.html from an audit: one file that makes no network requests."""
    from unface.output.taken import require_new_file
    from unface.report.html import write_report
    from unface.result.audit import REPORT_FILE, AuditResult

    page = audit.parent / REPORT_FILE if out is None else out
    if page.exists() and audit.exists() and page.samefile(audit):
        raise UnfaceError(f"{page}: is the audit itself; choose another --out")
    require_new_file(page, force=force)
    written = write_report(AuditResult.load(audit), page)
    if not quiet:
        typer.echo(written)


def schema() -> None:
    """Print the JSON Schema of audit.json."""
    from unface.result.audit import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
