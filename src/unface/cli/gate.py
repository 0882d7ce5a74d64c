"""``unface gate``: check a result against a policy. ``unface diff``: against an earlier one. The exit code is the
verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from unface.cli.options import HISTORY, QUIET
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.gate import Policy
    from unface.result.readings import Readable

MARKDOWN = typer.Option(
    None,
    "--markdown",
    metavar="FILE",
    help='Also write Markdown here; - prints it instead, "$GITHUB_STEP_SUMMARY" is added to.',
)


def gate(
    audit: Path = typer.Argument(
        ...,
        metavar="RESULT.json",
        help="What 'unface audit', 'validate', 'release', 'invert', 'certify' or 'facemae audit' wrote, or its folder.",
    ),
    policy: Path | None = typer.Option(
        None, "--policy", help="TOML file of rules; or give a limit by the flags below."
    ),
    tar_max: float | None = typer.Option(None, "--tar-max", help="Largest share of pairs that may be linked (TAR)."),
    far: float | None = typer.Option(None, "--far", help="False-accept rate at which --tar-max holds."),
    k: int | None = typer.Option(None, "--k", help="Pictures of each person to learn from [default: each k]."),
    probe: str | None = typer.Option(None, "--probe", help="Probe that --tar-max is about [default: the worst case]."),
    space: str | None = typer.Option(
        None, "--space", help="Space the flags are about [default: that of the audit's one eraser, or raw]."
    ),
    retained_min: list[str] = typer.Option(
        [], "--retained-min", metavar="MEASURE=SHARE", help="Smallest share to keep, such as knn=0.9; repeated."
    ),
    junit: Path | None = typer.Option(None, "--junit", help="Also write JUnit XML here; replaces an earlier one."),
    sarif: Path | None = typer.Option(None, "--sarif", help="Also write SARIF 2.1.0 here; replaces an earlier one."),
    markdown: Path | None = MARKDOWN,
    history: Path | None = HISTORY,
    json: bool = typer.Option(False, "--json", help="Print the result as JSON instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Check an audit or another result against a policy: passed (exit 0), failed (3) or inconclusive (4)."""
    from unface.gate import (
        decide,
        gate_markdown,
        junit_xml,
        print_gate,
        read_policy,
        write_ci_file,
    )
    from unface.gate import sarif as sarif_log
    from unface.output.taken import require_distinct
    from unface.result.file import find_result
    from unface.result.history import add_to_history

    if policy is not None and any(flag is not None for flag in (tar_max, far, k, probe, space, *retained_min)):
        raise typer.BadParameter("--policy holds all the rules; leave the other limits out")
    at: dict[str, object] = {"far": far, "k": k, "probe": probe}
    rules = read_policy(policy) if policy is not None else _from_flags(tar_max, at, space, retained_min)
    audit, kind = find_result(audit)
    require_distinct([junit, sarif, markdown, history], [audit, policy])
    judged = cast("Readable", kind.load(audit))
    result = decide(judged, rules)
    if history is not None:
        add_to_history(history, judged, result.verdict)
    if junit is not None:
        write_ci_file(junit_xml(result), junit, "--junit")
    if sarif is not None:
        write_ci_file(sarif_log(result, audit), sarif, "--sarif")
    if not _shown(gate_markdown(result), result.as_dict(), markdown, json=json, quiet=quiet):
        from rich.console import Console

        print_gate(result, Console())
    raise typer.Exit(result.exit_code)


def diff(
    old: Path = typer.Argument(..., metavar="OLD.json", help="An earlier result, or its folder."),
    new: Path = typer.Argument(..., metavar="NEW.json", help="The result to compare with it, of the same kind."),
    margin: float | None = typer.Option(
        None,
        "--margin",
        metavar="SHARE",
        help="Exit 4 where a headline number may be worse by more than this, such as 0.01 for 1 point.",
    ),
    markdown: Path | None = MARKDOWN,
    json: bool = typer.Option(False, "--json", help="Print the comparison as JSON instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Compare two results: no regression (exit 0), worse beyond the interval (3) or inconclusive (4).

    Numbers are paired person by person where exposed.csv is beside both files; elsewhere the intervals of both files
    are added up. Inconclusive: a number of OLD is missing in NEW, the two were measured differently, or one is invalid.
    """
    from unface.gate import compare, diff_markdown, print_diff
    from unface.output.taken import require_distinct
    from unface.result.readings import counts_beside, read_result

    if margin is not None and not 0 <= margin < 1:
        raise UnfaceError(f"--margin: {margin:g} is not a share from 0 to below 1, such as 0.01 for 1 point")
    (before, old), (after, new) = read_result(old), read_result(new)
    require_distinct([markdown], [old, new])
    found = compare(before, after, counts_beside(old), counts_beside(new), margin=margin)
    if not _shown(diff_markdown(found), found.as_dict(), markdown, json=json, quiet=quiet):
        from rich.console import Console

        print_diff(found, Console())
    raise typer.Exit(found.exit_code)


def _shown(text: str, content: dict[str, object], markdown: Path | None, *, json: bool, quiet: bool) -> bool:
    """Write or print the Markdown, print the JSON; whether nothing is left to show."""
    on_terminal = markdown is not None and str(markdown) == "-"
    if json and on_terminal:
        raise typer.BadParameter("--json and --markdown - both print; give --markdown a file")
    if markdown is not None and not on_terminal:
        from unface.gate import write_markdown

        write_markdown(text, markdown)
    if on_terminal:
        typer.echo(text, nl=False)
    elif json:
        from json import dumps

        typer.echo(dumps(content, indent=2, ensure_ascii=False))
    return on_terminal or json or quiet


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
