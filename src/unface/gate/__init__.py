"""The gate: an audit.json held against a policy, and a verdict that a build can stop on."""

from unface.gate.judge import judge
from unface.gate.junit import junit_xml, write_junit
from unface.gate.outcome import Found, Verdict
from unface.gate.policy import ImprovementRule, LeakageRule, Policy, UtilityRule
from unface.gate.read import make_policy, read_policy
from unface.gate.result import GateResult, Judged
from unface.gate.table import print_gate

__all__ = [
    "Found",
    "GateResult",
    "ImprovementRule",
    "Judged",
    "LeakageRule",
    "Policy",
    "UtilityRule",
    "Verdict",
    "judge",
    "junit_xml",
    "make_policy",
    "print_gate",
    "read_policy",
    "write_junit",
]
