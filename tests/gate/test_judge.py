"""If these fail, a gate's verdict is about the wrong space, or passes an audit that cannot be used."""

import itertools

import pytest

from tests.auditing.made import point
from tests.gate.made import INVALID, NOTE, WARNING, audited, change, erased, gated, kept, one, raw
from unface import UnfaceError
from unface.gate import Verdict

PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.5}
FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.001}
UNKNOWN: dict[str, object] = {"far": 1e-6, "tar_max": 0.5}


@pytest.mark.parametrize(
    ("rules", "code", "sentence"),
    [
        ([PASSES, PASSES], 0, "passed: 2 rules held, for the probes, rates and people of this audit (exit 0)"),
        ([PASSES, FAILS], 3, "failed: 1 of 2 rules failed (exit 3)"),
        ([UNKNOWN, FAILS, PASSES], 3, "failed: 1 of 3 rules failed, 1 cannot be told (exit 3)"),
        (
            [PASSES, UNKNOWN],
            4,
            "cannot tell: 1 of 2 rules cannot be told, and what is not measured does not pass (exit 4)",
        ),
    ],
)
def test_failed_outweighs_cannot_tell_and_both_outweigh_passed_in_any_order(
    rules: list[dict[str, object]], code: int, sentence: str
) -> None:
    for order in itertools.permutations(rules):
        result = gated(audited(raw()), *order)
        assert (result.exit_code, result.summary) == (code, sentence)


def test_no_rule_can_be_told_from_an_invalid_audit() -> None:
    result = gated(audited(raw(), findings=[INVALID]), PASSES, FAILS, UNKNOWN, findings="no-warnings")
    assert {rule.verdict for rule in result.rules} == {Verdict.CANNOT_TELL}
    assert {rule.reason for rule in result.rules} == {"the audit is invalid: shuffled people are still linked"}
    assert result.exit_code == 4


def test_an_audit_that_is_invalid_without_saying_why_is_invalid_too() -> None:
    judged = one(audited(raw()).model_copy(update={"valid": False}), **PASSES)
    assert (judged.verdict, judged.reason) == (Verdict.CANNOT_TELL, "the audit is invalid")


def test_a_spread_over_seeds_is_no_interval_to_pass_by() -> None:
    judged = one(audited(raw(), variant="paper"), **PASSES)
    assert judged.verdict is Verdict.CANNOT_TELL
    assert judged.reason == "the paper variant's intervals are spreads over seeds, which under-cover; audit without it"


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
        "rule 2 names no space and the audit has 2 erasers (isp, leace); say which one is released, "
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
    assert (clean.exit_code, clean.rules[-1].reason) == (0, "the audit warns of nothing")


@pytest.mark.parametrize(
    ("measured", "verdict", "reason"),
    [
        ((0.95, 0.93, 0.97), Verdict.PASSED, "the lower end, 93.0 %, reaches the limit"),
        ((0.95, 0.9, 0.97), Verdict.PASSED, "the lower end, 90.0 %, reaches the limit"),
        (
            (0.91, 0.88, 0.94),
            Verdict.FAILED,
            "the value reaches the limit, but its interval straddles it, down to 88.0 % where 90.0 % is asked for",
        ),
        ((0.6, 0.5, 0.95), Verdict.FAILED, "60.0 % is less than 90.0 %"),
        ((0.02, -0.01, 0.05), Verdict.FAILED, "2.0 % is less than 90.0 %"),
        ((0.8, 0.91, 0.95), Verdict.FAILED, "80.0 % is less than 90.0 %"),  # a value below its own interval counts
    ],
)
def test_the_lower_end_of_what_is_kept_must_reach_the_limit(
    measured: tuple[float, float, float], verdict: Verdict, reason: str
) -> None:
    result = audited(raw(), erased(utility=[kept(*measured)]))
    judged = one(result, utility="knn", retained_min=0.9)
    assert (judged.verdict, judged.reason) == (verdict, f"on objects.parquet: {reason}")
    assert (judged.rule, judged.limit) == ("knn kept in isp", "at least 90.0 %")


