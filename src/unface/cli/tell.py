"""How a finished audit leaves a command: files first, then the table or the JSON."""

from pathlib import Path

import typer

from unface.auditing import SUSPECTS_FILE, AuditResult, save_audit


def tell(result: AuditResult, out: Path, *, force: bool, json: bool, quiet: bool) -> None:
    """Save and show."""
    path = save_audit(result, out, force=force)
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
