"""If these fail, a gate lets a face set pass that links people, or is good for nothing."""

import numpy as np
import pytest
from pydantic import ValidationError

from unface.gate import decide, make_policy
from unface.protect.attackers import share_of
from unface.result.file import Finding, Run
from unface.result.protection import (
    AttackerResult,
    MethodResult,
    PairsResult,
    ProtectionResult,
    ReleaseFacts,
    SecondRelease,
)
from unface.result.release import RiskResult


def attacker(name: str, hits: int, chosen: float = 0.1) -> AttackerResult:
    share = share_of(np.array([hits] * 20), np.array([100] * 20), 0)
    risks = [
        RiskResult(pictures=pictures, identities=size, released=5 * size, k=k, share=share, chance=0.01)
        for pictures in ("same", "other")
        for size in (10, 20)
        for k in (1, 2)
    ]
    return AttackerResult(
        name=name, kind="recogniser", far=1e-3, cosine=0.4, achieved_far=1e-3, same=share, other=share,
        calibrate_other=chosen, retrieval=risks,
    )  # fmt: skip


def pairs(value: float, name: str = "lfw", seeds: int = 1) -> PairsResult:
    folds = [value + 0.01 * (at % 2) - 0.005 for at in range(10)]
    return PairsResult(name=name, pairs=6000, seeds=list(range(seeds)), by_seed=[folds] * seeds)


def protection(*, hits: int = 30, value: float = 0.8, invalid: bool = False) -> ProtectionResult:
    worst = attacker("fine-tuned", hits, 0.5)
    share = worst.same
    methods = [
        MethodResult(
            name="FaceMAE", ratio=0.75, audited=True, pictures=200, people=40, utility=[pairs(value)],
            attackers=[attacker("weak", 0), worst],
        ),
        MethodResult(
            name="originals", ratio=None, pictures=200, people=40, utility=[pairs(0.9)], attackers=[attacker("a", 90)]
        ),
        MethodResult(
            name="FaceMAE", ratio=0.9, pictures=200, people=40, utility=[pairs(0.7)], attackers=[attacker("a", 5)]
        ),
        MethodResult(
            name="people who do not exist", ratio=None, pictures=9, people=3, utility=[pairs(0.6)], attackers=[]
        ),
    ]  # fmt: skip
    return ProtectionResult(
        release=ReleaseFacts(
            name="<b>set</b>", sha256="ab", people=40, pictures=200, preset="tiny", loss="irm", recogniser="sface",
            model_sha256="cd",
        ),
        calibrate_people=20,
        measured_people=20,
        methods=methods,
        second=SecondRelease(
            attacker="fine-tuned", same_seed_shown=0.25, other_seed_shown=0.44, one=share, both=share
        ),
        findings=[Finding(severity="invalid", about="test", text="broken")] if invalid else [],
        not_measured=["other backbones"],
        run=Run(unface="1", started="2026-01-01T00:00:00+00:00", seconds=1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "code", "words"),
    [
        ({"utility_min": 0.79}, 0, "the lower end is at least 79.0 %"),
        ({"utility_min": 0.797}, 3, "the lower end is below"),
        ({"utility_min": 0.85}, 3, "even the value is below 85.0 %"),
        ({"utility_min": 0.5, "pairs": "agedb_30"}, 4, "verification on agedb_30 was not measured; there is lfw"),
        ({"risk_max": 0.6, "k": 2}, 0, "is within the limit"),
        ({"risk_max": 0.2, "k": 2}, 3, "is more than 20.0 %"),
        ({"risk_max": 0.6, "k": 2, "pictures": "same"}, 0, "within"),
        ({"risk_max": 0.5, "k": 7}, 4, "was not measured"),
        ({"tar_max": 0.5, "far": 1e-3}, 4, "this file is a protection; the rule is about what 'unface audit' wrote"),
    ],
)
def test_the_worse_end_of_the_worst_attacker_decides(rule: dict[str, object], code: int, words: str) -> None:
    decision = decide(protection(), make_policy({"require": [rule]}, lambda table, key: f"{table} {key}"))
    assert decision.exit_code == code
    assert words in decision.rules[0].reason


def test_invalid_numbers_are_inconclusive_and_other_files_have_no_such_rule() -> None:
    policy = make_policy({"require": [{"utility_min": 0.5}]}, lambda table, key: f"{table} {key}")
    assert decide(protection(invalid=True), policy).exit_code == 4


def test_accuracy_is_student_over_folds_and_seeds_worked_by_hand() -> None:
    """Ten folds of 0.8 ± 0.005: s = 0.00527, half = 2.262 · s / √10 = 0.00377; equal seeds add nothing."""
    found = pairs(0.8, seeds=3).accuracy
    assert found.value == pytest.approx(0.8)
    assert found.high - found.value == pytest.approx(2.262 * 0.005270463 / 10**0.5, rel=1e-6)
    # Two seeds that differ by 0.02: s = 0.01414 of two, half = 12.706 · 0.01414 / √2 = 0.12706.
    two = PairsResult(name="lfw", pairs=10, seeds=[1, 2], by_seed=[[0.81] * 10, [0.79] * 10]).accuracy
    assert two.high - two.value == pytest.approx(0.12706)


def test_differences_are_paired_by_fold_and_seed() -> None:
    """Both vary by fold in the same way: the difference does not vary at all."""
    less = pairs(0.8, seeds=3).less(pairs(0.9, seeds=3))
    assert less is not None
    assert (less.low, less.value, less.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert pairs(0.8).less(pairs(0.8, "agedb_30")) is None


def test_the_verdict_says_who_is_linked_and_what_it_is_good_for() -> None:
    said = protection().verdict
    assert said.startswith("This release does not fully hide who is in it. Given another photo of a person, the strong")
    assert "the strongest attacker links" in said
    assert "links 30.0 % of the released faces to them, at one false match in 1,000" in said
    assert "With the originals: 90.0 %" in said
    assert "judges 80.0 % of photo pairs correctly (lfw; guessing: 50 %)" in said
    assert protection(hits=0).verdict.startswith("Given another photo of a person, the strongest attacker links 0.0 %")
    assert "That is not more than chance; " in protection(hits=0).verdict


@pytest.mark.parametrize("folds", [[], [[]], [[0.9] * 10, [0.9] * 9], [[0.9] * 10, []], [[1e308] * 10]], ids=str)
def test_accuracies_that_are_not_one_for_each_fold_and_seed_are_refused(folds: list[list[float]]) -> None:
    with pytest.raises(ValidationError):
        PairsResult(name="lfw", pairs=6000, seeds=list(range(max(len(folds), 1))), by_seed=folds)


def test_a_risk_is_told_with_its_attacker_and_beside_guessing() -> None:
    policy = make_policy({"require": [{"risk_max": 0.9, "k": 1}]}, lambda table, key: f"{table}: {key}")
    (rule,) = decide(protection(), policy).rules
    assert rule.rule.endswith("K = 1, worst attacker")
    assert rule.meaning.endswith(" (by guessing: 1.0 %)")
    assert rule.measured is not None
    assert rule.measured.unit == "share"
