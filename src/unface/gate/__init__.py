"""The gate: checks a result file against a policy, or against an earlier one; a build can stop on the verdict."""

from unface.gate.ci import diff_markdown, gate_markdown, junit_xml, sarif, write_ci_file, write_markdown
from unface.gate.diff import Diff, Difference, Trend, compare
from unface.gate.judge import Asked, GateResult, RuleResult, decide, needed_far, needed_k, policy_for, require_asked
from unface.gate.policy import (
    CertificateRule,
    CopiesRule,
    ExposedRule,
    ImprovementRule,
    InversionRule,
    LeakageRule,
    Policy,
    RiskRule,
    UtilityRule,
    ValidationRule,
    make_policy,
    read_policy,
)
from unface.gate.rules import Measurement, Verdict
from unface.gate.show import print_decision, print_diff, print_gate

__all__ = [
    "Asked",
    "CertificateRule",
    "CopiesRule",
    "Diff",
    "Difference",
    "ExposedRule",
    "GateResult",
    "ImprovementRule",
    "InversionRule",
    "LeakageRule",
    "Measurement",
    "Policy",
    "RiskRule",
    "RuleResult",
    "Trend",
    "UtilityRule",
    "ValidationRule",
    "Verdict",
    "compare",
    "decide",
    "diff_markdown",
    "gate_markdown",
    "junit_xml",
    "make_policy",
    "needed_far",
    "needed_k",
    "policy_for",
    "print_decision",
    "print_diff",
    "print_gate",
    "read_policy",
    "require_asked",
    "sarif",
    "write_ci_file",
    "write_markdown",
]
