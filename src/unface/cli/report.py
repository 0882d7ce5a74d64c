"""``unface report``: a result file as a page to read, forward and print. ``unface schema``: its format."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from unface.cli.options import HISTORY, QUIET
from unface.errors import UnfaceError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unface.gate import GateResult, Policy
    from unface.result.history import PastResult
    from unface.result.readings import Readable


class Format(StrEnum):
    """Files that have a schema."""

    AUDIT = "audit"
    VALIDATION = "validation"
    RELEASE = "release"
    INVERSION = "inversion"
    CERTIFICATE = "certificate"
    PROTECTION = "protection"


def report(
    audit: Path = typer.Argument(
        ...,
        metavar="RESULT.json",
        help="What 'unface audit', 'validate', 'release', 'invert', 'certify' or 'facemae audit' wrote, or its folder.",
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        help="The page [default: report.html, or validation.html, release.html … beside it].",
    ),
    policy: Path | None = typer.Option(
        None, "--policy", help="TOML file of rules; the page opens with their verdict ('unface gate' exits with it)."
    ),
    history: Path | None = HISTORY,
    force: bool = typer.Option(False, "--force", help="Overwrite a page that is there."),
    quiet: bool = QUIET,
) -> None:
    """Draw the page of an audit or another result: one file that makes no network requests."""
    from unface.gate import read_policy
    from unface.output.taken import require_distinct, require_new_file
    from unface.result.file import find_result

    audit, kind = find_result(audit)
    page = audit.parent / kind.page if out is None else out
    rules = None if policy is None else read_policy(policy)
    require_distinct([page, history], [audit, policy])
    require_new_file(page, force=force)
    name = kind.file.removesuffix(".json")
    if history is not None and name in (Format.INVERSION, Format.CERTIFICATE, Format.PROTECTION):
        raise UnfaceError(f"--history: does not support {name}s; leave it out")
    result = cast("Readable", kind.load(audit))
    written = _write(result, page, _added(history, result), _decision(result, rules))
    if not quiet:
        typer.echo(printable(str(written)))


def _write(result: "Readable", page: Path, history: "Sequence[PastResult]", decision: "GateResult | None") -> Path:
    from unface.report.certificate import write_certificate
    from unface.report.html import write_report
    from unface.report.inversion import write_inversion
    from unface.report.protection import write_protection
    from unface.report.release import write_release
    from unface.report.validation import write_validation
    from unface.result.audit import AuditResult
    from unface.result.certificate import CertificateResult
    from unface.result.inversion import InversionResult
    from unface.result.protection import ProtectionResult
    from unface.result.release import ReleaseResult
    from unface.result.validation import ValidationResult

    match result:
        case ValidationResult():
            return write_validation(result, page, history, decision)
        case ReleaseResult():
            return write_release(result, page, history=history, decision=decision)
        case InversionResult():
            return write_inversion(result, page, decision)
        case CertificateResult():
            return write_certificate(result, page, decision)
        case ProtectionResult():
            return write_protection(result, page, decision)
        case AuditResult():
            return write_report(result, page, history, decision)
    raise AssertionError("every kind has a page")


def _decision(result: "Readable", policy: "Policy | None") -> "GateResult | None":
    from unface.gate import decide

    return None if policy is None else decide(result, policy)


def _added(history: Path | None, result: "Readable") -> "Sequence[PastResult]":
    from unface.result.history import add_to_history

    return () if history is None else add_to_history(history, result)


def schema(
    file: Format = typer.Argument(Format.AUDIT, help="Which file's format."),
) -> None:
    """Print the JSON Schema of a result file."""
    from unface.result.audit import json_schema
    from unface.result.file import KINDS

    if file is Format.AUDIT:
        content = json_schema()
    else:
        kind = next(kind for kind in KINDS.values() if kind.file == f"{file}.json")
        content = kind.model.model_json_schema(by_alias=True)
    typer.echo(json.dumps(content, indent=2))