def test_usefulness_must_be_kept_on_every_set_unless_one_is_named() -> None:
    good, bad = kept(0.95, 0.93, 0.97, on="birds"), kept(0.6, 0.5, 0.7, on="cars")
    result = audited(raw(), erased(utility=[good, bad, kept(0.1, 0.1, 0.1, measure="linear")]))
    assert one(result, utility="knn", retained_min=0.9).reason == "on cars: 60.0 % is less than 90.0 %"
    assert one(result, utility="knn", retained_min=0.9, on="birds").verdict is Verdict.PASSED


def test_usefulness_that_was_not_measured_cannot_be_told() -> None:
    result = audited(raw(), erased(utility=[kept(0.95, 0.93, 0.97)]))
    assert one(result, utility="copy µAP", retained_min=0.9).reason == (
        "copy µAP was not measured in isp; the audit has knn on objects.parquet"
    )
    elsewhere = one(result, utility="knn", retained_min=0.9, on="birds")
    assert elsewhere.reason == "knn on birds was not measured in isp; the audit has knn on objects.parquet"
    in_raw = one(result, utility="knn", retained_min=0.9, space="raw")
    assert in_raw.reason == "knn was not measured in raw; the audit has none"
    assert {elsewhere.verdict, in_raw.verdict} == {Verdict.CANNOT_TELL}


@pytest.mark.parametrize(
    ("measured", "verdict", "reason"),
    [
        ((-0.03, -0.04, -0.02), Verdict.PASSED, "the upper end, −2.0 points against random, is below 0"),
        (
            (-0.01, -0.03, 0.004),
            Verdict.FAILED,
            "TAR is lower than in random, but the interval straddles 0, up to +0.40 points",
        ),
        (
            (-0.01, -0.03, 0.0),
            Verdict.FAILED,
            "TAR is lower than in random, but the interval straddles 0, up to +0.0 points",
        ),
        ((0.02, 0.01, 0.03), Verdict.FAILED, "TAR is not lower than in random"),
        ((0.001, -0.03, -0.02), Verdict.FAILED, "TAR is not lower than in random"),
    ],
)
def test_an_eraser_beats_another_space_where_the_whole_paired_interval_is_below_0(
    measured: tuple[float, float, float], verdict: Verdict, reason: str
) -> None:
    judged = one(audited(raw(), erased(changes=[change(*measured)])), beats="random", far=1e-4)
    assert (judged.verdict, judged.reason) == (verdict, f"lda at k = 4: {reason}")
    assert (judged.rule, judged.limit) == ("TAR in isp less TAR in random at FAR 1e-4, every k", "below 0")


def test_a_comparison_must_have_been_made_at_that_rate_and_every_k() -> None:
    points = [point(0.008, 0.006, 0.009, k=k) for k in (1, 4)]
    result = audited(raw(), erased("isp", *points, changes=[change(-0.03, -0.04, -0.02)]))
    missing = "the audit compares it with random at FAR 1e-4"
    assert one(result, beats="random", far=1e-4, k=4).verdict is Verdict.PASSED
    assert one(result, beats="random", far=1e-4).reason == (
        f"nothing compares isp with random at FAR 1e-4, k = 1; {missing}"
    )
    assert one(result, beats="pca", far=1e-4, k=4).reason == (
        f"nothing compares isp with pca at FAR 1e-4, k = 4; {missing}"
    )
    assert one(result, beats="random", far=1e-3, k=4).verdict is Verdict.CANNOT_TELL


def test_a_comparison_at_a_coarse_rate_cannot_be_told_unless_allowed() -> None:
    coarse = point(0.008, 0.006, 0.009, resolution="coarse")
    result = audited(raw(), erased("isp", coarse, changes=[change(-0.03, -0.04, -0.02)]))
    assert one(result, beats="random", far=1e-4).verdict is Verdict.CANNOT_TELL
    assert one(result, beats="random", far=1e-4, coarse="allow").verdict is Verdict.PASSED


def test_an_audit_without_points_passes_nothing() -> None:
    empty = audited(raw(), erased())
    empty = empty.model_copy(update={"protocol": empty.protocol.model_copy(update={"ks": []})})
    judged = one(empty, **PASSES)
    assert (judged.verdict, judged.reason) == (Verdict.CANNOT_TELL, "no k was measured")
