"""The audit: one plan run from embeddings to audit.json, and that file's format."""

from unface.auditing.attributing import Subjects, attribute_pictures
from unface.auditing.findings import headline
from unface.auditing.fitting import fit_certified
from unface.auditing.run import audit
from unface.auditing.save import AUDIT_FILE, REPORT_FILE, SUSPECTS_FILE, load_audit, require_free, save_audit
from unface.auditing.save_attribution import (
    ATTRIBUTION_PAGE,
    require_unattributed,
    save_attribution,
)
from unface.auditing.schema import SCHEMA, AttributionResult, AuditResult, Finding, Point
from unface.auditing.streamed import fit_streamed, is_streamed
from unface.auditing.together import LEFT_OUT_FILE

__all__ = [
    "ATTRIBUTION_PAGE",
    "AUDIT_FILE",
    "LEFT_OUT_FILE",
    "REPORT_FILE",
    "SCHEMA",
    "SUSPECTS_FILE",
    "AttributionResult",
    "AuditResult",
    "Finding",
    "Point",
    "Subjects",
    "attribute_pictures",
    "audit",
    "fit_certified",
    "fit_streamed",
    "headline",
    "is_streamed",
    "load_audit",
    "require_free",
    "require_unattributed",
    "save_attribution",
    "save_audit",
]
