"""How a finished result leaves a command: files first, then the table or the JSON."""

from collections.abc import Callable, Mapping
from functools import partial
from json import dumps, loads
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from unface.auditing import AUDIT_FILE, LEFT_OUT_FILE, REPORT_FILE, SUSPECTS_FILE, AuditResult, save_audit

Results = Mapping[str, tuple[AuditResult, Path]]
"""By encoder: the audit, and the folder it belongs in."""


def keep(result: AuditResult, out: Path, *, force: bool) -> tuple[Path, Path]:
    """Save audit.json and report.html."""
    from unface.report.html import write_report

    path = save_audit(result, out, force=force)
    return path, write_report(result, out / REPORT_FILE)


def tell(result: AuditResult, out: Path, *, force: bool, json: bool, quiet: bool) -> None:
    """Save audit.json and report.html, and show."""
    from unface.report import print_audit

    path, page = keep(result, out, force=force)
    beside = {page: "the report"}
    if result.left_out:
        beside = {out / LEFT_OUT_FILE: "pictures that attribution left out", **beside}
    if result.suspects:
        beside = {out / SUSPECTS_FILE: "the rows and identities meant", **beside}
    show(partial(print_audit, result), path, beside, json=json, quiet=quiet)


def show(table: Callable[[Console], None], path: Path, beside: Mapping[Path, str], *, json: bool, quiet: bool) -> None:
    """The JSON at ``path``, or the table and below it where that file and those beside it are, and what they hold."""
    if json:
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
    elif not quiet:
        console = Console()
        table(console)
        console.print(Text(f"\n{path}"), soft_wrap=True)
        for file, held in beside.items():
            console.print(Text(f"{file}: {held}"), soft_wrap=True)


def tell_side_by_side(results: Results, out: Path, *, json: bool, quiet: bool) -> None:
    """One page and one table that set audits, each kept in a folder of its own, beside each other."""
    from unface.report.side_by_side import print_side_by_side, write_side_by_side

    audits = {name: result for name, (result, _) in results.items()}
    paths = [folder / AUDIT_FILE for _, folder in results.values()]
    links = {name: f"{folder.relative_to(out).as_posix()}/{REPORT_FILE}" for name, (_, folder) in results.items()}
    page = write_side_by_side(audits, links, out / REPORT_FILE)
    if json:
        typer.echo(dumps([loads(path.read_text(encoding="utf-8")) for path in paths], indent=2))
    elif not quiet:
        console = Console()
        print_side_by_side(audits, console)
        console.print(Text(f"\n{page}: side by side, with a report for each encoder behind it"), soft_wrap=True)
