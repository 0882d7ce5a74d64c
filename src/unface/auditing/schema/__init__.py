"""The format of audit.json, one file for each part of it."""

from unface.auditing.schema.attribution import (
    AttributedSpace,
    AttributionQuality,
    AttributionResult,
    Averaged,
    EncoderAttribution,
    Pictures,
    Share,
)
from unface.auditing.schema.erasure import (
    AttributeSwap,
    Certificate,
    Change,
    Erasure,
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
from unface.result.numbers import Kept

__all__ = [
    "SCHEMA",
    "AttributeSwap",
    "AttributedSpace",
    "AttributionQuality",
    "AttributionResult",
    "AuditResult",
    "Averaged",
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
    "EncoderAttribution",
    "Erasure",
    "Estimate",
    "Finding",
    "Given",
    "Kept",
    "Map",
    "Pictures",
    "Point",
    "Protocol",
    "Rate",
    "RoleCounts",
    "Run",
    "Share",
    "SpaceResult",
    "Sweep",
    "SweepPoint",
    "Transfer",
    "TransferCell",
    "WithoutSuspects",
]
