"""If these fail, a gate lets leakage through, or says it measured what it did not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auditing.made import in_context, point
from tests.gate.made import audited, erased, one, raw
from unface.auditing import Point
from unface.gate import Verdict

LIMIT: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}


def judged_points(*points: Point, **rule: object) -> tuple[Verdict, str]:
    judged = one(audited(raw(*points)), **{**LIMIT, **rule})
    return judged.verdict, judged.reason


def test_an_upper_end_within_the_limit_passes() -> None:
    judged = one(audited(raw(point(0.008, 0.006, 0.009))), **LIMIT)
    assert judged.verdict is Verdict.PASSED
    assert judged.reason == "lda at k = 4: the upper end, 0.90 %, is within the limit"
    assert (judged.rule, judged.limit) == ("TAR in raw at FAR 1e-4, every k, worst probe", "at most 1.0 %")
    assert judged.found is not None
    assert (judged.found.value, judged.found.low, judged.found.high) == (0.008, 0.006, 0.009)
    assert (judged.found.limit, judged.found.probe, judged.found.k, judged.found.far) == (0.01, "lda", 4, 1e-4)


def test_a_value_above_the_limit_fails() -> None:
    assert judged_points(point(0.03, 0.02, 0.04)) == (Verdict.FAILED, "lda at k = 4: 3.0 % is more than 1.0 %")


def test_an_interval_that_straddles_the_limit_fails_and_says_so() -> None:
    assert judged_points(point(0.008, 0.006, 0.014)) == (
        Verdict.FAILED,
        "lda at k = 4: the value is within the limit, but its interval straddles it, up to 1.4 % where 1.0 % may be",
    )


def test_an_upper_end_on_the_limit_passes_and_one_just_above_is_told_from_it() -> None:
    assert judged_points(point(0.008, 0.006, 0.01))[0] is Verdict.PASSED
    verdict, reason = judged_points(point(0.008, 0.006, 0.010001))
    assert verdict is Verdict.FAILED
    assert "up to 1.0001 % where 1 % may be" in reason


def test_a_value_above_its_own_interval_still_counts() -> None:
    """A percentile interval may leave its value out."""
    assert judged_points(point(0.02, 0.006, 0.009))[0] is Verdict.FAILED


@given(st.integers(0, 100_000), st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_a_rule_passes_exactly_where_value_and_upper_end_do(
    accepted: int, low: float, high: float, limit: float
) -> None:
    value = accepted / 100_000
    verdict, _ = judged_points(point(value, low, high), tar_max=limit)
    assert verdict is (Verdict.PASSED if max(value, high) <= limit else Verdict.FAILED)


def test_every_k_must_pass_and_the_one_nearest_to_failing_is_shown() -> None:
    good, better, bad = point(0.008, 0.006, 0.009, k=1), point(0.001, 0, 0.002, k=4), point(0.02, 0.01, 0.03, k=16)
    assert judged_points(better, good) == (
        Verdict.PASSED,
        "lda at k = 1: the upper end, 0.90 %, is within the limit",
    )
    assert judged_points(good, better, bad) == (Verdict.FAILED, "lda at k = 16: 2.0 % is more than 1.0 %")
    assert judged_points(good, better, bad, k=4)[0] is Verdict.PASSED


def test_the_worst_probe_is_judged_unless_another_is_named() -> None:
    points = (point(0.03, 0.02, 0.04), point(0.001, 0, 0.002, probe="cosine", worst=False))
    assert judged_points(*points)[0] is Verdict.FAILED
    assert judged_points(*reversed(points))[0] is Verdict.FAILED
    assert judged_points(*points, probe="cosine") == (
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
def test_what_was_not_measured_cannot_be_told(rule: dict[str, object], sentence: str) -> None:
    points = (point(0.001, 0, 0.002), point(0.001, 0, 0.002, far=1e-3))
    assert judged_points(*points, **rule) == (Verdict.CANNOT_TELL, sentence)


def test_a_point_without_a_worst_case_cannot_be_told() -> None:
    verdict, reason = judged_points(point(0.001, 0, 0.002, worst=False))
    assert (verdict, reason) == (Verdict.CANNOT_TELL, "probe 'worst' was not measured at k = 4; the audit has lda")


def test_a_refused_rate_cannot_be_told() -> None:
    refused = point(None, resolution="refused", worst=False, needed=1520)
    sentence = (
        "FAR 1e-4 at k = 4 was refused, the audit is too small to resolve it; 1,520 calibrate identities are needed"
    )
    assert judged_points(refused) == (Verdict.CANNOT_TELL, sentence)
    assert judged_points(refused, probe="lda", coarse="allow") == (Verdict.CANNOT_TELL, sentence)


def test_one_k_that_is_refused_keeps_the_others_from_passing_but_not_from_failing() -> None:
    refused = point(None, resolution="refused", worst=False, k=16)
    assert judged_points(point(0.001, 0, 0.002), refused)[0] is Verdict.CANNOT_TELL
    assert judged_points(point(0.03, 0.02, 0.04), refused)[0] is Verdict.FAILED
    assert judged_points(point(0.001, 0, 0.002), refused, k=4)[0] is Verdict.PASSED


def test_a_coarse_rate_cannot_be_told_unless_the_rule_allows_it() -> None:
    coarse = point(0.008, 0.006, 0.009, resolution="coarse", needed=210)
    assert judged_points(coarse) == (
        Verdict.CANNOT_TELL,
        "FAR 1e-4 at k = 4 is coarse, too few false accepts set its threshold; 210 calibrate identities would resolve "
        "it, or coarse = 'allow' takes it as it is",
    )
    assert judged_points(coarse, coarse="allow")[0] is Verdict.PASSED
    leaky = point(0.03, 0.02, 0.04, resolution="coarse")
    assert judged_points(leaky, coarse="allow")[0] is Verdict.FAILED


def test_multiples_of_chance_are_judged_by_the_same_upper_end() -> None:
    found = point(0.004, 0.002, 0.006, chance=1e-3)
    judged = one(audited(raw(found)), far=1e-4, times_chance_max=6)
    assert judged.verdict is Verdict.PASSED
    assert judged.limit == "at most 6.0 times chance"
    assert judged.found is not None
    assert judged.found.high == pytest.approx(6)
    failed = one(audited(raw(found)), far=1e-4, times_chance_max=5)
    assert failed.reason.endswith("straddles it, up to 6.0 times chance where 5.0 times chance may be")
    assert failed.verdict is Verdict.FAILED


def test_of_two_limits_both_must_hold() -> None:
    found = point(0.004, 0.002, 0.006, chance=1e-3)
    both = {"tar_max": 0.01, "times_chance_max": 10}
    assert judged_points(found, **both)[0] is Verdict.PASSED
    assert judged_points(found, **{**both, "times_chance_max": 3})[0] is Verdict.FAILED
    assert judged_points(found, **{**both, "tar_max": 0.003})[0] is Verdict.FAILED
    assert one(audited(raw(found)), far=1e-4, **both).limit == "at most 1.0 % and 10 times chance"


def test_the_context_adjusted_rate_is_judged_where_asked_for() -> None:
    found = point(0.03, 0.02, 0.04, context_adjusted=in_context(0.005, 0.003, 0.008))
    assert judged_points(found)[0] is Verdict.FAILED
    judged = one(audited(raw(found)), **LIMIT, context_adjusted=True)
    assert (judged.verdict, judged.rule) == (
        Verdict.PASSED,
        "context-adjusted TAR in raw at FAR 1e-4, every k, worst probe",
    )
    assert judged.found is not None
    assert judged.found.high == 0.008


def test_a_context_that_separates_mated_from_impostors_cannot_tell() -> None:
    found = point(0.008, 0.006, 0.009, context_adjusted=in_context(0.005, 0.003, 0.008, overlap=0.1))
    assert judged_points(found, context_adjusted=True) == (
        Verdict.CANNOT_TELL,
        "'shoot' separates mated from impostor pairs almost wholly (overlap 10.0 %), so identity cannot be told from "
        "it at k = 4",
    )


def test_a_rule_is_about_the_space_it_names() -> None:
    result = audited(raw(), erased())
    assert one(result, **LIMIT, space="raw").verdict is Verdict.FAILED
    assert one(result, **LIMIT, space="isp").verdict is Verdict.PASSED
