"""If these fail, the one sentence that people read says something else than the numbers below it."""

import pytest
from unface.auditing.findings import find, verdict
from unface.auditing.schema import SpaceResult

from tests.auditing.made import controls, in_context, point
from unface.auditing import Finding, Point, headline


def raw(*points: Point) -> list[SpaceResult]:
    """The raw space alone, with no curve to draw."""
    return [SpaceResult(name="raw", points=list(points), curves=[])]


def said(*points: Point) -> str:
    return verdict(raw(*points), [])


def findings(*points: Point, **what: bool | int) -> list[tuple[str, str, str]]:
    found = find(raw(*points), controls(**what), [], 20)  # type: ignore[arg-type]
    return [(finding.severity, finding.about, finding.text) for finding in found]


def test_the_verdict_says_who_can_link_how_much_at_what_rate_and_how_far_above_chance() -> None:
    assert said(point()) == (
        "An attacker with 4 pictures of each of some other people can link 8.4 % [7.1, 9.9] of photo pairs of one "
        "person at one false match in 10,000: 840 times chance."
    )


def test_one_picture_is_singular_and_small_multiples_have_a_decimal() -> None:
    assert said(point(0.03, 0.02, 0.05, far=1e-2, chance=0.012, k=1)) == (
        "An attacker with 1 picture of each of some other people can link 3.0 % [2.0, 5.0] of photo pairs of one "
        "person at one false match in 100: 2.5 times chance."
    )


def test_an_interval_that_reaches_chance_is_not_more_than_chance() -> None:
    assert said(point(0.015, 0.009, 0.03, far=1e-2, chance=0.012)) == (
        "An attacker with 4 pictures of each of some other people can link 1.5 % [0.90, 3.0] of photo pairs of one "
        "person at one false match in 100: this cannot be told from chance, which is 1.2 %."
    )
    assert "cannot be told from chance" in said(point(0.015, 0.012, 0.03, far=1e-2, chance=0.012))
    assert "1.2 times chance" in said(point(0.015, 0.0121, 0.03, far=1e-2, chance=0.012))


def test_a_coarse_rate_is_called_coarse() -> None:
    assert said(point(resolution="coarse")).endswith(
        ": 840 times chance. Calibrate identities are few for this rate; take it as coarse."
    )


def test_nothing_measured_is_not_called_safe() -> None:
    refused = point(None, resolution="refused", worst=False, needed=90)
    assert said(refused) == said() == "Nothing could be measured at the rates asked for."


def test_an_invalid_audit_says_so_instead_of_any_number() -> None:
    broken = Finding(severity="invalid", about="shuffled identities", text="scores depend on the weather")
    assert verdict(raw(point()), [broken]) == "The audit is invalid: scores depend on the weather"
    warned = Finding(severity="warning", about="labels", text="odd")
    assert verdict(raw(point()), [warned]) == said(point())


def test_the_headline_is_the_lowest_resolved_rate_at_the_k_where_it_is_worst() -> None:
    best = point(0.05, far=1e-3, k=1)
    points = [
        point(0.9, far=1e-2, k=4),
        best,
        point(0.04, far=1e-3, k=4),
        point(0.8, far=1e-3, k=4, probe="mlp", worst=False),
        point(0.7, far=1e-4, resolution="coarse"),
        point(None, far=1e-5, resolution="refused", worst=False),
    ]
    assert headline(points) is best
    assert headline(points[::-1]) is best


def test_the_headline_is_coarse_only_where_nothing_is_resolved() -> None:
    low, high = point(0.1, far=1e-4, resolution="coarse"), point(0.2, far=1e-3, resolution="coarse")
    assert headline([high, low]) is low
    assert headline([high, low, point(0.3, far=1e-2)]) == point(0.3, far=1e-2)
    assert headline([point(None, resolution="refused", worst=False)]) is None


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


def test_labels_are_not_doubted_where_the_headline_or_surely_another_number_is_above_chance() -> None:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    above = point(0.03, 0.02, 0.05, far=1e-2)
    surely = point(0.5, 0.4, 0.6, far=1e-1, probe="mlp", worst=False)
    luckily = point(0.16, 0.11, 0.22, far=1e-1, probe="mlp", worst=False)
    assert findings(above) == findings(at_chance, surely) == []
    # one of many numbers whose 95 % interval just misses chance is what luck looks like
    assert [about for _, about, _ in findings(at_chance, luckily)] == ["labels"]


def test_an_achieved_rate_that_came_out_low_does_not_make_a_number_sure() -> None:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    lucky_chance = point(0.03, 0.02, 0.05, far=2e-2, chance=0.001, worst=False)
    assert [about for _, about, _ in findings(at_chance, lucky_chance)] == ["labels"]


def test_duplicates_and_doubles_are_counted_in_words() -> None:
    found = findings(point(), across=1, within=3, lookalikes=2)
    assert found == [
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


def test_a_shoot_is_told_when_the_adjusted_interval_ends_below_the_rate() -> None:
    told = point(context_adjusted=in_context(0.04, 0.03, 0.06, suspects=0.5))
    assert findings(told) == [
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
            "'shoot' separates mated from impostor pairs almost wholly (overlap 20.0 %); what is identity and what is "
            "the shoot cannot be told apart",
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
            "coarse (3 to 30 false accepts expected on calibrate): FAR 1e-5 at k = 1, 1e-5 at k = 4",
        ),
    ]


@pytest.mark.parametrize(("achieved", "told"), [(2.9e-4, False), (3.1e-4, True)])
def test_thresholds_that_do_not_carry_over_are_told(achieved: float, told: bool) -> None:
    found = findings(point(achieved=achieved, chance=achieved))
    expected = (
        "warning",
        "thresholds",
        "on test identities more than three times the target FAR was accepted, so thresholds do not carry over: "
        "1e-4 at k = 4",
    )
    assert found == ([expected] if told else [])


def test_ks_that_were_left_out_are_told_with_the_images_there_are() -> None:
    found = find(raw(point()), controls(), [4, 16], 5)
    assert [(finding.severity, finding.text) for finding in found] == [
        ("note", "k = 4, 16 was left out: 5 images for each identity leave no pair to compare")
    ]


def test_comparing_vectors_as_they_are_takes_no_pictures() -> None:
    sentence = said(point(probe="cosine"))
    assert sentence.startswith(
        "Anyone who can compare the vectors, having learned nothing, can link 8.4 % [7.1, 9.9] of"
    )


def test_the_k_of_the_headline_is_chosen_on_calibrate() -> None:
    chosen = point(0.04, k=1, calibrate_tar=0.06)
    assert headline([chosen, point(0.09, k=4, calibrate_tar=0.05)]) is chosen


def test_many_duplicates_are_a_warning_and_few_a_note() -> None:
    assert ("note", "near-duplicates", "9 pairs of nearly the same vector within one identity: they raise the TAR") in (
        findings(point(), within=9)
    )
    severity, about, text = next(found for found in findings(point(), within=2500) if found[1] == "near-duplicates")
    assert (severity, about) == ("warning", "near-duplicates")
    assert "25.0 % of the mated pairs" in text


def test_a_coarse_number_that_is_not_above_chance_is_still_called_coarse() -> None:
    assert said(point(0.0, 0.0, 0.2, resolution="coarse")).endswith("; take it as coarse.")


def test_pictures_under_the_wrong_name_are_counted() -> None:
    assert (
        "warning",
        "identities",
        "2 pictures under one identity, but like another's own: under the wrong name? A few such pictures set the "
        "threshold",
    ) in findings(point(), lost=2)
