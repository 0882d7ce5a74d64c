"""audit.json on disk: written whole or not at all, read only when this version understands it."""

import json
from pathlib import Path

from pydantic import ValidationError

from unface.auditing.schema import SCHEMA, AuditResult
from unface.auditing.together import LEFT_OUT_FILE, left_out_listing, listing
from unface.errors import UnfaceError
from unface.output.taken import require_new_files
from unface.output.write import write_files

AUDIT_FILE = "audit.json"
SUSPECTS_FILE = "suspects.csv"
REPORT_FILE = "report.html"


def require_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds a finished audit, before any work is done for it."""
    require_new_files(folder, (AUDIT_FILE, REPORT_FILE, SUSPECTS_FILE, LEFT_OUT_FILE), force=force)


def save_audit(result: AuditResult, folder: Path, *, force: bool = False) -> Path:
    """Write audit.json, and suspects.csv and left-out.csv where there are any; returns the path of audit.json."""
    require_free(folder, force=force)
    named = {
        SUSPECTS_FILE: listing(("why", "first_id", "first_identity", "second_id", "second_identity"), result.suspects),
        LEFT_OUT_FILE: left_out_listing(result.left_out),
    }
    write_files(folder, {AUDIT_FILE: result.file_text()}, named)
    return folder / AUDIT_FILE


def load_audit(path: Path) -> AuditResult:
    """Read an audit.json."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; give the audit in it, {path / AUDIT_FILE}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise UnfaceError(f"{path}: is not JSON; give the audit.json that 'unface audit' wrote") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema is None:
        raise UnfaceError(f"{path}: says no schema; give the audit.json that 'unface audit' wrote")
    if schema != SCHEMA:
        raise UnfaceError(f"{path}: has schema {schema!r}, this version reads {SCHEMA!r}; use the unface that wrote it")
    try:
        return AuditResult.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        what = first["msg"].lower().removeprefix("value error, ")
        raise UnfaceError(f"{path}: {where}: {what}; was the file changed by hand?") from None
