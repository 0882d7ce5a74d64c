"""What a person sees of a command: progress bars while it runs, then its files and the table or the JSON."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from json import dumps, loads
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

import typer

from unface.errors import printable
from unface.progress import Progress, Silent
from unface.result.audit import AUDIT_FILE, REPORT_FILE, AuditResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Drawn
    from rich.progress import TaskID

    from unface.gate import GateResult, Policy

Results = Mapping[str, tuple[AuditResult, Path]]
"""By encoder: the audit, and the folder it belongs in."""


def keep(result: AuditResult, out: Path, policy: "Policy | None", *, force: bool) -> "GateResult | None":
    """Save audit.json and report.html; the verdict, where there is a policy."""
    from unface.report.html import render_report

    decision = None
    if policy is not None:
        from unface.gate import decide

        decision = decide(result, policy)
    result.save(out, render_report(result, decision=decision), force=force)
    return decision


def say(sentence: str) -> None:
    """On a terminal in lines that end between words; elsewhere in one line, for programs."""
    text = printable(sentence)
    if sys.stdout.isatty():
        text = fill(text, get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    typer.echo(text)


def show_audit(
    result: AuditResult, out: Path, policy: "Policy | None" = None, *, force: bool, json: bool, quiet: bool
) -> None:
    """Save audit.json and report.html, and show; with a policy, end with its exit code."""
    from unface.report.table import print_audit

    decision = keep(result, out, policy, force=force)
    listings = {out / name: listing.about for name, listing in result.listings.items() if listing.rows}
    beside = {**listings, out / REPORT_FILE: "the report"}
    show(partial(print_audit, result, decision=decision), out / AUDIT_FILE, beside, json=json, quiet=quiet)
    if decision is not None:
        raise typer.Exit(decision.exit_code)


def show(
    table: "Callable[[Console], None]", path: Path, beside: Mapping[Path, str], *, json: bool, quiet: bool
) -> None:
    """The JSON at ``path``, or the table and below it where that file and those beside it are, and what they hold."""
    if json:
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
    elif not quiet:
        from rich.console import Console
        from rich.text import Text

        from unface.page.tables import print_safely

        console = Console()
        table(console)
        print_safely(console, Text(f"\n{path}"), soft_wrap=True)
        for file, about in beside.items():
            print_safely(console, Text(f"{file}: {about}"), soft_wrap=True)


def show_decided(
    table: "Callable[[Console], None]",
    decision: "GateResult | None",
    path: Path,
    beside: Mapping[Path, str],
    *,
    json: bool,
    quiet: bool,
) -> None:
    """The same with a policy's verdict above the table; its exit code ends the command."""

    def verdict_first(console: "Console") -> None:
        if decision is not None:
            from unface.gate import print_decision

            print_decision(decision, console)
        table(console)

    show(verdict_first, path, beside, json=json, quiet=quiet)
    if decision is not None:
        raise typer.Exit(decision.exit_code)


def show_side_by_side(results: Results, out: Path, policy: "Policy | None" = None, *, json: bool, quiet: bool) -> None:
    """One page and one table that set audits, each kept in a folder of its own, beside each other.

    With a policy, the gravest verdict is the exit code.
    """
    from unface.gate import decide, print_decision
    from unface.report.side_by_side import print_side_by_side, write_side_by_side

    audits = {name: result for name, (result, _) in results.items()}
    decisions = {} if policy is None else {name: decide(result, policy) for name, result in audits.items()}
    paths = [folder / AUDIT_FILE for _, folder in results.values()]
    links = {name: f"{folder.relative_to(out).as_posix()}/{REPORT_FILE}" for name, (_, folder) in results.items()}
    page = write_side_by_side(audits, links, out / REPORT_FILE, decisions)
    if json:
        typer.echo(dumps([loads(path.read_text(encoding="utf-8")) for path in paths], indent=2))
    elif not quiet:
        from rich.console import Console
        from rich.text import Text

        from unface.page.tables import print_safely

        console = Console()
        for name, decision in decisions.items():
            print_decision(decision, console, of=name)
        print_side_by_side(audits, console)
        print_safely(console, Text(f"\n{page}: side by side, with a report for each encoder behind it"), soft_wrap=True)
    if decisions:
        raise typer.Exit(max(decisions.values(), key=lambda one: one.verdict.gravity).exit_code)


class _Bars:
    """The progress port drawn by rich."""

    def __init__(self, drawn: "Drawn") -> None:
        self._drawn = drawn
        self._tasks: dict[str, TaskID] = {}

    def start(self, task: str, total: int) -> None:
        self._tasks[task] = self._drawn.add_task(task, total=total)

    def advance(self, task: str, steps: int = 1) -> None:
        self._drawn.advance(self._tasks[task], steps)


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress]:
    """A progress port for the duration of a command, on standard error; silent unless that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Drawn(*columns, console=console, transient=True) as drawn:
        yield _Bars(drawn)
