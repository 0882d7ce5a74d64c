"""If these fail, a verdict is about another number than it tells, or a rule reads like another rule."""

import pytest

from tests.auditing.made import change, kept, point
from tests.gate import test_inversion, test_protection, test_release
from tests.gate.made import audited, erased, one, raw
from tests.gate.test_too_few import (
    of,
    of_a_certificate,
    of_a_protections_risk,
    of_a_releases_risk,
    of_a_validation,
    of_an_inversion,
    of_copies,
    of_exposed_people,
    ruled,
)
from tests.report.made_validation import share, validation
from unface.gate import Verdict
from unface.gate.diff import Trend, compare
from unface.gate.rules import Measurement
from unface.result.readings import Readable
from unface.result.release import ExactCopies

OF_150 = of(3, 150)
REFUSED = point(None, resolution="refused", worst=False, needed=1520)


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (of_a_validation(OF_150), {"far": 1e-2, "attack": "scores", "queries": 100}),
        (of_an_inversion(OF_150), {"far": 1e-3, "attack": "alsuv"}),
        (of_exposed_people(OF_150), {}),
        (of_copies(OF_150), {"far": 1e-4}),
        (of_a_releases_risk(OF_150), {"k": 2}),
        (of_a_protections_risk(OF_150), {"k": 2}),
        (of_a_certificate(OF_150), {"far": 1e-3}),
    ],
    ids=["validation", "inversion", "exposed", "copies", "risk", "protection", "certificate"],
)
def test_a_verdict_carries_the_number_that_decided_it(found: object, more: dict[str, object]) -> None:
    expected = Measurement(OF_150.value, OF_150.low, OF_150.high, 0.95, 0.05, "share", **more)  # type: ignore[arg-type]
    assert found.measured == expected  # type: ignore[attr-defined]


def test_so_do_comparisons_usefulness_and_accuracy() -> None:
    beaten = one(audited(raw(), erased(changes=[change(-0.03, -0.04, -0.02)])), beats="random", far=1e-4)
    assert beaten.measured == Measurement(-0.03, -0.04, -0.02, 0.95, 0.0, "difference", "lda", 4, 1e-4)
    useful = one(audited(raw(), erased(utility=[kept(0.9, 0.8, 0.95)])), utility="knn", retained_min=0.5)
    assert useful.measured is not None
    assert (useful.measured.value, useful.measured.limit, useful.measured.unit) == (0.9, 0.5, "share")
    accuracy = ruled(test_protection.protection(value=0.8), utility_min=0.6)
    assert accuracy.measured is not None
    assert (accuracy.measured.value, accuracy.measured.limit, accuracy.measured.unit) == (0.8, 0.6, "share")


@pytest.mark.parametrize(
    ("rule", "words", "limit", "meaning"),
    [
        (
            {"success_max": 0.05, "far": 1e-3, "queries": 1},
            "success against other pictures after 1 question at FAR 1e-3, worst attack",
            "at most 5.0 %",
            "rebuilt face templates that match other photos of the person, after 1 question, "
            "at one false match in 1,000",
        ),
        (
            {"success_max": 0.05, "far": 1e-3, "queries": 20, "attack": "scores", "pictures": "same"},
            "success against the enrolled picture after 20 questions at FAR 1e-3, scores",
            "at most 5.0 %",
            "rebuilt face templates that match the enrolled photo, after 20 questions, at one false match in 1,000",
        ),
        (
            {"inverted_max": 0.05, "far": 1e-4},
            "inversion of raw vectors against other pictures at FAR 1e-4, worst attack",
            "at most 5.0 %",
            "vectors turned into a face or template that matches other photos of the person, before erasure, "
            "at one false match in 10,000",
        ),
        (
            {"inverted_max": 0.05, "far": 1e-4, "space": "keeper", "attack": "bob", "pictures": "same"},
            "inversion of keeper vectors against the attacked picture at FAR 1e-4, bob",
            "at most 5.0 %",
            "vectors turned into a face or template that matches the photo behind the vector, after erasure by keeper, "
            "at one false match in 10,000",
        ),
        (
            {"exposed_max": 0.01, "view": "eyes"},
            "training people exposed by eyes",
            "at most 1.0 %",
            "people in the training set who are exposed by a synthetic face",
        ),
        (
            {"copies_max": 0.01, "far": 1e-4, "view": "nose"},
            "copies beyond the holdout's at FAR 1e-4 by nose",
            "at most 1.0 %",
            "synthetic faces too near to a training picture to be chance, at one false match in 10,000",
        ),
        (
            {"risk_max": 0.01, "k": 2, "pictures": "same"},
            "retrieval risk for the same picture, K = 2",
            "at most 1.0 %",
            "real photos whose person is among the 2 released faces nearest to them",
        ),
        (
            {"recognised_max": 0.01},
            "reconstructions that a recogniser links",
            "at most 1.0 %",
            "pictures that the receiver computes back and a recogniser links to their person",
        ),
        (
            {"utility_min": 0.9, "pairs": "lfw"},
            "pair verification of a recogniser trained on the release on lfw",
            "at least 90.0 %",
            "photo pairs that a recogniser trained on this set judges correctly",
        ),
    ],
)
def test_each_rule_is_told_in_words_of_its_own(rule: dict[str, object], words: str, limit: str, meaning: str) -> None:
    told = one(audited(raw()), **rule)
    assert (told.rule, told.limit, told.meaning) == (words, limit, meaning)
    assert told.verdict is Verdict.INCONCLUSIVE, "an audit cannot answer it"
    assert told.reason.startswith("this file is an audit; ")


