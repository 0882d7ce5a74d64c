"""If these fail, a synthetic set passes a gate that it should not, or what was not measured counts as a pass."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from unface.errors import UnfaceError
from unface.gate import GateResult, Trend, compare, decide, make_policy
from unface.gate.rules import Verdict
from unface.report.release import render_release
from unface.result.file import Finding, Run
from unface.result.history import past_result
from unface.result.numbers import Estimate, Interval, Share
from unface.result.release import (
    CopiesResult,
    EnrichmentResult,
    ExactCopies,
    ExchangeabilityResult,
    ExposureResult,
    Linking,
    MembershipResult,
    PermutationTest,
    ReleaseResult,
    RiskResult,
    SeparationResult,
    SetFacts,
    ViewResult,
)

TEST = PermutationTest(p=0.4, exact=True, permutations=None)


def share(numerator: int, denominator: int, low: float, high: float) -> Share:
    return Share.counted(numerator, denominator, Interval(low, high, 0.95), denominator)


def facts(name: str, people: int | None) -> SetFacts:
    return SetFacts(
        name=name,
        sha256="00",
        rows=1000,
        people=people,
        clustered=False,
        dim=8,
        encoder="sface",
        weights_sha256=None,
    )


def exposure(listed: int, least: int = 2) -> ExposureResult:
    found = share(listed, 1000, max(listed / 1000 - 0.002, 0), listed / 1000 + 0.003)
    return ExposureResult(fdr=0.05, exposed=found, least=least, pictures=3, smallest_p=0.001)


def view(name: str = "face", *, listed: int = 0, least: int = 2, links: bool = True) -> ViewResult:
    return ViewResult(
        name=name,
        linking=Linking(far=0.01, tar=share(50, 100, 0.4, 0.6), above_chance=links),
        membership=MembershipResult(share=share(500, 1000, 0.47, 0.53), null=0.5, test=TEST),
        exposure=exposure(listed, least),
        separation=SeparationResult(
            auc=Estimate(0.5, 0.48, 0.52, 0.95), fpr=0.01, tpr=None, average_precision=0.5, coin=0.5
        ),
        copies=[
            CopiesResult(
                far=far,
                cosine=0.4,
                strangers=1000,
                false_accepts=1,
                resolution="coarse" if far == 1e-5 else "resolved",
                copies=share(5, 1000, 0.002, 0.01),
                holdout=4,
                expected=4.0,
                excess=Estimate(0.001, -0.002, 0.004, 0.95),
                test=TEST,
            )
            for far in (1e-4, 1e-5)
        ],
        riskiest=[],
    )


def result(*views: ViewResult, holds: bool = True, **more: object) -> ReleaseResult:
    return ReleaseResult(
        synthetic=facts("drawn", None),
        training=facts("people", 1000),
        holdout=facts("others", 1000),
        exchangeable=ExchangeabilityResult(auc=0.5 if holds else 0.9, limit=0.55, people=500, holds=holds),
        views=list(views) or [view()],
        fused=None,
        retrieval=[
            RiskResult(
                pictures="other",
                identities=size,
                released=size,
                k=2,
                share=share(60, 1000, 0.05, 0.07),
                chance=2 / size,
            )
            for size in (10, 1000)
        ],
        findings=[],
        run=Run(unface="0", started="2026-01-01T00:00:00+00:00", seconds=1.0),
    ).model_copy(update=more)


def test_a_list_of_one_trait_counts_if_its_test_survives_the_correction_for_all_views() -> None:
    def enriched(name: str, p: float, listed: int = 0) -> ViewResult:
        near = EnrichmentResult(nearest=20, training=15, expected=10.0, p=p)
        return view(name, listed=listed).model_copy(update={"enrichment": near})

    found = result(enriched("face", 0.5), enriched("eyes", 0.002, 40), enriched("nose", 0.004))
    # Holm: 3 · 0.002, then 2 · 0.004, then 0.5.
    assert found.corrected == {"eyes": pytest.approx(0.006), "nose": pytest.approx(0.008), "face": 0.5}
    assert gated(found, exposed_max=0.03).verdict is Verdict.FAILED
    by_chance = result(enriched("face", 0.5), enriched("eyes", 0.004, 40), enriched("nose", 0.005))
    assert by_chance.corrected["nose"] == pytest.approx(0.012), "not below that of a smaller p-value"
    assert gated(by_chance, exposed_max=0.03).verdict is Verdict.PASSED


def test_exact_copies_fail_the_gate_whatever_the_holdout_is_worth() -> None:
    copied = ExactCopies(faces=30, people=20)
    for holds in (True, False):
        found = result(holds=holds, exact=copied)
        assert gated(found, exposed_max=0.019).verdict is Verdict.FAILED  # 20 of 1,000 people
        assert gated(found, copies_max=0.029, far=1e-3).verdict is Verdict.FAILED  # 30 of 1,000 faces
    assert gated(result(exact=copied), exposed_max=0.02).verdict is Verdict.PASSED
    assert result(holds=False, exact=copied).decision == "leaks"
    assert result(holds=False).decision == "not comparable"


def test_releases_are_compared_by_the_people_they_expose_and_have_a_trend() -> None:
    few, many = result(view(listed=1)), result(view(listed=200))
    diff = compare(few, many)
    (row,) = (row for row in diff.rows if row.headline)
    assert row.what == "people exposed"
    assert (row.trend, diff.exit_code) == (Trend.WORSE, 3)
    assert compare(many, few).exit_code == 0
    assert compare(few, result(view(listed=1), holds=False)).exit_code == 4
    page = render_release(many, history=[past_result(few), past_result(many)])
    assert 'id="trend"' in page
    assert 'id="trend"' not in render_release(many)


def gated(found: ReleaseResult, **rule: object) -> GateResult:
    return decide(found, make_policy({"require": [rule]}, lambda table, key: f"{table}: {key}"))


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ({"exposed_max": 0.003}, Verdict.PASSED),
        ({"exposed_max": 0.002}, Verdict.INCONCLUSIVE),  # nobody of 1,000 is listed; that shows no less than 0.3 %
        ({"copies_max": 0.004, "far": 1e-4}, Verdict.PASSED),
        ({"copies_max": 0.0039, "far": 1e-4}, Verdict.FAILED),
        ({"copies_max": 0.004, "far": 1e-5}, Verdict.INCONCLUSIVE),
        ({"copies_max": 0.004, "far": 1e-5, "coarse": "allow"}, Verdict.PASSED),
        ({"copies_max": 0.004, "far": 1e-3}, Verdict.INCONCLUSIVE),
        ({"risk_max": 0.07, "k": 2}, Verdict.PASSED),
        ({"risk_max": 0.069, "k": 2}, Verdict.FAILED),
        ({"risk_max": 0.07, "k": 1}, Verdict.INCONCLUSIVE),
        ({"risk_max": 0.07, "k": 2, "pictures": "same"}, Verdict.INCONCLUSIVE),
        ({"exposed_max": 0.01, "view": "eyes"}, Verdict.INCONCLUSIVE),
        ({"tar_max": 0.01, "far": 1e-4}, Verdict.INCONCLUSIVE),
        ({"success_max": 0.01, "far": 1e-4, "queries": 5}, Verdict.INCONCLUSIVE),
    ],
)
def test_the_upper_end_decides_and_what_was_not_measured_never_passes(
    rule: dict[str, object], verdict: Verdict
) -> None:
    assert gated(result(), **rule).verdict is verdict


def test_a_holdout_that_could_list_nobody_below_the_limit_cannot_pass() -> None:
    found = gated(result(view(least=21)), exposed_max=0.01)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "21 people are exposed" in found.rules[0].reason
    assert gated(result(view(least=11)), exposed_max=0.01).verdict is Verdict.PASSED


def test_listed_people_fail_whatever_else_holds_and_all_views_together_count() -> None:
    assert gated(result(view(listed=40)), exposed_max=0.01).verdict is Verdict.FAILED
    joint = result(view(), fused=exposure(40))
    assert gated(joint, exposed_max=0.01).verdict is Verdict.FAILED
    assert gated(joint, exposed_max=0.01, view="face").verdict is Verdict.PASSED


def test_a_holdout_of_another_source_is_inconclusive_and_so_is_an_encoder_that_links_nobody() -> None:
    assert gated(result(holds=False), exposed_max=0.5).verdict is Verdict.INCONCLUSIVE
    assert gated(result(view(links=False)), copies_max=0.5, far=1e-4).verdict is Verdict.INCONCLUSIVE
    assert gated(result(view(links=False)), exposed_max=0.5, view="face").verdict is Verdict.INCONCLUSIVE


def test_warnings_can_be_forbidden() -> None:
    warned = result(findings=[Finding(severity="warning", about="people", text="were clustered")])
    policy = make_policy(
        {"gate": {"findings": "no-warnings"}, "require": [{"exposed_max": 0.01}]}, lambda table, key: f"{table}: {key}"
    )
    assert decide(warned, policy).verdict is Verdict.FAILED
    assert decide(result(), policy).verdict is Verdict.PASSED


def test_rules_of_a_release_on_an_audit_are_inconclusive() -> None:
    from tests.gate.made import audited, raw

    policy = make_policy({"require": [{"exposed_max": 0.01}]}, lambda table, key: f"{table}: {key}")
    found = decide(audited(raw()), policy)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "unface release" in found.rules[0].reason


def test_the_verdict_names_what_speaks_for_a_leak() -> None:
    sure = replace(share(600, 1000, 0.56, 0.64))
    leak = view().model_copy(
        update={"membership": MembershipResult(share=sure, null=0.5, test=TEST.model_copy(update={"p": 0.0004}))}
    )
    found = result(leak)
    assert found.decision == "leaks"
    assert (
        "60.0 % of the synthetic faces are nearest to a training person, where 50.0 % is chance (p = 0.0004)"
        in found.verdict
    )
    assert found.verdict.endswith("No single person could be listed; with this holdout that takes 2 people.")
    assert result().decision == "no evidence"
    small = leak.model_copy(update={"exposure": exposure(0, least=1001)})
    assert result(small).verdict.endswith("could be listed; this holdout is too small to list anybody.")


def test_a_file_without_the_number_of_real_people_is_refused(tmp_path: Path) -> None:
    content = json.loads(result().file_text())
    for side in ("training", "holdout"):
        damaged = {**content, side: {**content[side], "people": None}}
        (tmp_path / "release.json").write_text(json.dumps(damaged), encoding="utf-8")
        with pytest.raises(UnfaceError, match="training or holdout has no number of people"):
            ReleaseResult.load(tmp_path / "release.json")


def test_a_test_that_is_neither_exact_nor_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="no number of permutations"):
        PermutationTest(p=0.4, exact=False, permutations=None)


def test_numbers_beyond_all_sense_and_half_a_character_are_still_one_line_or_a_page(tmp_path: Path) -> None:
    copies = view().copies[0].model_copy(update={"excess": Estimate(1e308, -1e308, 1e308, 0.95)})
    page = render_release(result(view().model_copy(update={"copies": [copies]})))
    assert page.rstrip().endswith("</html>")
    text = result().file_text().replace('"drawn"', '"\\ud800"')
    (tmp_path / "release.json").write_text(text, encoding="utf-8")
    with pytest.raises(UnfaceError, match="is not JSON"):
        ReleaseResult.load(tmp_path / "release.json")
