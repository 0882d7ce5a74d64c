"""If these fail, vectors that can be inverted pass a gate, or an attack that did not converge counts as a pass."""

import json
from pathlib import Path

import pytest

from unface.errors import UnfaceError
from unface.gate import GateResult, decide, make_policy
from unface.gate.rules import Verdict
from unface.result.file import Run
from unface.result.inversion import (
    Attacked,
    EqualError,
    InversionCell,
    InversionJudge,
    InversionResult,
    InversionSuccess,
    Passes,
    SpaceFacts,
    TargetPeople,
)
from unface.result.numbers import Estimate, Interval, Rate, Share
from unface.result.validation import JudgeThreshold

NOTHING = Passes(encoder_forward=0, encoder_backward=0, prior_forward=0, prior_backward=0, seconds=0)
COSINE = Estimate(0.9, 0.8, 0.95, 0.95)


def cell(attack: str, accepted: int, space: str = "raw", *, converged: bool | None = True) -> InversionCell:
    share = Share.counted(accepted, 100, Interval(max(accepted / 100 - 0.02, 0), accepted / 100 + 0.03, 0.95), 100)
    point = InversionSuccess(far=1e-3, judge="all", same=share, other=share, derangement=Rate.counted(0, 900))
    return InversionCell(
        attack=attack,
        space=space,
        settings={},
        knows=[],
        gives="pictures",
        targets=100,
        no_face=0,
        reached=COSINE,
        converged=converged,
        at=[point],
        each=NOTHING,
        shared=NOTHING,
    )


def result(*cells: InversionCell, resolution: str = "resolved") -> InversionResult:
    threshold = JudgeThreshold(far=1e-3, cosine=0.3, impostors=10**5, false_accepts=99, resolution=resolution)  # type: ignore[arg-type]
    error = EqualError(rate=0.05, cosine=0.2, far=0.05)
    judge = InversionJudge(name="sface", independent=True, thresholds=[threshold], equal_error=error)
    spaces = [
        SpaceFacts(name=name, kind=None, rank=0, dim=8, projection_sha256=None, second=COSINE, strangers=COSINE)
        for name in dict.fromkeys(one.space for one in cells)
    ]
    people = TargetPeople(source="x", generated=True, targets=100, pictures=200, train=0, calibrate=100, sha256="ab")
    return InversionResult(
        encoder=Attacked(name="e", dim=8, weights_sha256=None, aligned=False),
        people=people,
        prior=None,
        judges=[judge],
        spaces=spaces,
        cells=list(cells),
        ceiling=[],
        findings=[],
        run=Run(unface="0", started="", seconds=0),
    )


def judged(found: InversionResult, **rule: object) -> GateResult:
    policy = make_policy({"require": [{"inverted_max": 0.05, "far": 1e-3, **rule}]}, lambda table, key: table + key)
    return decide(found, policy)


@pytest.mark.parametrize(
    ("cells", "rule", "verdict", "why"),
    [
        ([cell("alsuv", 1), cell("bob", 0)], {}, Verdict.PASSED, "alsuv: the upper end, 4.0 %, is within the limit"),
        (
            [cell("bob", 0), cell("alsuv", 3)],
            {},
            Verdict.FAILED,
            "alsuv: the value is within the limit, but its interval reaches 6.0 %",
        ),
        ([cell("bob", 0), cell("alsuv", 60)], {}, Verdict.FAILED, "alsuv: 60.0 % is more than 5.0 %"),
        (
            [cell("bob", 0), cell("alsuv", 60)],
            {"attack": "bob"},
            Verdict.PASSED,
            "bob: the upper end, 3.0 %, is within the limit",
        ),
        ([cell("alsuv", 60), cell("alsuv", 1, "isp")], {"space": "isp"}, Verdict.PASSED, "within"),
        ([cell("alsuv", 0, converged=False)], {}, Verdict.INCONCLUSIVE, "no attack converged"),
        ([cell("alsuv", 9, converged=False)], {}, Verdict.FAILED, "9.0 % is more than"),
        ([cell("alsuv", 0)], {"space": "isp"}, Verdict.INCONCLUSIVE, "was not run; the inversion has alsuv on raw"),
        ([cell("alsuv", 0)], {"far": 1e-4}, Verdict.INCONCLUSIVE, "FAR 1e-4 was not measured; there is 1e-3"),
    ],
)
def test_the_upper_end_of_the_worst_attack_decides(
    cells: list[InversionCell], rule: dict[str, object], verdict: Verdict, why: str
) -> None:
    found = judged(result(*cells), **rule)
    assert found.verdict is verdict
    assert why in found.rules[0].reason


def test_coarse_rates_and_rules_of_other_files_are_inconclusive() -> None:
    coarse = result(cell("alsuv", 0), resolution="coarse")
    assert judged(coarse).verdict is Verdict.INCONCLUSIVE
    assert judged(coarse, coarse="allow").verdict is Verdict.PASSED
    policy = make_policy({"require": [{"tar_max": 0.01, "far": 1e-3}]}, lambda table, key: table + key)
    other = decide(coarse, policy)
    assert other.verdict is Verdict.INCONCLUSIVE
    assert "this file is an inversion; the rule is about what 'unface audit' wrote" in other.rules[0].reason


def test_an_attack_on_a_space_that_the_file_does_not_describe_is_refused(tmp_path: Path) -> None:
    content = json.loads(result(cell("alsuv", 62), cell("alsuv", 4, "isp")).file_text())
    for known in (1, 0):
        spaces = content["spaces"][:known]
        (tmp_path / "inversion.json").write_text(json.dumps({**content, "spaces": spaces}), encoding="utf-8")
        with pytest.raises(UnfaceError, match=r"inversion\.json: .*which the file does not describe"):
            InversionResult.load(tmp_path / "inversion.json")


def test_a_rule_about_other_pictures_is_not_judged_by_the_attacked_one() -> None:
    found = cell("alsuv", 1)
    easier = Share.counted(60, 100, Interval(0.5, 0.7, 0.95), 100)
    point = found.at[0].model_copy(update={"same": easier})
    measured = result(found.model_copy(update={"at": [point]}))
    limits = {"far": 1e-3, "space": "raw", "inverted_max": 0.1}
    (other,) = judged(measured, **limits, pictures="other").rules
    (same,) = judged(measured, **limits, pictures="same").rules
    assert (other.verdict, same.verdict) == (Verdict.PASSED, Verdict.FAILED)
    assert other.rule.startswith("inversion of raw vectors against other pictures at FAR 1e-3")
    assert same.rule.startswith("inversion of raw vectors against the attacked picture at FAR 1e-3")
    assert same.measured is not None
    assert (same.measured.value, same.measured.limit, same.measured.unit) == (0.6, 0.1, "share")