@pytest.mark.parametrize("kind", ["other", "same"])
def test_the_pictures_that_a_rule_names_are_the_ones_it_judges(kind: str) -> None:
    low, high = share(0.01), share(0.9)
    numbers = {"other": low, "same": high} if kind == "other" else {"other": high, "same": low}
    asked = validation()
    attacks = [
        attack.model_copy(update={"at": [at.model_copy(update=numbers) for at in attack.at]})
        for attack in asked.attacks
    ]
    cell = test_inversion.cell("alsuv", 0)
    inverted = cell.model_copy(update={"at": [at.model_copy(update=numbers) for at in cell.at]})
    results: tuple[tuple[Readable, dict[str, object]], ...] = (
        (asked.model_copy(update={"attacks": attacks}), {"success_max": 0.1, "far": 1e-2, "queries": 100}),
        (test_inversion.result(inverted), {"inverted_max": 0.1, "far": 1e-3}),
    )
    for result, rule in results:
        assert ruled(result, **rule, pictures=kind).verdict is Verdict.PASSED
        assert ruled(result, **rule, pictures="same" if kind == "other" else "other").verdict is Verdict.FAILED


def test_the_worst_attack_is_the_one_that_a_validation_is_quoted_by() -> None:
    """0.6 and 0.3 are reached at FAR 1e-2 after 100 questions."""
    rule: dict[str, object] = {"success_max": 0.5, "far": 1e-2, "queries": 100}
    assert ruled(validation(0.6), **rule).verdict is Verdict.FAILED
    assert ruled(validation(0.6), **rule, attack="best-of-n").verdict is Verdict.PASSED
    missing = ruled(validation(0.6), **rule, attack="map2v")
    assert missing.reason == "attack 'map2v' was not run; the validation has scores, best-of-n"


def test_an_exact_copy_is_named_with_its_share_and_rate() -> None:
    def copied(faces: int) -> Readable:
        return test_release.result(exact=ExactCopies(faces=faces, people=faces))

    faces = ruled(copied(30), copies_max=0.01, far=1e-3)
    assert faces.reason == "30 synthetic faces are an exact copy of a training picture"
    assert faces.measured == Measurement(0.03, 0.03, 0.03, 0.95, 0.01, "share", far=1e-3)
    one_face = ruled(copied(1), copies_max=0.0001, far=1e-3)
    assert one_face.reason == "1 synthetic face is an exact copy of a training picture"
    people = ruled(copied(30), exposed_max=0.01)
    assert people.measured == Measurement(0.03, 0.03, 0.03, 0.95, 0.01, "share")


def test_the_risk_of_a_protection_names_the_worst_attacker_and_chance() -> None:
    found = ruled(test_protection.protection(), risk_max=0.5, k=2)
    assert found.rule.endswith(", worst attacker")
    assert " (by guessing: " in found.meaning
    assert " (by guessing: " not in ruled(test_release.result(), risk_max=0.5, k=2).meaning


def test_a_number_that_one_side_could_not_measure_is_not_compared() -> None:
    measured, refused = audited(raw(point(0.3, 0.28, 0.32))), audited(raw(REFUSED))
    for old, new, which in ((measured, refused, "new"), (refused, measured, "old")):
        diff = compare(old, new)
        assert diff.exit_code == 4
        assert {row.trend for row in diff.rows} == {Trend.MISSING}
        assert f"the {which} result could not measure it" in {row.why for row in diff.rows}
        assert all(row.difference is None and row.what for row in diff.rows)
