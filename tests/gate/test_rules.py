"""If these fail, a rule passes what is outside its limit, or says it measured what it did not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auditing.made import in_context, point
from tests.gate.made import audited, change, erased, kept, one, raw
from unface.gate import Measurement, Verdict
from unface.result.audit import Point
from unface.result.numbers import zero_bound

LIMIT: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}


def evaluated(*points: Point, **keys: object) -> tuple[Verdict, str]:
    rule = one(audited(raw(*points)), **{**LIMIT, **keys})
    return rule.verdict, rule.reason


def test_an_upper_end_within_the_limit_passes() -> None:
    rule = one(audited(raw(point(0.008, 0.006, 0.009))), **LIMIT)
    assert rule.verdict is Verdict.PASSED
    assert rule.reason == "lda at k = 4: the upper end, 0.90 %, is within the limit"
    assert (rule.rule, rule.limit) == ("TAR in raw at FAR 1e-4, every k, worst probe", "at most 1.0 %")
    assert rule.measured == Measurement(0.008, 0.006, 0.009, 0.95, 0.01, "share", "lda", 4, 1e-4)


def test_a_value_above_the_limit_fails() -> None:
    assert evaluated(point(0.03, 0.02, 0.04)) == (Verdict.FAILED, "lda at k = 4: 3.0 % is more than 1.0 %")


def test_an_interval_that_straddles_the_limit_fails_and_says_so() -> None:
    assert evaluated(point(0.008, 0.006, 0.014)) == (
        Verdict.FAILED,
        "lda at k = 4: the value is within the limit, but its interval reaches 1.4 %, above 1.0 %",
    )


def test_an_upper_end_on_the_limit_passes_and_one_just_above_reads_differently() -> None:
    assert evaluated(point(0.008, 0.006, 0.01))[0] is Verdict.PASSED
    verdict, reason = evaluated(point(0.008, 0.006, 0.010001))
    assert verdict is Verdict.FAILED
    assert "its interval reaches 1.0001 %, above 1 %" in reason


def test_a_value_above_its_own_interval_still_counts() -> None:
    """A percentile interval may leave its value out."""
    assert evaluated(point(0.02, 0.006, 0.009))[0] is Verdict.FAILED


@given(st.integers(0, 100_000), st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_a_rule_passes_exactly_where_value_and_upper_end_do(
    accepted: int, low: float, high: float, limit: float
) -> None:
    value = accepted / 100_000
    verdict, _ = evaluated(point(value, low, high), tar_max=limit)
    assert (verdict is Verdict.PASSED) is (max(value, high) <= limit)
    if value > limit or high < zero_bound(100) or zero_bound(100) <= limit:  # 100 people could have shown it
        assert verdict is not Verdict.INCONCLUSIVE


def test_every_k_must_pass_and_the_one_nearest_to_failing_is_shown() -> None:
    good, better, bad = point(0.008, 0.006, 0.009, k=1), point(0.001, 0, 0.002, k=4), point(0.02, 0.01, 0.03, k=16)
    assert evaluated(better, good) == (
        Verdict.PASSED,
        "lda at k = 1: the upper end, 0.90 %, is within the limit",
    )
    assert evaluated(good, better, bad) == (Verdict.FAILED, "lda at k = 16: 2.0 % is more than 1.0 %")
    assert evaluated(good, better, bad, k=4)[0] is Verdict.PASSED


def test_the_worst_probe_is_judged_unless_another_is_named() -> None:
    points = (point(0.03, 0.02, 0.04), point(0.001, 0, 0.002, probe="cosine", worst=False))
    assert evaluated(*points)[0] is Verdict.FAILED
    assert evaluated(*reversed(points))[0] is Verdict.FAILED
    assert evaluated(*points, probe="cosine") == (
        Verdict.PASSED,
        "cosine at k = 4: the upper end, 0.20 %, is within the limit",
    )


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"far": 1e-5}, "FAR 1e-5 was not measured in raw; the audit has 1e-4, 1e-3"),
        ({"k": 64}, "k = 64 was not measured in raw at FAR 1e-4; the audit has 4"),
        ({"probe": "svm"}, "probe 'svm' was not measured at k = 4; the audit has lda"),
        ({"space": "leace"}, "space 'leace' was not measured; the audit has raw"),
        (
            {"context_adjusted": True},
            "no context-adjusted TAR was measured for lda at k = 4; audit with --group",
        ),
    ],
)
def test_what_was_not_measured_is_inconclusive(rule: dict[str, object], sentence: str) -> None:
    points = (point(0.001, 0, 0.002), point(0.001, 0, 0.002, far=1e-3))
    assert evaluated(*points, **rule) == (Verdict.INCONCLUSIVE, sentence)


def test_a_point_without_a_worst_case_is_inconclusive() -> None:
    verdict, reason = evaluated(point(0.001, 0, 0.002, worst=False))
    assert (verdict, reason) == (Verdict.INCONCLUSIVE, "probe 'worst' was not measured at k = 4; the audit has lda")


def test_a_refused_rate_is_inconclusive() -> None:
    refused = point(None, resolution="refused", worst=False, needed=1520)
    sentence = (
        "FAR 1e-4 at k = 4 was refused: the audit is too small to resolve it; 1,520 calibrate identities are needed"
    )
    assert evaluated(refused) == (Verdict.INCONCLUSIVE, sentence)
    assert evaluated(refused, probe="lda", coarse="allow") == (Verdict.INCONCLUSIVE, sentence)


def test_one_k_that_is_refused_keeps_the_others_from_passing_but_not_from_failing() -> None:
    refused = point(None, resolution="refused", worst=False, k=16)
    assert evaluated(point(0.001, 0, 0.002), refused)[0] is Verdict.INCONCLUSIVE
    assert evaluated(point(0.03, 0.02, 0.04), refused)[0] is Verdict.FAILED
    assert evaluated(point(0.001, 0, 0.002), refused, k=4)[0] is Verdict.PASSED


def test_a_coarse_rate_is_inconclusive_unless_the_rule_allows_it() -> None:
    coarse = point(0.008, 0.006, 0.009, resolution="coarse", needed=210)
    assert evaluated(coarse) == (
        Verdict.INCONCLUSIVE,
        "FAR 1e-4 at k = 4 is coarse: too few false accepts set its threshold; 210 calibrate identities would resolve "
        "it, or coarse = 'allow' accepts it",
    )
    assert evaluated(coarse, coarse="allow")[0] is Verdict.PASSED
    leaky = point(0.03, 0.02, 0.04, resolution="coarse")
    assert evaluated(leaky, coarse="allow")[0] is Verdict.FAILED


def test_multiples_of_chance_are_judged_by_the_same_upper_end() -> None:
    measured = point(0.004, 0.002, 0.006, chance=1e-3)
    rule = one(audited(raw(measured)), far=1e-4, times_chance_max=6)
    assert rule.verdict is Verdict.PASSED
    assert rule.limit == "at most 6.0 times chance"
    assert rule.measured is not None
    assert rule.measured.high == pytest.approx(6)
    failed = one(audited(raw(measured)), far=1e-4, times_chance_max=5)
    assert failed.reason.endswith("reaches 6.0 times chance, above 5.0 times chance")
    assert failed.verdict is Verdict.FAILED


def test_of_two_limits_both_must_hold() -> None:
    measured = point(0.004, 0.002, 0.006, chance=1e-3)
    both = {"tar_max": 0.01, "times_chance_max": 10}
    assert evaluated(measured, **both)[0] is Verdict.PASSED
    assert evaluated(measured, **{**both, "times_chance_max": 3})[0] is Verdict.FAILED
    assert evaluated(measured, **{**both, "tar_max": 0.003})[0] is Verdict.FAILED
    assert one(audited(raw(measured)), far=1e-4, **both).limit == "at most 1.0 % and 10 times chance"


def test_the_context_adjusted_rate_is_judged_where_asked_for() -> None:
    measured = point(0.03, 0.02, 0.04, context_adjusted=in_context(0.005, 0.003, 0.008))
    assert evaluated(measured)[0] is Verdict.FAILED
    rule = one(audited(raw(measured)), **LIMIT, context_adjusted=True)
    assert (rule.verdict, rule.rule) == (
        Verdict.PASSED,
        "context-adjusted TAR in raw at FAR 1e-4, every k, worst probe",
    )
    assert rule.measured is not None
    assert rule.measured.high == 0.008


def test_a_context_that_separates_mated_from_impostors_is_inconclusive() -> None:
    measured = point(0.008, 0.006, 0.009, context_adjusted=in_context(0.005, 0.003, 0.008, overlap=0.1))
    assert evaluated(measured, context_adjusted=True) == (
        Verdict.INCONCLUSIVE,
        "'shoot' separates mated from impostor pairs almost completely (overlap 10.0 %), so it cannot be separated "
        "from identity at k = 4",
    )


def test_a_rule_is_about_the_space_it_names() -> None:
    result = audited(raw(), erased())
    assert one(result, **LIMIT, space="raw").verdict is Verdict.FAILED
    assert one(result, **LIMIT, space="isp").verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("measured", "verdict", "reason"),
    [
        ((0.95, 0.93, 0.97), Verdict.PASSED, "the lower end, 93.0 %, is within the limit"),
        ((0.95, 0.9, 0.97), Verdict.PASSED, "the lower end, 90.0 %, is within the limit"),
        (
            (0.91, 0.88, 0.94),
            Verdict.FAILED,
            "the value is within the limit, but its interval reaches 88.0 %, below 90.0 %",
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
    rule = one(result, utility="knn", retained_min=0.9)
    assert (rule.verdict, rule.reason) == (verdict, f"on objects.parquet: {reason}")
    assert (rule.rule, rule.limit) == ("knn kept in isp", "at least 90.0 %")


def test_usefulness_must_be_kept_on_every_set_unless_one_is_named() -> None:
    good, bad = kept(0.95, 0.93, 0.97, on="birds"), kept(0.6, 0.5, 0.7, on="cars")
    result = audited(raw(), erased(utility=[good, bad, kept(0.1, 0.1, 0.1, measure="linear")]))
    assert one(result, utility="knn", retained_min=0.9).reason == "on cars: 60.0 % is less than 90.0 %"
    assert one(result, utility="knn", retained_min=0.9, on="birds").verdict is Verdict.PASSED


def test_usefulness_that_was_not_measured_is_inconclusive() -> None:
    result = audited(raw(), erased(utility=[kept(0.95, 0.93, 0.97)]))
    assert one(result, utility="copy µAP", retained_min=0.9).reason == (
        "copy µAP was not measured in isp; the audit has knn on objects.parquet"
    )
    elsewhere = one(result, utility="knn", retained_min=0.9, on="birds")
    assert elsewhere.reason == "knn on birds was not measured in isp; the audit has knn on objects.parquet"
    in_raw = one(result, utility="knn", retained_min=0.9, space="raw")
    assert in_raw.reason == "knn was not measured in raw; the audit has none"
    assert {elsewhere.verdict, in_raw.verdict} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("measured", "verdict", "reason"),
    [
        ((-0.03, -0.04, -0.02), Verdict.PASSED, "the upper end, −2.0 points against random, is below 0"),
        (
            (-0.01, -0.03, 0.004),
            Verdict.FAILED,
            "TAR is lower than in random, but its interval reaches +0.40 points",
        ),
        (
            (-0.01, -0.03, 0.0),
            Verdict.FAILED,
            "TAR is lower than in random, but its interval reaches +0.0 points",
        ),
        ((0.02, 0.01, 0.03), Verdict.FAILED, "TAR is not lower than in random"),
        ((0.001, -0.03, -0.02), Verdict.FAILED, "TAR is not lower than in random"),
    ],
)
def test_an_eraser_beats_another_space_where_the_whole_paired_interval_is_below_0(
    measured: tuple[float, float, float], verdict: Verdict, reason: str
) -> None:
    rule = one(audited(raw(), erased(changes=[change(*measured)])), beats="random", far=1e-4)
    assert (rule.verdict, rule.reason) == (verdict, f"lda at k = 4: {reason}")
    assert (rule.rule, rule.limit) == ("TAR in isp less TAR in random at FAR 1e-4, every k", "below 0")


def test_a_comparison_must_have_been_made_at_that_rate_and_every_k() -> None:
    points = [point(0.008, 0.006, 0.009, k=k) for k in (1, 4)]
    result = audited(raw(), erased("isp", *points, changes=[change(-0.03, -0.04, -0.02)]))
    missing = "the audit compares it with random at FAR 1e-4"
    assert one(result, beats="random", far=1e-4, k=4).verdict is Verdict.PASSED
    assert one(result, beats="random", far=1e-4).reason == (
        f"isp was not compared with random at FAR 1e-4, k = 1; {missing}"
    )
    assert one(result, beats="pca", far=1e-4, k=4).reason == (
        f"isp was not compared with pca at FAR 1e-4, k = 4; {missing}"
    )
    assert one(result, beats="random", far=1e-3, k=4).verdict is Verdict.INCONCLUSIVE


def test_a_comparison_at_a_coarse_rate_is_inconclusive_unless_allowed() -> None:
    coarse = point(0.008, 0.006, 0.009, resolution="coarse")
    result = audited(raw(), erased("isp", coarse, changes=[change(-0.03, -0.04, -0.02)]))
    assert one(result, beats="random", far=1e-4).verdict is Verdict.INCONCLUSIVE
    assert one(result, beats="random", far=1e-4, coarse="allow").verdict is Verdict.PASSED
