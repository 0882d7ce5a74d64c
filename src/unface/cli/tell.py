"""How a finished audit leaves a command: files first, then the table or the JSON."""

from pathlib import Path

import typer

from unface.auditing import REPORT_FILE, SUSPECTS_FILE, AuditResult, save_audit


def tell(result: AuditResult, out: Path, *, force: bool, json: bool, quiet: bool) -> None:
    """Save audit.json and report.html, and show."""
    from unface.report.html import write_report

    path = save_audit(result, out, force=force)
    page = write_report(result, out / REPORT_FILE)
    if json:
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
    elif not quiet:
        from rich.console import Console
        from rich.text import Text

        from unface.report import print_audit

        console = Console()
        print_audit(result, console)
        console.print(Text(f"\n{path}"), soft_wrap=True)
        if result.suspects:
            console.print(Text(f"{out / SUSPECTS_FILE}: the rows and identities meant"), soft_wrap=True)
        console.print(Text(f"{page}: the report"), soft_wrap=True)
