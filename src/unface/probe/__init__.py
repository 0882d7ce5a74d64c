"""The attackers: a panel of probes under one k-shot protocol, its controls, and what its numbers rest on."""

from unface.probe.context import Context, ContextAdjusted, GroupContext, LeftOut, SignatureContext, adjust_for_context
from unface.probe.control import Control, shuffled_control
from unface.probe.defects import Lookalike, NearDuplicates, Stray, lookalikes, near_duplicates, strays
from unface.probe.kshot import RoleRows, role_rows
from unface.probe.measure import Bootstrap, Measurement, difference, draw_bootstrap, measure
from unface.probe.panel import PAPER_PROBES, PROBES, USUAL_PROBES, Panel, Roles, calibrate_tar, pick_probes, run_panel
from unface.probe.plan import Plan, Resolved, Variant
from unface.probe.ports import Probe, Scorer, Setting, Support
from unface.probe.trial import Trial

__all__ = [
    "PAPER_PROBES",
    "PROBES",
    "USUAL_PROBES",
    "Bootstrap",
    "Context",
    "ContextAdjusted",
    "Control",
    "GroupContext",
    "LeftOut",
    "Lookalike",
    "Measurement",
    "NearDuplicates",
    "Panel",
    "Plan",
    "Probe",
    "Resolved",
    "RoleRows",
    "Roles",
    "Scorer",
    "Setting",
    "SignatureContext",
    "Stray",
    "Support",
    "Trial",
    "Variant",
    "adjust_for_context",
    "calibrate_tar",
    "difference",
    "draw_bootstrap",
    "lookalikes",
    "measure",
    "near_duplicates",
    "pick_probes",
    "role_rows",
    "run_panel",
    "shuffled_control",
    "strays",
]
