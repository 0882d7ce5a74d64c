"""If these fail, a rule passes what is outside its limit, or what too few people were measured for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.outcomes import outcomes
from tests.kit.gating import ruled
from tests.kit.golden import declare, golden
from tests.kit.results import (
    Estimate,
    Interval,
    Share,
    attacker,
    audited,
    cell,
    certificate,
    inversion,
    point,
    protection,
    raw,
    release,
    validation,
    view,
)
from unface.gate import Measurement, RuleResult, Verdict
from unface.metrics import Replicates, rate_interval, wilson
from unface.result.numbers import fewest_trials, zero_bound

(REASONS,) = declare("gate/rules.txt")


@pytest.mark.parametrize("name", list(outcomes()))
def test_a_rule_ends_with_its_verdict_and_the_number_that_decided(name: str) -> None:
    outcome = outcomes()[name]
    found = outcome.found
    assert found.verdict is outcome.verdict, found.reason
    assert "\n" not in found.rule + found.limit + found.meaning + found.reason
    if outcome.measured is not None:
        assert found.measured is not None
        assert (found.measured.value, found.measured.low, found.measured.high) == pytest.approx(outcome.measured)
    if outcome.verdict == "passed":
        assert found.measured is not None


def test_every_rule_says_what_it_limits_and_why_it_ended_as_it_was() -> None:
    said = []
    for name, outcome in outcomes().items():
        found = outcome.found
        said += [f"{name}: {found.verdict}", f"  {found.rule}: {found.limit}", f"  {found.meaning}"]
        said += [f"  {found.reason}", f"  {found.measured or '–'}", ""]
    golden("\n".join(said), REASONS)


def of(affected: int, people: int) -> Share:
    """Each person is one trial, with the interval that every command computes."""
    ends = wilson(affected, people) if affected else Interval(0.0, zero_bound(people), 0.95)
    return Share.counted(affected, people, ends, people)


def of_a_validation(share: Share) -> RuleResult:
    result = validation()
    attacks = [
        attack.model_copy(update={"at": [at.model_copy(update={"other": share}) for at in attack.at]})
        for attack in result.attacks
    ]
    changed = result.model_copy(update={"attacks": attacks})
    return ruled(changed, success_max=0.05, far=1e-2, queries=100, attack="scores")


def of_an_inversion(share: Share) -> RuleResult:
    found = cell("alsuv", 0)
    at = [success.model_copy(update={"other": share}) for success in found.at]
    return ruled(inversion(found.model_copy(update={"at": at})), inverted_max=0.05, far=1e-3)


def of_exposed_people(share: Share) -> RuleResult:
    seen = view()
    exposure = seen.exposure.model_copy(update={"exposed": share})
    return ruled(release(seen.model_copy(update={"exposure": exposure})), exposed_max=0.05)


def of_copies(share: Share) -> RuleResult:
    seen = view()
    excess = Estimate(share.value, share.low, share.high, share.level)
    copies = [one.model_copy(update={"copies": share, "excess": excess}) for one in seen.copies]
    return ruled(release(seen.model_copy(update={"copies": copies})), copies_max=0.05, far=1e-4)


def of_a_releases_risk(share: Share) -> RuleResult:
    result = release()
    retrieval = [one.model_copy(update={"share": share}) for one in result.retrieval]
    return ruled(result.model_copy(update={"retrieval": retrieval}), risk_max=0.05, k=2)


def of_a_protections_risk(share: Share) -> RuleResult:
    result = protection()
    worst = attacker("worst", 0)
    retrieval = [one.model_copy(update={"share": share}) for one in worst.retrieval]
    attackers = [worst.model_copy(update={"retrieval": retrieval})]
    methods = [one.model_copy(update={"attackers": attackers}) for one in result.methods]
    return ruled(result.model_copy(update={"methods": methods}), risk_max=0.05, k=2)


def of_a_certificate(share: Share) -> RuleResult:
    result = certificate()
    assert result.pictures is not None
    assert result.pictures.identity is not None
    identity = result.pictures.identity.model_copy(update={"reconstructions": share})
    pictures = result.pictures.model_copy(update={"identity": identity})
    return ruled(result.model_copy(update={"pictures": pictures}), recognised_max=0.05)


@pytest.mark.parametrize(
    ("ruled_on", "more"),
    [
        (of_a_validation, {"far": 1e-2, "attack": "scores", "queries": 100}),
        (of_an_inversion, {"far": 1e-3, "attack": "alsuv"}),
        (of_exposed_people, {}),
        (of_copies, {"far": 1e-4}),
        (of_a_releases_risk, {"k": 2}),
        (of_a_protections_risk, {"k": 2}),
        (of_a_certificate, {"far": 1e-3}),
    ],
)
def test_a_verdict_carries_the_number_that_decided_it_and_what_it_was_measured_at(
    ruled_on: Callable[[Share], RuleResult], more: dict[str, Any]
) -> None:
    share = of(3, 150)
    expected = Measurement(share.value, share.low, share.high, 0.95, 0.05, "share", **more)
    assert ruled_on(share).measured == expected


@pytest.mark.parametrize(
    "ruled_on",
    [
        of_a_validation,
        of_an_inversion,
        of_exposed_people,
        of_copies,
        of_a_releases_risk,
        of_a_protections_risk,
        of_a_certificate,
    ],
)
def test_a_limit_of_5_percent_needs_59_people(ruled_on: Callable[[Share], RuleResult]) -> None:
    few, enough = ruled_on(of(0, 58)), ruled_on(of(0, 59))
    assert few.verdict is Verdict.INCONCLUSIVE
    assert "58" in few.reason
    assert "59" in few.reason
    assert enough.verdict is Verdict.PASSED
    assert ruled_on(of(1, 58)).verdict is Verdict.INCONCLUSIVE  # 1.7 % [0.3, 9.1]
    assert ruled_on(of(1, 59)).verdict is Verdict.FAILED, "59 people could have shown it"
    assert ruled_on(of(3, 58)).verdict is Verdict.FAILED, "5.2 % is above the limit whatever the number of people"


def test_an_audit_follows_the_same_rule_for_shares_and_for_multiples_of_chance() -> None:
    result = audited(raw(point(0.0, 0.0, zero_bound(100))))  # 100 people: 2.951 %
    assert ruled(result, far=1e-4, tar_max=0.0296).verdict is Verdict.PASSED
    few = ruled(result, far=1e-4, tar_max=0.029)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert " 102 " in few.reason
    assert few.measured is not None
    assert ruled(result, far=1e-4, times_chance_max=296).verdict is Verdict.PASSED
    few = ruled(result, far=1e-4, times_chance_max=290)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert " 102 " in few.reason


def test_an_interval_that_is_narrower_than_that_of_nobody_decides_by_itself() -> None:
    """Many pairs of each person tell a small rate apart where their number alone would not."""
    assert ruled(audited(raw(point(0.005, 0.004, 0.02))), far=1e-4, tar_max=0.01).verdict is Verdict.FAILED
    assert ruled(audited(raw(point(0.005, 0.004, 0.03))), far=1e-4, tar_max=0.01).verdict is Verdict.INCONCLUSIVE


def test_the_end_of_an_interval_at_its_own_level_decides() -> None:
    """Nobody of 58 people leaves 5 % possible at 95 %; at 99 % it takes 90 of them: 0.95 ** 90 = 0.0099."""

    def nobody_of(number: int) -> Verdict:
        return of_exposed_people(
            Share.counted(0, number, Interval(0.0, 1 - 0.01 ** (1 / number), 0.99), number)
        ).verdict

    assert (nobody_of(89), nobody_of(90)) == (Verdict.INCONCLUSIVE, Verdict.PASSED)


@given(st.integers(0, 100_000), st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_a_rule_passes_exactly_where_value_and_upper_end_do(
    accepted: int, low: float, high: float, limit: float
) -> None:
    value = accepted / 100_000
    verdict = ruled(audited(raw(point(value, low, high))), far=1e-4, tar_max=limit).verdict
    assert (verdict is Verdict.PASSED) is (max(value, high) <= limit)
    if value > limit or high < zero_bound(100) or zero_bound(100) <= limit:  # 100 people could have shown it
        assert verdict is not Verdict.INCONCLUSIVE


@given(st.floats(1e-6, 0.999), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_number_asked_for_is_the_smallest_that_could_pass(limit: float, level: float) -> None:
    needed = fewest_trials(limit, level)
    assert zero_bound(needed, level) <= limit
    assert needed == 1 or zero_bound(needed - 1, level) > limit


def test_the_bound_is_that_of_the_intervals_in_the_files() -> None:
    nothing = rate_interval(0, 500, Replicates(np.zeros(100), mirrored=True), identities=58)
    assert nothing.high == zero_bound(58)
    assert fewest_trials(zero_bound(58)) == 58
