"""If these fail, a gate's verdict is about the wrong space, or passes an audit that cannot be used."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gate.made import INVALID, NOTE, WARNING, audited, erased, gated, one, raw
from unface import UnfaceError
from unface.gate import Verdict, make_policy
from unface.gate.judge import PROTECT, Asked, policy_for, require_asked

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


ASKED = Asked(far=[1e-3, 1e-4], k=[1, 4], erasers=1, utility=False, context=False)
TAR: dict[str, object] = {"far": 1e-4, "tar_max": 0.1}


@pytest.mark.parametrize(
    ("rule", "asked", "why"),
    [
        (
            {"far": 1e-6, "tar_max": 0.1},
            {},
            "asks for FAR 1e-6, and this audit measures 1e-3, 1e-4; add --far 1e-3,1e-4,1e-6",
        ),
        ({**TAR, "k": 16}, {}, "asks for k = 16, and this audit measures k = 1, 4; add --k 1,4,16"),
        (
            {**TAR, "context_adjusted": True},
            {},
            "asks for the context-adjusted TAR, which needs a column; add --group or --context",
        ),
        (TAR, {"erasers": 2}, "names no space and there will be 2 erasers; add space = and the released one's name"),
        (
            {"utility": "knn", "retained_min": 0.9},
            {},
            "asks for knn, which needs a set to measure it on; add --utility",
        ),
        ({"exposed_max": 0.1}, {}, "is about what 'unface release' writes; leave it to 'unface gate'"),
    ],
)
def test_a_rule_that_an_audit_will_not_answer_is_refused_before_it_runs(
    rule: dict[str, object], asked: dict[str, Any], why: str
) -> None:
    policy = make_policy({"require": [{**TAR, "space": "raw"}, rule]}, lambda table, key: f"{table}: {key}")
    with pytest.raises(UnfaceError) as refused:
        require_asked(policy, Path("release.toml"), replace(ASKED, **asked))
    assert str(refused.value) == f"--policy release.toml: rule 2 {why}"


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (TAR, {}),
        ({**TAR, "space": "isp"}, {"erasers": 2}),
        ({**TAR, "far": 1e-4 * (1 + 1e-12)}, {}),
        ({**TAR, "k": 4}, {}),
        ({**TAR, "k": 16}, {"k": []}),
        ({**TAR, "k": 16}, {"k": [1, "all"]}),
        ({**TAR, "context_adjusted": True}, {"context": True}),
        ({"utility": "knn", "retained_min": 0.9}, {"utility": True}),
    ],
)
def test_a_rule_that_the_audit_will_answer_is_not_refused(rule: dict[str, object], asked: dict[str, Any]) -> None:
    policy = make_policy({"require": [rule, {"exposed_max": 0.1}]}, lambda table, key: f"{table}: {key}")
    with pytest.raises(UnfaceError, match="rule 2 is about what 'unface release' writes"):  # rule 1 is let pass
        require_asked(policy, Path("release.toml"), replace(ASKED, **asked))


@pytest.mark.parametrize(
    ("rule", "command", "of"),
    [
        ("risk_max = 0.1\nk = 1", "unface release", None),
        ("risk_max = 0.1\nk = 1", PROTECT, None),
        ("utility_min = 0.6", PROTECT, None),
        ("utility_min = 0.6", "unface release", PROTECT),
        ("exposed_max = 0.1", "unface release", None),
        ("exposed_max = 0.1", PROTECT, "unface release"),
        ("risk_max = 0.1\nk = 1", "unface validate", "unface release"),
    ],
)
def test_a_command_takes_only_rules_about_what_it_writes(
    tmp_path: Path, rule: str, command: str, of: str | None
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"[[require]]\n{rule}\n", encoding="utf-8")
    if of is None:
        policy = policy_for(path, command)
        assert policy is not None
        assert len(policy.require) == 1
    else:
        with pytest.raises(UnfaceError) as refused:
            policy_for(path, command)
        said = f"rule 1 is about what '{of}' writes; leave it to 'unface gate'"
        assert str(refused.value) == f"--policy {path}: {said}"
    assert policy_for(None, command) is None


@pytest.mark.parametrize("content", [{}, {"rules": 1}, {"require": {"far": 1e-3}}])
def test_a_mistake_in_the_whole_policy_is_placed_in_no_table(content: dict[str, object]) -> None:
    with pytest.raises(UnfaceError, match=r"^<\|>: "):
        make_policy(content, lambda table, key: f"<{table}|{key}>")
