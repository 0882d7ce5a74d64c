"""The gate: checks an audit.json or a validation.json against a policy and gives a verdict that a build can stop on."""

from unface.gate.judge import GateResult, RuleResult, judge, judge_validation
from unface.gate.policy import (
    ImprovementRule,
    LeakageRule,
    Policy,
    UtilityRule,
    ValidationRule,
    make_policy,
    read_policy,
)
from unface.gate.rules import Measurement, Verdict
from unface.gate.show import junit_xml, print_gate, write_junit

__all__ = [
    "GateResult",
    "ImprovementRule",
    "LeakageRule",
    "Measurement",
    "Policy",
    "RuleResult",
    "UtilityRule",
    "ValidationRule",
    "Verdict",
    "judge",
    "judge_validation",
    "junit_xml",
    "make_policy",
    "print_gate",
    "read_policy",
    "write_junit",
]
