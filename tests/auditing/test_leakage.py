"""If these fail, the points of a space are not those asked for."""

import numpy as np
import pytest

from tests.auditing.audits import bare
from tests.auditing.audits import secret_audit as audited


def test_every_probe_is_measured_at_every_k_and_rate_in_order() -> None:
    measured = [(point.k, point.far, point.probe) for point in audited().raw.points]
    probes = ["cosine", "ridge", "lda", "plda"]
    assert measured == [(k, far, probe) for k in (1, 4, 8) for far in (1e-2, 1e-3, 5e-4) for probe in probes]
    assert [(curve.probe, curve.k) for curve in audited().raw.curves] == [(p, k) for k in (1, 4, 8) for p in probes]


def test_each_k_and_rate_that_was_measured_has_one_worst_case() -> None:
    measured = {(point.k, point.far) for point in audited().raw.points if point.tar}
    assert sorted((point.k, point.far) for point in audited().raw.points if point.worst) == sorted(measured)


def test_a_refused_rate_has_no_number_and_says_what_it_would_need() -> None:
    refused = [point for point in audited().raw.points if point.resolution == "refused"]
    assert {(point.k, point.far) for point in refused} == {(1, 5e-4), (4, 5e-4), (8, 5e-4)}
    assert all(point.tar is None and point.threshold is None and not point.worst for point in refused)
    needed = {point.identities_needed for point in refused}
    # 64 pairs of pictures of each two people at every k: m (m − 1) / 2 · 64 · 5e-4 ≥ 3 from m = 15 on.
    assert needed == {15}


def test_intervals_hold_their_rates_and_counts_their_values() -> None:
    measured = 0
    for one in audited().raw.points:
        if one.tar and one.achieved_far and one.chance and one.times_chance:
            measured += 1
            assert one.tar.low <= one.tar.value <= one.tar.high
            assert one.tar.value == one.tar.numerator / one.tar.denominator
            assert one.achieved_far.value == one.achieved_far.numerator / one.achieved_far.denominator
            assert one.times_chance == pytest.approx(one.tar.value / one.chance)
            assert one.tar.value == pytest.approx(np.mean(one.tar_by_seed))
    assert measured == 24, "two of the three rates, at three k by four probes"


def test_the_context_is_adjusted_for_in_the_worst_case() -> None:
    assert all((point.context_adjusted is not None) == point.worst for point in audited().raw.points)


def test_the_paper_variant_uses_its_shares_and_its_intervals() -> None:
    result = bare(variant="paper", far=0.1, seeds=3, probe=["cosine", "ridge"])
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test) == (0, 27, 6, 7)
    worst = [point for point in result.raw.points if point.worst]
    assert worst
    for one in worst:
        assert one.tar is not None
        spread = 1.96 * np.std(one.tar_by_seed, ddof=1)
        assert one.tar.high - one.tar.value == pytest.approx(min(spread, 1 - one.tar.value))
        assert one.partial_auc is not None
        assert 0 <= one.partial_auc <= 1
    # One seed of shuffled identities has no spread to take an interval from: people are resampled there.
    assert all(one.tar.low < one.tar.value < one.tar.high for one in result.controls.shuffled_identities)
