"""If these fail, the points of a space are not those asked for, or what voids them is not found."""

import numpy as np
import pytest

from tests.auditing.audits import bare
from tests.auditing.made import audited, controls, in_context, point, raw, result_of
from unface.auditing.leakage import Leakage
from unface.result.audit import Point


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
    for one in audited().raw.points:
        if one.tar and one.achieved_far and one.chance and one.times_chance:
            assert one.tar.low <= one.tar.value <= one.tar.high
            assert one.tar.value == one.tar.numerator / one.tar.denominator
            assert one.achieved_far.value == one.achieved_far.numerator / one.achieved_far.denominator
            assert one.times_chance == pytest.approx(one.tar.value / one.chance)
            assert one.tar.value == pytest.approx(np.mean(one.tar_by_seed))


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


def findings(*points: Point, **what: bool | int) -> list[tuple[str, str, str]]:
    result = result_of(raw(*points), checks=controls(**what))  # type: ignore[arg-type]
    return [(finding.severity, finding.about, finding.text) for finding in Leakage.findings(result)]


def test_a_clear_result_has_nothing_to_add() -> None:
    assert findings(point()) == []


def test_a_failed_control_comes_first_and_makes_the_audit_invalid() -> None:
    found = findings(point(), passed=False, across=2)
    assert [finding[0] for finding in found] == ["invalid", "warning"]
    assert found[0] == (
        "invalid",
        "shuffled identities",
        "with identities shuffled among images ridge still links 25.0 % [20.0, 31.0] of pairs where chance is 1.1 %; "
        "scores depend on something other than identity, so no number here can be trusted",
    )


def test_labels_are_doubted_where_no_probe_beats_chance() -> None:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    assert findings(at_chance) == [
        (
            "warning",
            "labels",
            "no probe does better than chance at any rate: either these vectors hold no identity that the panel can "
            "read, or the identity column is wrong (shuffled, or not about people); check it before calling this safe",
        )
    ]


def test_labels_are_not_doubted_where_the_headline_or_certainly_another_number_is_above_chance() -> None:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    above = point(0.03, 0.02, 0.05, far=1e-2)
    certain = point(0.5, 0.4, 0.6, far=1e-1, probe="mlp", worst=False)
    lucky = point(0.16, 0.11, 0.22, far=1e-1, probe="mlp", worst=False)
    assert findings(above) == findings(at_chance, certain) == []
    # one of many numbers whose 95 % interval just misses chance is what luck looks like
    assert [about for _, about, _ in findings(at_chance, lucky)] == ["labels"]


def test_an_achieved_rate_that_came_out_low_does_not_make_a_number_certain() -> None:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    lucky_chance = point(0.03, 0.02, 0.05, far=2e-2, chance=0.001, worst=False)
    assert [about for _, about, _ in findings(at_chance, lucky_chance)] == ["labels"]


def test_duplicates_and_doubles_are_counted_in_words() -> None:
    assert findings(point(), across=1, within=3, lookalikes=2) == [
        (
            "warning",
            "near-duplicates",
            "1 pair of nearly the same vector (cosine ≥ 0.999) under different identities: one picture under two names "
            "raises every threshold",
        ),
        (
            "warning",
            "identities",
            "2 pairs of identities resemble each other as much as themselves: one person under two names? Such pairs "
            "count as impostors and hide leakage",
        ),
        ("note", "near-duplicates", "3 pairs of nearly the same vector within one identity: they raise the TAR"),
    ]


def test_many_duplicates_are_a_warning_and_few_a_note() -> None:
    assert ("note", "near-duplicates", "9 pairs of nearly the same vector within one identity: they raise the TAR") in (
        findings(point(), within=9)
    )
    severity, about, text = next(found for found in findings(point(), within=2500) if found[1] == "near-duplicates")
    assert (severity, about) == ("warning", "near-duplicates")
    assert "25.0 % of the mated pairs" in text


def test_pictures_under_the_wrong_name_are_counted() -> None:
    assert (
        "warning",
        "identities",
        "2 pictures under one identity, but like another's own: under the wrong name? A few such pictures set the "
        "threshold",
    ) in findings(point(), lost=2)


def test_a_shoot_is_named_when_the_adjusted_interval_ends_below_the_rate() -> None:
    lower = point(context_adjusted=in_context(0.04, 0.03, 0.06, suspects=0.5))
    assert findings(lower) == [
        (
            "warning",
            "same shoot",
            "50.0 % of the accepted pairs share their 'shoot'; with surroundings as alike as those of strangers 4.0 % "
            "[3.0, 6.0] are linked, not 8.4 %",
        )
    ]
    assert findings(point(context_adjusted=in_context(0.07, 0.05, 0.09))) == []


def test_a_context_that_mated_pairs_alone_have_cannot_be_adjusted_for() -> None:
    assert findings(point(context_adjusted=in_context(0.0, 0.0, 0.03, overlap=0.2))) == [
        (
            "warning",
            "same shoot",
            "'shoot' separates mated from impostor pairs almost wholly (overlap 20.0 %); identity and photo shoot "
            "cannot be separated",
        )
    ]


def test_refused_and_coarse_rates_are_listed_once_for_all_probes() -> None:
    refused = [
        point(None, far=1e-6, k=4, probe=probe, resolution="refused", worst=False, needed=321)
        for probe in ("lda", "mlp")
    ]
    coarse = [point(far=1e-5, k=k, resolution="coarse") for k in (4, 1)]
    assert findings(point(), *refused, *coarse) == [
        (
            "note",
            "resolution",
            "FAR 1e-6 at k = 4 is refused: fewer than 3 false accepts expected; 321 calibrate identities would be "
            "needed",
        ),
        (
            "note",
            "resolution",
            "coarse (3 to 30 false accepts expected on calibrate): FAR 1e-5",
        ),
    ]


@pytest.mark.parametrize(("achieved", "shifted"), [(2.9e-4, False), (3.1e-4, True)])
def test_thresholds_that_do_not_carry_over_are_named(achieved: float, shifted: bool) -> None:
    expected = (
        "warning",
        "thresholds",
        "on test identities more than three times the target FAR was accepted, so thresholds do not carry over: 1e-4",
    )
    assert findings(point(achieved=achieved, chance=achieved)) == ([expected] if shifted else [])
