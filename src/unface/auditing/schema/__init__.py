"""The format of audit.json, one file for each part of it."""

from unface.auditing.schema.erasure import (
    AttributeSwap,
    Certificate,
    Change,
    Erasure,
    Kept,
    Map,
    SpaceResult,
    Sweep,
    SweepPoint,
    Transfer,
    TransferCell,
)
from unface.auditing.schema.given import Curated, Finding, Given, Protocol, RoleCounts, Run
from unface.auditing.schema.numbers import Bounds, Counted, Estimate, Rate
from unface.auditing.schema.points import (
    ContextAdjusted,
    ControlPoint,
    Controls,
    Curve,
    Duplicates,
    Point,
    WithoutSuspects,
)
from unface.auditing.schema.result import SCHEMA, AuditResult

__all__ = [
    "SCHEMA",
    "AttributeSwap",
    "AuditResult",
    "Bounds",
    "Certificate",
    "Change",
    "ContextAdjusted",
    "ControlPoint",
    "Controls",
    "Counted",
    "Curated",
    "Curve",
    "Duplicates",
    "Erasure",
    "Estimate",
    "Finding",
    "Given",
    "Kept",
    "Map",
    "Point",
    "Protocol",
    "Rate",
    "RoleCounts",
    "Run",
    "SpaceResult",
    "Sweep",
    "SweepPoint",
    "Transfer",
    "TransferCell",
    "WithoutSuspects",
]
