"""The audit: one plan run from embeddings to audit.json, and that file's format."""

from unface.auditing.findings import headline
from unface.auditing.fitting import fit_certified
from unface.auditing.run import audit
from unface.auditing.save import AUDIT_FILE, REPORT_FILE, SUSPECTS_FILE, load_audit, require_free, save_audit
from unface.auditing.schema import SCHEMA, AuditResult, Finding, Point
from unface.auditing.streamed import fit_streamed, is_streamed

__all__ = [
    "AUDIT_FILE",
    "REPORT_FILE",
    "SCHEMA",
    "SUSPECTS_FILE",
    "AuditResult",
    "Finding",
    "Point",
    "audit",
    "fit_certified",
    "fit_streamed",
    "headline",
    "is_streamed",
    "load_audit",
    "require_free",
    "save_audit",
]
