"""audit.json on disk: written whole or not at all, read only when this version understands it."""

import csv
import json
import os
from io import StringIO
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import ValidationError

from unface.auditing.schema import SCHEMA, AuditResult
from unface.errors import UnfaceError

AUDIT_FILE = "audit.json"
SUSPECTS_FILE = "suspects.csv"
REPORT_FILE = "report.html"


def require_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds a finished audit, before any work is done for it."""
    if folder.exists() and not folder.is_dir():
        raise UnfaceError(f"{folder}: is a file; --out takes a folder")
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UnfaceError(f"{folder}: cannot be written, {there} does not allow it; choose another --out")
    for name in (AUDIT_FILE, REPORT_FILE, SUSPECTS_FILE):
        if (folder / name).exists() and not force:
            raise UnfaceError(f"{folder / name}: exists already; choose another --out or pass --force")


def save_audit(result: AuditResult, folder: Path, *, force: bool = False) -> Path:
    """Write audit.json, and suspects.csv where there are any; returns the path of audit.json."""
    require_free(folder, force=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        suspects = {SUSPECTS_FILE: _csv(result)} if result.suspects else {}
        _replace(folder, {**suspects, AUDIT_FILE: result.model_dump_json(by_alias=True, indent=2) + "\n"})
        if not suspects:
            (folder / SUSPECTS_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise UnfaceError(f"{folder}: cannot be written ({error.strerror}); choose another --out") from None
    return folder / AUDIT_FILE


def load_audit(path: Path) -> AuditResult:
    """Read an audit.json."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise UnfaceError(f"{path}: is not JSON; give the audit.json that 'unface audit' wrote") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise UnfaceError(f"{path}: has schema {schema!r}, this version reads {SCHEMA!r}; use the unface that wrote it")
    try:
        return AuditResult.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnfaceError(f"{path}: {where}: {first['msg'].lower()}; was the file changed by hand?") from None


def _csv(result: AuditResult) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["why", "first_id", "first_identity", "second_id", "second_identity"])
    writer.writerows([_plain(cell) for cell in row] for row in result.suspects)
    return text.getvalue()


def _plain(cell: str) -> str:
    """A name that a spreadsheet would take for a formula, marked as text."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _replace(folder: Path, texts: dict[str, str]) -> None:
    """Nothing is renamed before all is written; suspects.csv has names in it and stays readable by its owner alone."""
    written: dict[str, Path] = {}
    try:
        for name, text in texts.items():
            with NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=f".{name}.", delete=False) as file:
                written[name] = Path(file.name)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if name == AUDIT_FILE:
                written[name].chmod(0o666 & ~_umask())
        for name, path in written.items():
            path.replace(folder / name)
    finally:
        for path in written.values():
            path.unlink(missing_ok=True)
