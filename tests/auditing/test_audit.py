"""If these fail, an audit measures something else than it was asked for, or does not say what it left out."""

import numpy as np
import pytest

from tests.auditing.bare import PEOPLE, grouped, quick
from tests.auditing.made import audited, secret_people
from tests.auditing.told import Told
from unface import audit


def test_every_probe_is_measured_at_every_k_and_rate_in_order() -> None:
    found = [(point.k, point.far, point.probe) for point in audited().spaces[0].points]
    probes = ["cosine", "ridge", "lda", "plda"]
    assert found == [(k, far, probe) for k in (1, 4) for far in (1e-2, 1e-3) for probe in probes]
    assert [(curve.probe, curve.k) for curve in audited().spaces[0].curves] == [(p, k) for k in (1, 4) for p in probes]


def test_each_k_and_rate_that_was_measured_has_one_worst_case() -> None:
    measured = {(point.k, point.far) for point in audited().spaces[0].points if point.tar}
    assert sorted((point.k, point.far) for point in audited().worst) == sorted(measured)


def test_a_refused_rate_has_no_number_and_says_what_it_would_need() -> None:
    refused = [point for point in audited().spaces[0].points if point.resolution == "refused"]
    assert {(point.k, point.far) for point in refused} == {(4, 1e-3)}
    assert all(point.tar is None and point.threshold is None and not point.worst for point in refused)
    needed = {point.identities_needed for point in refused}
    # Two seeds compare up to 2 · 16 pairs of pictures of each two people, some of them twice:
    # m (m − 1) / 2 · 16 · 1e-3 ≥ 3 from m = 20 on, with twice as many from m = 15 on.
    assert needed == {16}


def test_intervals_hold_their_rates_and_counts_their_values() -> None:
    for point in audited().spaces[0].points:
        if point.tar and point.achieved_far and point.chance and point.times_chance:
            assert point.tar.low <= point.tar.value <= point.tar.high
            assert point.tar.value == point.tar.numerator / point.tar.denominator
            assert point.achieved_far.value == point.achieved_far.numerator / point.achieved_far.denominator
            assert point.times_chance == pytest.approx(point.tar.value / point.chance)
            assert point.tar.value == pytest.approx(np.mean(point.tar_by_seed))


def test_the_context_is_adjusted_for_in_the_worst_case() -> None:
    points = audited().spaces[0].points
    assert all((point.context_adjusted is not None) == point.worst for point in points)


def test_what_was_given_used_and_split_is_told() -> None:
    result = audited()
    assert (result.source.rows, result.source.identities, result.source.dim) == (480, 60, 8)
    assert result.source.sha256 == secret_people().sha256()
    assert (result.curated.images, result.curated.identities, result.curated.identities_dropped) == (8, 60, 0)
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test, roles.seed) == (18, 15, 12, 15, 0)
    protocol = result.protocol
    assert (protocol.ks, protocol.fars, protocol.seeds, protocol.bootstraps) == ([1, 4], [1e-2, 1e-3], 2, 200)


def test_ks_that_do_not_fit_are_left_out_and_told() -> None:
    told = [finding.text for finding in audited().findings if finding.about == "k"]
    assert told == ["k = 16 was left out: 8 images for each identity leave no pair to compare"]


def test_pairs_of_unknown_groups_are_left_out_and_counted() -> None:
    """Every other picture has no group: 1 pair in 4 is known, give or take what the seeds draw."""
    result = quick(grouped([None if row % 2 else f"s{row}" for row in range(len(PEOPLE))]), group="shoot")
    adjusted = result.worst[0].context_adjusted
    assert adjusted is not None
    assert 0.5 < adjusted.unknown < 0.95
    assert any("is not known for both pictures" in finding.text for finding in result.findings)


def test_one_rate_one_k_and_one_probe_may_be_given_bare() -> None:
    assert audit(PEOPLE, erasers=(), fars=0.05, ks=1, probes="cosine", seeds=1, bootstraps=100).protocol.probes == [
        "cosine"
    ]


def test_what_was_not_measured_is_told() -> None:
    bare = quick().not_measured
    assert bare[0].startswith("same-shoot pairs: bare vectors do not tell the same person elsewhere")
    assert bare[-1] == "probes left out: ridge, lda, plda, mlp"
    everything = audited().not_measured
    assert not any(text.startswith("same-shoot") for text in everything)
    assert everything[-1] == "probes left out: mlp"


def test_the_paper_variant_uses_its_shares_and_its_intervals() -> None:
    result = quick(variant="paper", fars=(0.1,), seeds=3, probes=["cosine", "ridge"])
    roles = result.roles
    assert (roles.fit, roles.train, roles.calibrate, roles.test) == (0, 27, 6, 7)
    for point in result.worst:
        assert point.tar is not None
        assert point.tar.method == "1.96 sd over seeds"
        spread = 1.96 * np.std(point.tar_by_seed, ddof=1)
        assert point.tar.high - point.tar.value == pytest.approx(min(spread, 1 - point.tar.value))
        assert point.partial_auc is not None
        assert 0 <= point.partial_auc <= 1
    assert all(point.tar.method == "identity bootstrap" for point in result.controls.shuffled_identities)


def test_repeated_rates_probes_and_ks_count_once() -> None:
    result = quick(fars=(0.05, 0.05), probes=["cosine", "cosine"], ks=(1, 1))
    assert (result.protocol.fars, result.protocol.probes, result.protocol.ks) == ([0.05], ["cosine"], [1])


def test_progress_is_told_in_steps_that_add_up() -> None:
    told = Told()
    quick(progress=told, ks=(1, 2), probes=["cosine", "lda"])
    assert told.totals == told.done == {"raw": 4, "shuffled control": 2}
