"""``unface report``: a result file as a page to read, forward and print. ``unface schema``: its format."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

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
    from unface.report.html import write_report
    from unface.result.audit import REPORT_FILE, AuditResult, audit_path
    from unface.result.certificate import CERTIFICATE_PAGE, CertificateResult, certificate_path
    from unface.result.inversion import INVERSION_PAGE, InversionResult, inversion_path
    from unface.result.protection import PROTECTION_PAGE, ProtectionResult, protection_path
    from unface.result.release import RELEASE_PAGE, ReleaseResult, release_path
    from unface.result.validation import VALIDATION_PAGE, ValidationResult, validation_path

    validation, release, inversion = validation_path(audit), release_path(audit), inversion_path(audit)
    certificate, protection = certificate_path(audit), protection_path(audit)
    audit = validation or release or inversion or certificate or protection or audit_path(audit)
    pages = {
        VALIDATION_PAGE: validation,
        RELEASE_PAGE: release,
        INVERSION_PAGE: inversion,
        CERTIFICATE_PAGE: certificate,
        PROTECTION_PAGE: protection,
    }
    usual = next((page for page, found in pages.items() if found), REPORT_FILE)
    page = audit.parent / usual if out is None else out
    rules = None if policy is None else read_policy(policy)
    require_distinct([page, history], [audit, policy])
    require_new_file(page, force=force)
    if history is not None and (inversion or certificate or protection):
        what = "inversions" if inversion else "certificates" if certificate else "protections"
        raise UnfaceError(f"--history: does not support {what}; leave it out")
    if validation:
        from unface.report.validation import write_validation

        validated = ValidationResult.load(audit)
        written = write_validation(validated, page, _added(history, validated), _decision(validated, rules))
    elif release:
        from unface.report.release import write_release

        released = ReleaseResult.load(audit)
        written = write_release(released, page, history=_added(history, released), decision=_decision(released, rules))
    elif inversion:
        from unface.report.inversion import write_inversion

        inverted = InversionResult.load(audit)
        written = write_inversion(inverted, page, decision=_decision(inverted, rules))
    elif certificate:
        from unface.report.certificate import write_certificate

        certified = CertificateResult.load(audit)
        written = write_certificate(certified, page, _decision(certified, rules))
    elif protection:
        from unface.report.protection import write_protection

        protected = ProtectionResult.load(audit)
        written = write_protection(protected, page, _decision(protected, rules))
    else:
        audited = AuditResult.load(audit)
        written = write_report(audited, page, _added(history, audited), _decision(audited, rules))
    if not quiet:
        typer.echo(printable(str(written)))


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
    from unface.result.certificate import certificate_schema
    from unface.result.inversion import inversion_schema
    from unface.result.protection import protection_schema
    from unface.result.release import release_schema
    from unface.result.validation import validation_schema

    schemas = {
        Format.AUDIT: json_schema,
        Format.VALIDATION: validation_schema,
        Format.RELEASE: release_schema,
        Format.INVERSION: inversion_schema,
        Format.CERTIFICATE: certificate_schema,
        Format.PROTECTION: protection_schema,
    }
    typer.echo(json.dumps(schemas[file](), indent=2))
