"""``unface gate``: check an audit.json or a validation.json against a policy; the exit code is the verdict."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import QUIET
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.gate import Policy


def gate(
    audit: Path = typer.Argument(
        ..., metavar="RESULT.json", help="What 'unface audit' or 'unface validate' wrote, or its folder."
    ),
    policy: Path | None = typer.Option(
        None, "--policy", help="TOML file of rules; or give a limit by the flags below."
    ),
    tar_max: float | None = typer.Option(None, "--tar-max", help="Share of mated pairs that may be linked, at most."),
    far: float | None = typer.Option(None, "--far", help="False-accept rate at which --tar-max holds."),
    k: int | None = typer.Option(None, "--k", help="Support images for each identity [default: each k of the audit]."),
    probe: str | None = typer.Option(None, "--probe", help="Probe that --tar-max is about [default: the worst case]."),
    space: str | None = typer.Option(
        None, "--space", help="Space the flags are about [default: that of the audit's one eraser, or raw]."
    ),
    retained_min: list[str] = typer.Option(
        [], "--retained-min", metavar="MEASURE=SHARE", help="Usefulness to keep at least, as in knn=0.9; repeated."
    ),
    junit: Path | None = typer.Option(None, "--junit", help="Also write JUnit XML here; replaces an earlier one."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Check an audit or a validation against a policy: passed (exit 0), failed (3) or inconclusive (4)."""
    from unface.gate import judge, judge_validation, print_gate, read_policy, write_junit
    from unface.output.taken import require_distinct
    from unface.result.audit import AuditResult, audit_path
    from unface.result.validation import ValidationResult, validation_path

    if policy is not None and any(flag is not None for flag in (tar_max, far, k, probe, space, *retained_min)):
        raise typer.BadParameter("--policy holds all the rules; leave the other limits out")
    at: dict[str, object] = {"far": far, "k": k, "probe": probe}
    rules = read_policy(policy) if policy is not None else _from_flags(tar_max, at, space, retained_min)
    validation = validation_path(audit)
    audit = validation or audit_path(audit)
    require_distinct([junit], [audit, policy])
    result = (
        judge_validation(ValidationResult.load(audit), rules) if validation else judge(AuditResult.load(audit), rules)
    )
    if junit is not None:
        write_junit(result, junit)
    if json:
        from json import dumps

        typer.echo(dumps(result.as_dict(), indent=2, ensure_ascii=False))
    elif not quiet:
        from rich.console import Console

        print_gate(result, Console())
    raise typer.Exit(result.exit_code)


def _from_flags(tar_max: float | None, at: dict[str, object], space: str | None, retained_min: list[str]) -> "Policy":
    from unface.gate import make_policy

    tables: list[dict[str, object]] = [{"tar_max": tar_max, **at, "space": space}] if tar_max is not None else []
    if not tables and any(value is not None for value in at.values()):
        raise typer.BadParameter("--far, --k and --probe go with --tar-max")
    for text in retained_min:
        measure, _, share = text.rpartition("=")
        try:
            tables.append({"utility": measure, "retained_min": float(share), "space": space})
        except ValueError:
            raise UnfaceError(f"--retained-min: {text!r} is not MEASURE=SHARE, such as knn=0.9") from None
    if not tables:
        raise typer.BadParameter("give --policy, or limits as flags: --tar-max with --far, or --retained-min")
    given = [{key: value for key, value in table.items() if value is not None} for table in tables]
    # An error names the flag that a key of a rule came from.
    return make_policy(
        {"require": given}, lambda _, key: "--retained-min" if key == "utility" else f"--{key.replace('_', '-')}"
    )
