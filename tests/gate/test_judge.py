"""If these fail, a gate's verdict is about the wrong space, or passes an audit that cannot be used."""

import itertools

import pytest

from tests.gate.made import INVALID, NOTE, WARNING, audited, erased, gated, one, raw
from unface import UnfaceError
from unface.gate import Verdict

PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.5}
FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.001}
UNKNOWN: dict[str, object] = {"far": 1e-6, "tar_max": 0.5}


@pytest.mark.parametrize(
    ("rules", "code", "sentence"),
    [
        ([PASSES, PASSES], 0, "Passed: 2 rules held, for the attackers, rates and people of this test (exit 0)."),
        ([PASSES, FAILS], 3, "Failed: 1 of 2 rules failed (exit 3)."),
        ([UNKNOWN, FAILS, PASSES], 3, "Failed: 1 of 3 rules failed, 1 could not be evaluated (exit 3)."),
        (
            [PASSES, UNKNOWN],
            4,
            "Inconclusive: 1 of 2 rules could not be evaluated, which does not count as a pass (exit 4).",
        ),
    ],
)
def test_failed_outweighs_inconclusive_and_both_outweigh_passed_in_any_order(
    rules: list[dict[str, object]], code: int, sentence: str
) -> None:
    for order in itertools.permutations(rules):
        result = gated(audited(raw()), *order)
        assert (result.exit_code, result.summary) == (code, sentence)


def test_every_rule_is_inconclusive_on_an_invalid_audit() -> None:
    result = gated(audited(raw(), findings=[INVALID]), PASSES, FAILS, UNKNOWN, findings="no-warnings")
    assert {rule.verdict for rule in result.rules} == {Verdict.INCONCLUSIVE}
    assert {rule.reason for rule in result.rules} == {"the audit is invalid: shuffled people are still linked"}
    assert result.exit_code == 4


def test_an_audit_that_is_invalid_without_saying_why_is_invalid_too() -> None:
    rule = one(audited(raw()).model_copy(update={"valid": False}), **PASSES)
    assert (rule.verdict, rule.reason) == (Verdict.INCONCLUSIVE, "the audit is invalid")


def test_a_spread_over_seeds_is_no_interval_to_pass_by() -> None:
    rule = one(audited(raw(), variant="paper"), **PASSES)
    assert rule.verdict is Verdict.INCONCLUSIVE
    assert rule.reason == "the paper variant's intervals are spreads over seeds, which under-cover; audit without it"


def test_a_rule_without_a_space_is_about_what_the_one_eraser_made() -> None:
    controls = [erased("random", control=True), erased("pca", control=True)]
    assert one(audited(raw(), erased("isp"), *controls), **PASSES).space == "isp"
    assert one(audited(raw(), *controls), **PASSES).space == "raw"
    assert one(audited(raw()), **PASSES).space == "raw"


def test_two_erasers_leave_it_open_which_space_is_meant() -> None:
    result = audited(raw(), erased("isp"), erased("leace"), erased("random", control=True))
    with pytest.raises(UnfaceError) as caught:
        gated(result, {**PASSES, "space": "isp"}, PASSES)
    assert str(caught.value) == (
        "rule 2 names no space and the audit has 2 erasers (isp, leace); name the released one "
        "with space = 'isp' or --space isp"
    )


def test_warnings_fail_only_where_the_policy_says_so() -> None:
    warned = audited(raw(), findings=[NOTE, WARNING])
    assert gated(warned, PASSES).exit_code == 0
    strict = gated(warned, PASSES, findings="no-warnings")
    assert strict.exit_code == 3
    assert (strict.rules[-1].verdict, strict.rules[-1].reason) == (
        Verdict.FAILED,
        "near-duplicates: 3 pairs under different identities",
    )
    clean = gated(audited(raw(), findings=[NOTE]), PASSES, findings="no-warnings")
    assert (clean.exit_code, clean.rules[-1].reason) == (0, "the audit has no warnings")


def test_an_audit_without_points_passes_nothing() -> None:
    empty = audited(raw(), erased())
    empty = empty.model_copy(update={"protocol": empty.protocol.model_copy(update={"k": []})})
    rule = one(empty, **PASSES)
    assert (rule.verdict, rule.reason) == (Verdict.INCONCLUSIVE, "no k was measured")
