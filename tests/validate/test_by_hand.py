"""If these fail, what attacks recovered is counted for other people, pictures or numbers of questions than it was."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.validate.quizzes import PEOPLE, quiz
from tests.validate.quizzes import picture as coloured
from tests.validate.world import world
from unface.metrics import wilson
from unface.score import Threshold
from unface.seeds import stream
from unface.validate.attacks import ATTACKS, BestOfN, usual_attacks
from unface.validate.embedded import embedded_case
from unface.validate.hardening import harden, usual_measures
from unface.validate.judges import VectorJudge, make_judges
from unface.validate.material import Seen, embedder, enrolment_of, sha256_of, taken, taken_in_order
from unface.validate.measure import (
    Curve,
    Verdicts,
    ceilings,
    chosen_settings,
    judge_recovered,
    pooled,
    shared_fars,
)
from unface.validate.oracle import Replayed
from unface.validate.ports import Faces, Knowledge, Picture, Recovered
from unface.validate.quiz import CATCHES, MOST_ITEMS, NONE, count_of, make_quiz, score_quiz, two_way
from unface.validate.scores import Decisions, Regressions, ScoreRegression, Scores

Numbers = NDArray[np.float64]


def at(*degrees: float) -> NDArray[np.float32]:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def pictures(count: int) -> tuple[Picture, ...]:
    return tuple(Picture(f"{n}", f"{n}".encode()) for n in range(count))


def judge(name: str, *within: float) -> VectorJudge:
    """Accepts within so many degrees at FAR 0.01, at 0.001, …"""
    thresholds = tuple(Threshold.known(10.0 ** -(2 + n), cosine(one), 1000, 1) for n, one in enumerate(within))
    return VectorJudge(name, True, thresholds, thresholds, None, {})


# Person 0 has pictures at 0°, 20° and 40°, person 1 at 90° and 100°, person 2 at 180° and none that shows a face.
FACES = Faces(
    pictures(7),
    np.array([0, 0, 0, 1, 1, 2, 2]),
    ("a", "b", "c"),
    {"own": np.concatenate([at(0, 20, 40, 90, 100, 180), np.zeros((1, 2), np.float32)])},
)


def recovered(*degrees: float) -> Recovered:
    """One setting; a template after 10 and after 20 questions."""
    return Recovered((10, 20), at(*degrees).astype(np.float64)[None])


def test_accepted_comparisons_are_those_of_the_angles() -> None:
    nothing = Recovered((10, 20), np.full((1, 2, 2), np.nan))
    found = judge_recovered(({},), [recovered(10, 60), recovered(95, 130), nothing], FACES, [judge("own", 15, 32)])
    assert (found.judges, found.fars, found.settings, found.queries) == (("own",), (1e-2, 1e-3), ({},), (10, 20))
    # (FARs, queries, people): after 10 questions within 15°, of person 0 the pictures at 0° and 20°.
    assert found.accepted("same")[0, :, 0].tolist() == [[[1, 1, 0], [0, 0, 0]], [[1, 1, 0], [0, 0, 0]]]
    assert found.accepted("other")[0, :, 0].tolist() == [[[1, 1, 0], [0, 0, 0]], [[2, 1, 0], [1, 1, 0]]]
    # Within 32° the template at 60° also passes for the picture at 90°, and the one at 130° for that at 100°, its own.
    assert found.stranger[0, :, 0].tolist() == [[[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0]]]
    # Of seven pictures one shows no face: it is compared with nobody.
    assert [seen[0].tolist() for seen in found.compared] == [[True] * 3, [True, True, True, False]]
    assert (found.owners.tolist(), found.strangers[0].tolist()) == ([0, 0, 1, 2], [3, 4, 5])
    score = float(judge("own").compare(recovered(10, 60).templates[0, :1], [None], FACES)[0, 0])
    limit = (Threshold.known(1e-2, score, 1000, 1),)
    border = replace(judge("own"), thresholds=limit, template_thresholds=limit)
    at_border = judge_recovered(({},), [recovered(10, 60), nothing, nothing], FACES, [border])
    assert at_border.accepted("same")[0, 0, 0, 0, 0] == 1, "at the threshold is accepted"
    rows = ceilings(FACES, [judge("own", 15, 32), replace(judge("own", 50), name="own")], 0)
    assert [(one.judge, one.far, one.other.numerator, one.other.denominator) for one in rows] == [
        ("own", 1e-2, 1, 3), ("own", 1e-2, 3, 3), ("all", 1e-2, 4, 6),
    ]  # fmt: skip
    assert shared_fars([judge("own", 15, 32, 40), judge("own", 9, 9)]) == (1e-2, 1e-3)


def test_templates_and_pictures_have_thresholds_of_their_own() -> None:
    """Within 15° for pictures, within 8° for templates: 10° away is the person on a picture alone."""
    strict = replace(judge("own", 15), template_thresholds=judge("own", 8).thresholds)
    face = Picture("at 10°", b"at 10")
    looking = replace(strict, asked={face.sha256: at(10)[0]})
    nothing = Recovered((10,), np.full((1, 1, 2), np.nan))
    template = Recovered((10,), at(10).astype(np.float64)[None])
    shown = replace(template, pictures=((face,),))
    of_template, of_picture = (
        judge_recovered(({},), [one, nothing, nothing], FACES, [looking]) for one in (template, shown)
    )
    assert of_template.accepted("same")[0, 0, 0, 0].tolist() == [0, 0, 0]
    assert of_picture.accepted("same")[0, 0, 0, 0].tolist() == [1, 0, 0]
    shares = [Curve.of(one, 0).share("same", [0], 0, 0) for one in (of_template, of_picture)]
    assert [None if share is None else share.numerator for share in shares] == [0, 1]
    panel = Curve(of_template.joined([of_picture]), np.array([[1, 0, 0]]), 0).share("same", [0], 0, 0)
    assert panel is not None
    assert panel.numerator == 1, "everybody is judged as what their own setting ends in"
    assert next(one.other.numerator for one in ceilings(FACES, [looking], 0)) == 1, "a real photo is a picture"


def test_more_than_sixteen_people_are_judged_as_few_are() -> None:
    """Forty people 9° apart, two pictures each: a template of each is its own first picture."""
    people = 40
    faces = Faces(
        pictures(2 * people),
        np.repeat(np.arange(people), 2),
        tuple(map(str, range(people))),
        {"own": np.repeat(at(*(9.0 * n for n in range(people))), 2, axis=0)},
    )
    given = [Recovered((5,), faces.vectors["own"][2 * n].astype(np.float64).reshape(1, 1, 2)) for n in range(people)]
    found = judge_recovered(({},), given, faces, [judge("own", 4, 10)])
    for kind in ("same", "other"):
        assert found.accepted(kind)[0, :, 0, 0].tolist() == [[1] * people] * 2
    assert found.stranger[0, :, 0, 0].tolist() == [[0] * people, [4] * people], "two neighbours of two pictures each"


def test_an_attack_that_ends_in_a_picture_is_judged_by_the_picture() -> None:
    asked = dict(zip((one.sha256 for one in pictures(9)[7:]), at(20, 90), strict=True))
    drawn = Picture("drawn", b"drawn")
    seen: list[list[str]] = []

    def embed(given: Sequence[Picture]) -> NDArray[np.float32]:
        seen.append([one.name for one in given])
        return 3 * at(*[180] * len(given))

    looking = replace(judge("own", 15), asked=asked, embed=embed)
    templates = at(0, 0, 0, 0).astype(np.float64)
    shown = [pictures(9)[7], drawn, None, drawn]
    found = looking.compare(templates, shown, FACES)
    assert seen == [["drawn"]], "once, however often it comes"
    np.testing.assert_allclose(found[0], [cosine(a) for a in (20, 0, 20, 70, 80, 160)] + [np.nan], atol=1e-6)
    np.testing.assert_allclose(found[1], [cosine(a) for a in (180, 160, 140, 90, 80, 0)] + [np.nan], atol=1e-6)
    np.testing.assert_allclose(found[2], [cosine(a) for a in (0, 20, 40, 90, 100, 180)] + [np.nan], atol=1e-6)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[1], found[3])
    with refused("validation", "judge 'own'", "sees"):
        replace(looking, embed=None).compare(templates, shown, FACES)
    blind = replace(looking, embed=lambda given: np.zeros((len(given), 2), np.float32))
    assert np.isnan(blind.compare(templates, shown, FACES)[1]).all(), "no face was found on it"


def verdicts(other: Any, same: Any = None, *, compared: int = 4, queries: tuple[int, ...] = (10,)) -> Verdicts:
    """``other`` is (settings, queries, people) accepted pictures of ``compared``; one judge, one rate."""
    others = np.asarray(other, np.int64)
    settings, _, people = others.shape
    itself = np.zeros_like(others) if same is None else np.asarray(same)
    return Verdicts(
        judges=("judge",),
        fars=(1e-3,),
        settings=tuple({"number": float(n)} for n in range(settings)),
        queries=queries,
        thresholds=(((Threshold.known(1e-3, 0.5),),),) * settings,
        same=itself[None].astype(np.float32),
        other=(others[..., None] > np.arange(compared)).reshape(1, settings, -1, people * compared).astype(np.float32),
        owners=np.repeat(np.arange(people), compared),
        stranger=np.ones((1, 1, *others.shape), np.int64),
        compared=(np.ones((1, people), bool), np.ones((1, people * compared), bool)),
        strangers=np.full((1, people), 9),
    )


def test_a_setting_is_chosen_by_other_pictures_first_and_by_the_same_picture_among_equals() -> None:
    people = 6
    half = stream(0, "validate", "halves").permutation(people) % 2
    other = np.zeros((3, 1, people), np.int64)
    same = np.zeros((3, 1, people), np.int64)
    other[0, 0], other[1, 0], other[2, 0] = 1, 1, 0
    same[1, 0], same[2, 0] = 1, 1
    assert chosen_settings(verdicts(other, same), 0).tolist() == [[1] * people]
    other[2, 0, half == 0] = 4  # for one half the third is best: it counts for the other half
    chosen = chosen_settings(verdicts(other, same), 0)[0]
    assert set(chosen[half == 1].tolist()) == {2}
    assert set(chosen[half == 0].tolist()) == {1}
    assert chosen_settings(verdicts(other[:, :, :1]), 0).tolist() == [[0]], "of one person there is no other half"
    found = Curve.of(verdicts(other, same), 0).result("any", adaptive=True)
    assert (found.name, found.adaptive, found.settings) == ("any", True, [{"number": 1.0}, {"number": 2.0}])
    for point in found.at:
        assert point.other is not None
        assert point.same is not None
        assert (point.queries, point.far, point.other.denominator, point.same.denominator) == (10, 1e-3, 24, 6)
        assert point.chance == pytest.approx(6 / 54), "one of nine strangers each"
        assert point.attacks == []
    assert [point.judge for point in found.at] == ["judge", "all"]


def test_curves_of_other_people_are_pooled_with_their_own_settings_and_thresholds() -> None:
    one = Curve(verdicts([[[4, 4]], [[0, 0]]]), np.array([[0, 1]]), 3)
    strict = (((Threshold.known(1e-3, 2.0),),), ((Threshold.known(1e-3, 0.5),),))
    two = Curve(replace(verdicts([[[1, 2]], [[3, 4]]]), thresholds=strict), np.array([[1, 0]]), 4)
    both = pooled([one, two])
    share = both.share("other", [0], 0, 0)
    assert share is not None
    # Four of the first person, none of the second, three of the third; the fourth's setting accepts nothing.
    assert (share.numerator, share.denominator, share.identities, share.level) == (7, 16, 4, 0.95)
    assert both.strangers([0], 0, 0) == (4, 36)
    assert both.seed == 3


def test_questions_to_one_half_at_the_ends_of_the_curve() -> None:
    """Forty people of four pictures: half is reached at the second of three numbers exactly, or never."""
    people = 40
    counts = np.array([[[0] * people, [2] * people, [4] * people]])
    value, said = Curve.of(verdicts(counts, queries=(10, 40, 90)), 0).queries_to_half(1e-3)
    assert value is not None
    assert (value.value, value.low, value.high, value.level, said) == (
        pytest.approx(40),
        *[pytest.approx(40)] * 2,
        0.95,
        "",
    )
    quarter = np.array([[[1] * people, [3] * people, [4] * people]])
    value, _ = Curve.of(verdicts(quarter, queries=(10, 40, 90)), 0).queries_to_half(1e-3)
    assert value is not None
    assert value.value == pytest.approx(20), "half way from 10 to 40 in logarithms"
    # 21 of 40 people are recovered whole at the last number: resamples often miss one half.
    lucky = np.array([[[0] * people, [0] * people, [4] * 21 + [0] * 19]])
    value, said = Curve.of(verdicts(lucky, queries=(10, 40, 90)), 0).queries_to_half(1e-3)
    assert value is not None
    assert said == "the upper end is beyond 90 questions"
    assert 40 < value.low <= value.value <= value.high == 90
    early, said = Curve.of(verdicts(counts[:, 1:], queries=(40, 90)), 0).queries_to_half(1e-3)
    assert early is not None
    assert (early.value, said) == (40, "already at the smallest number that was tried")


def test_shares_count_pictures_and_resample_people() -> None:
    found = verdicts([[[3, 0, 2, 1, 0]]])
    seen = np.ones((1, 20), bool)
    seen[0, 13:] = False  # of the fourth person one picture shows a face, of the fifth none
    curve = Curve.of(replace(found, compared=(found.compared[0], seen)), 0)
    share = curve.share("other", [0], 0, 0)
    assert share is not None
    assert (share.value, share.numerator, share.denominator, share.identities) == (6 / 13, 6, 13, 4)
    assert share.low < 0.25, "four people say little"
    assert share.high > 0.7
    blind = replace(found, compared=(found.compared[0], np.zeros((1, 20), bool)))
    assert Curve.of(blind, 0).share("other", [0], 0, 0) is None


def test_measures_are_in_the_units_of_the_answers() -> None:
    answers = stream(0, "answers").uniform(-0.6, 0.9, (40, 100))
    named = [measure.words for measure in usual_measures(answers, 0)]
    assert named == [
        "scores rounded to 0.01", "scores rounded to 0.1", "noise of standard deviation 0.05 added to every score",
        "noise of standard deviation 0.2 added to every score", "a score only for accepted faces, at FAR 0.01",
        "decisions only, at FAR 0.01",
    ]  # fmt: skip
    percentages = usual_measures(50 + 50 * answers[:, :50], 0)
    assert [one.words for one in percentages[:4]] == [
        "scores rounded to 1", "scores rounded to 10", "noise of standard deviation 5 added to every score",
        "noise of standard deviation 20 added to every score",
    ]  # fmt: skip
    assert len(percentages) == 4, "2,000 answers are too few for one in a hundred to be thirty"
    assert len(usual_measures(np.repeat(answers, 8, axis=0), 0)) == 8, "32,000 are enough for one in a thousand"
    assert len(usual_measures(np.where(answers > 0.5, np.nan, answers)[:, :50], 0)) == 4
    changed = {one.words: one.change(answers) for one in usual_measures(answers, 7)}
    np.testing.assert_allclose(changed["scores rounded to 0.1"], np.round(answers, 1), atol=1e-12)
    noise = changed["noise of standard deviation 0.2 added to every score"] - answers
    assert noise.std() == pytest.approx(0.2, rel=0.05)
    again = next(one for one in usual_measures(answers, 7) if "0.2" in one.words).change(answers)
    np.testing.assert_array_equal(again - answers, noise)
    above, decided = (
        changed[f"{words}, at FAR 0.01"] for words in ("a score only for accepted faces", "decisions only")
    )
    accepted = answers >= np.sort(answers.ravel())[-40]
    np.testing.assert_array_equal(decided, accepted)
    np.testing.assert_array_equal(above[accepted], answers[accepted])
    assert len(np.unique(above[~accepted])) == 1
    assert np.sort(answers.ravel())[-41] < above[~accepted][0] <= answers[accepted].min()
    by = {one.words: one for one in usual_measures(answers, 0)}
    assert by["decisions only, at FAR 0.01"].attacks == by["a score only for accepted faces, at FAR 0.01"].attacks
    assert by["decisions only, at FAR 0.01"].decisions_only
    assert not by["a score only for accepted faces, at FAR 0.01"].decisions_only
    assert by["scores rounded to 0.1"].attacks == ("best-of-n", "scores")
    missing = by["decisions only, at FAR 0.01"].change(np.array([[np.nan, 9.0]]))
    np.testing.assert_array_equal(missing, [[np.nan, 1.0]])
    held = by["a score only for accepted faces, at FAR 0.01"].change(np.array([[np.nan, 9.0]]))
    np.testing.assert_array_equal(held, [[np.nan, 9.0]])


def test_a_limit_on_questions_is_read_off_the_curve_of_the_answers_as_they_are() -> None:
    made = world(0.1, people=8)
    rows = harden(made.scores[:, :100], made.knowledge, made.enrolled, made.judges, (10, 20, 50, 100), 1e-2, seed=0)
    assert [row.measure for row in rows[:3]] == [
        "as it is", "at most 20 questions about a person", "at most 50 questions about a person",
    ]  # fmt: skip
    assert [row.largest for row in rows[:4]] == [100, 20, 50, 100]
    assert {row.far for row in rows} == {1e-2}
    assert {row.applies_to for row in rows} == {"answers of this run"}
    assert all(row.other is not None for row in rows)
    values = [row.other.value for row in rows if row.other is not None]
    assert values[1] < values[2] <= values[0]
    half = rows[0].queries_to_half
    assert half is not None
    assert 20 < half.value <= 50
    assert (rows[1].queries_to_half, rows[2].queries_to_half) == (None, half), "not within 20, within 50"


def test_the_best_of_n_faces_is_the_first_of_the_highest_scores() -> None:
    given = Knowledge(pictures(4), at(0, 30, 60, 90), "own")
    answers = np.array([0.1, 0.7, np.nan, 0.7])
    found = BestOfN().run(Replayed(given.pictures, answers), given, (1, 2, 4))
    np.testing.assert_allclose(found.templates[0], at(0, 30, 30), atol=1e-6)
    assert [one and one.name for one in found.pictures[0]] == ["0", "1", "1"]
    assert found.queries == (1, 2, 4)
    low = BestOfN().run(Replayed(given.pictures, answers - 1), given, (2,))
    assert low.pictures[0][0] == given.pictures[1], "a score below zero is an answer too"
    decided = BestOfN().run(Replayed(given.pictures, np.array([0.0, 0, 1, 0]), decisions_only=True), given, (2, 4))
    assert decided.pictures[0] == (None, given.pictures[2])
    silent = BestOfN().run(Replayed(given.pictures, np.full(4, np.nan)), given, (4,))
    assert silent.pictures[0] == (None,)
    assert np.isnan(silent.templates).all()
    assert list(ATTACKS) == ["best-of-n", "scores", "decisions", "map2v", "map2v-improved"]
    assert usual_attacks(decisions_only=True) == ("best-of-n", "scores", "decisions")
    assert not any((BestOfN.adaptive, Scores.adaptive, Decisions.adaptive))


def test_a_template_is_the_ridge_solution_of_the_normal_equations() -> None:
    random = stream(3, "ridge")
    faces, prior = random.standard_normal((30, 5)), random.standard_normal((5, 5))
    answers = random.standard_normal((2, 30))
    centred = faces - faces.mean(axis=0)
    covariance = prior @ prior.T
    values, axes = np.linalg.eigh(covariance)
    root = (axes * np.sqrt(values)) @ axes.T
    for given, inverse in ((None, np.eye(5)), (root, np.linalg.inv(covariance))):
        fit = ScoreRegression.of(faces, given)
        seen = centred if given is None else centred @ given
        for number, strength in enumerate((0.5, 2.0)):
            found = fit.templates(answers, (0.5, 2.0))[number]
            ridge = strength * float((np.linalg.svd(seen)[1] ** 2).mean())
            solved = np.linalg.solve(
                centred.T @ centred + ridge * inverse, centred.T @ (answers - answers.mean(axis=1, keepdims=True)).T
            ).T
            np.testing.assert_allclose(found, solved, rtol=1e-8)
    flat = np.concatenate([faces, faces[:, :1]], axis=1)
    assert len(ScoreRegression.of(flat).values) == 5, "a direction without spread is left out"


def test_regressions_are_made_once_for_everybody_who_answered_everything() -> None:
    made = world(people=2)
    kept = Regressions(made.knowledge)
    everything = np.ones(40, bool)
    assert kept.of(everything, prior=True) is kept.of(everything, prior=True)
    assert kept.of(everything, prior=True) is not kept.of(everything, prior=False)
    some = np.arange(40) % 2 == 0
    part = kept.of(some, prior=False)
    np.testing.assert_allclose(part.values, ScoreRegression.of(made.knowledge.vectors[:40][some]).values)
    covariance = np.cov(made.knowledge.vectors.astype(np.float64).T)
    np.testing.assert_allclose(kept.root @ kept.root, covariance, atol=1e-10)
    np.testing.assert_allclose(kept.root, kept.root.T, atol=1e-12)


def test_settings_of_scores_are_in_the_order_of_their_templates() -> None:
    made = world(people=2)
    answers = made.scores[:1, :60]
    found = Scores().recover(answers, made.knowledge, (60,))[0].templates[:, 0]
    assert len(Scores.settings) == len(found) == 14
    regressions = Regressions(made.knowledge)
    for setting, template in zip(Scores.settings, found, strict=True):
        fit = regressions.of(np.ones(60, bool), prior=bool(setting["prior"]))
        np.testing.assert_allclose(template, fit.templates(answers, (setting["ridge"],))[0, 0], rtol=1e-9)
    assert Scores.settings[0] == {"ridge": 1.0, "prior": 1.0}, "the first wins ties"
    assert {setting["ridge"] for setting in Scores.settings} == {0.03, 0.1, 0.3, 1, 3, 10, 30}
    assert [setting["ridge"] for setting in Decisions.settings] == [0.1, 0.03, 0.3, 0.01, 1.0]


def test_decisions_say_something_from_the_first_accepted_face_on() -> None:
    """And as long as one answer stands for rejected: at least half of the faces share it."""
    made = world(people=1)
    answers = np.zeros((1, 8))
    answers[0, 4:] = (1, 2, 3, 4)
    found = Decisions().recover(answers, made.knowledge, (4, 5, 8))[0].templates
    assert np.isfinite(found).all(axis=(0, 2)).tolist() == [False, True, True]
    answers[0, 3] = 5
    assert np.isnan(Decisions().recover(answers, made.knowledge, (8,))[0].templates).all(), "three of eight are equal"
    known = np.array([[0, 1, np.nan, 0.0]])
    assert np.isfinite(Decisions().recover(known, made.knowledge, (4,))[0].templates).all()
    assert np.isnan(Decisions().recover(np.full((1, 4), np.nan), made.knowledge, (4,))[0].templates).all()
    one = np.array([[0.3, np.nan, np.nan]])
    assert np.isnan(Scores().recover(one, made.knowledge, (3,))[0].templates).all(), "one answer is no difference"


def test_judges_are_calibrated_on_pictures_that_both_recognisers_see() -> None:
    made = world(people=4)
    blind = made.calibrate.vectors["own"].copy()
    blind[::7] = 0
    calibrate = replace(made.calibrate, vectors={**made.calibrate.vectors, "own": blind})
    learn = {name: vectors.copy() for name, vectors in made.asked.vectors.items()}
    learn["second"][:100] = 0
    own, second = make_judges("own", "target", replace(made.asked, vectors=learn), calibrate, made.asked, (1e-2,))
    kept = int((blind.any(axis=1)).sum())
    there = made.calibrate.identities[blind.any(axis=1)]
    strangers = (kept**2 - int((np.bincount(there) ** 2).sum())) // 2
    assert [one.impostors for one in own.thresholds] == [one.impostors for one in second.thresholds] == [strangers]
    assert "learned on 500 pictures" in second.notes[0]
    assert "from own" in second.notes[0]
    assert second.notes[1].endswith("at FAR 0.01, on calibrate people")
    assert own.notes == ()
    assert own.embed is None
    embeds = {"own": lambda given: np.zeros((len(given), 24), np.float32)}
    looking = make_judges("own", "target", made.asked, made.calibrate, made.asked, (1e-2,), embed=embeds)
    assert [one.embed is not None for one in looking] == [True, False]
    both = make_judges("target", "target", made.asked, made.calibrate, made.asked, (1e-2,))
    assert [one.name for one in both] == ["own", "second"], "the target's own encoder judges nobody"
    few = taken(made.calibrate, range(12))
    with refused("validation", "judge 'own'", "12", "of 0.01"):
        make_judges("own", "target", made.asked, few, made.asked)
    with refused("validation", "attacker's encoder 'mine'"):
        make_judges("mine", "target", made.asked, made.calibrate, made.asked)


def test_the_demo_enrols_fifty_people_asks_with_two_hundred_others_and_judges_by_the_rest() -> None:
    case = embedded_case()
    enrolled, asked = case.enrolled, case.knowledge
    assert (len(enrolled.names), len(asked.pictures)) == (50, 200)
    assert np.bincount(enrolled.identities).tolist() == [4] * 50
    assert len({one.name for one in asked.pictures} & {one.name for one in enrolled.pictures}) == 0
    np.testing.assert_allclose(np.linalg.norm(asked.vectors, axis=1), 1, atol=1e-5)
    (only,) = case.judges
    assert only.name == asked.encoder == case.opened.encoder == "sface"
    opened = case.opened
    assert (opened.kind, opened.local, opened.target.name) == ("built-in", True, "encoder:sface")
    assert (case.enrolled_source, case.queries_source) == ("nobody", "nobody")
    assert case.enrolled_generated
    assert case.queries_generated
    target: Any = opened.target
    target.enrol({"p": enrolled.pictures[0]})
    expected = [float(enrolled.vectors["sface"][0] @ asked.vectors[n]) for n in (0, 199)]
    np.testing.assert_allclose(target.score("p", [asked.pictures[0], asked.pictures[199]]), expected, atol=1e-6)


def test_people_to_enrol_show_a_face_on_every_picture() -> None:
    faces = taken(FACES, [0, 3, 4])
    assert (faces.names, faces.identities.tolist()) == (("a", "b"), [0, 1, 1])
    assert enrolment_of(Seen(faces, (), ()), "folder") is faces
    for seen, named in (
        (Seen(faces, ("x", "y", "z"), ()), "'x' and 2 more"),
        (Seen(faces, (), ("x",)), "'x'"),
        (Seen(taken(FACES, [3, 4]), (), ()), "1 people"),
    ):
        with refused("validation", "folder", named):
            enrolment_of(seen, "folder")
    assert Seen(faces, (), ()).notes == []
    order = taken_in_order(FACES, [5, 3, 0])
    assert (order.names, order.identities.tolist()) == (("c", "b", "a"), [0, 1, 2])
    np.testing.assert_array_equal(order.vectors["own"], FACES.vectors["own"][[5, 3, 0]])


def test_the_hash_of_an_enrolment_changes_with_pictures_people_and_order_alone() -> None:
    from hashlib import sha256

    lines = [f"{sha256(str(n).encode()).hexdigest()} '{name}'\n" for n, name in ((0, "a"), (3, "b"))]
    assert sha256_of(taken(FACES, [0, 3])) == sha256("".join(lines).encode()).hexdigest()
    assert sha256_of(taken_in_order(FACES, [3, 0])) == sha256("".join(lines[::-1]).encode()).hexdigest()


def test_a_built_in_target_sees_pictures_without_a_face_as_nothing() -> None:
    from tests.validate.test_material import BrightFaces, Colours

    colours = Colours("one", (0, 1, 2))
    embed = embedder(colours, BrightFaces())
    found = embed([coloured("a", (0, 0, 0)), coloured("b", (200, 0, 0)), coloured("c", (0, 3, 0))])
    np.testing.assert_allclose(found, [[0, 0, 0], [1, 0, 0], [0, 1, 0]], atol=1e-6)
    assert found.dtype == np.float32
    assert colours.asked == [2]
    assert embed([coloured("a", (0, 0, 0))]).tolist() == [[0, 0, 0]]
    assert colours.asked == [2]


@dataclass
class Panel:
    """A quiz on disk, and files of answers to it."""

    folder: Path

    def __post_init__(self) -> None:
        self.quiz = quiz()
        self.key = self.folder / "key.json"
        self.key.write_text(self.quiz.key(), encoding="utf-8")

    def answered(self, name: str, wrong: dict[str, int]) -> Path:
        """All right but for the first so many items of each kind; wrong is the next candidate."""
        given, left = [], dict(wrong)
        for item in self.quiz.items:
            miss = left.get(item.kind, 0) > 0
            left[item.kind] = left.get(item.kind, 0) - 1
            given.append((item.right + 1) % (NONE + 1) if miss else item.right)
        path = self.folder / f"{name}.json"
        path.write_text(
            json.dumps({"schema": "unface.quiz-answers/1", "quiz": self.quiz.sha256, "answers": given}), "utf-8"
        )
        return path


def test_a_quiz_is_scored_over_people_who_recognise_real_photos(tmp_path: Path) -> None:
    panel = Panel(tmp_path)
    good = panel.answered("good", {})
    half = panel.answered("half", {"reconstruction": 4, "nobody": 1, "real": 1})
    bad = panel.answered("bad", {"real": 2})
    found = score_quiz(panel.key, [good, half, bad])
    assert (found.participants, found.inattentive) == (2, 1)
    assert found.sps[0] == (2 * PEOPLE - 4) / (2 * PEOPLE)
    assert found.sps == two_way(np.array([[True] * PEOPLE, [False] * 4 + [True] * 4]))
    several = [panel.answered(f"{n}", {"reconstruction": n}) for n in range(PEOPLE)]
    rights = np.arange(PEOPLE) >= np.arange(PEOPLE)[:, None]
    assert score_quiz(panel.key, several, seed=1).sps == two_way(rights, 1) != two_way(rights, 0)
    assert [one[0] for one in found.srr] == [0.5] * 4 + [1.0] * 4
    bound = wilson(1, 2, 0.95)
    assert found.srr[0] == (0.5, bound.low, bound.high)
    assert found.real == pytest.approx(5 / 6)
    assert found.nobody == pytest.approx(1 / 6), "somebody was seen where there is nobody"
    assert found.chance == 0.2
    with refused("validation", None, "1"):
        score_quiz(panel.key, [bad])
    with refused("validation", None, "answers"):
        score_quiz(panel.key, [])
    assert count_of(3) == "3 participants"


def test_a_share_of_everybody_or_nobody_has_the_interval_of_as_many_participants() -> None:
    none, low, high = two_way(np.zeros((20, 5), bool))
    assert (none, low) == (0.0, 0.0)
    assert high == pytest.approx(wilson(0, 20, 0.95).high)
    value, low, high = two_way(np.eye(6, dtype=bool)[:3], seed=2)
    assert value == pytest.approx(1 / 6)
    assert low < value < high


def test_candidates_are_those_who_look_most_alike_and_items_are_thirty_at_most() -> None:
    """Forty people around a circle, 9° apart, two photos each: candidates are neighbours."""
    people = 40
    shown = [coloured(f"{n}/{k}", (n, k, 7)) for n in range(people) for k in range(2)]
    vectors = np.repeat(at(*(9.0 * n for n in range(people))), 2, axis=0)
    faces = Faces(tuple(shown), np.repeat(np.arange(people), 2), tuple(map(str, range(people))), {"own": vectors})
    drawn: list[Picture | None] = [coloured(f"drawn {n}", (n, 9, 200)) for n in range(people)]
    drawn[5] = None
    strangers = [coloured(f"nobody {n}", (250, 250, n)) for n in range(5)]
    made = make_quiz(faces, drawn, strangers, "own", seed=1)
    kinds = [item.kind for item in made.items]
    assert len(kinds) == MOST_ITEMS == 30
    assert (kinds.count("real"), kinds.count("nobody"), CATCHES) == (3, 3, 3)
    assert kinds != sorted(kinds, key=kinds.index), "in random order"
    rights = []
    for item in made.items:
        numbers = [int(one.name.partition("/")[0]) for one in item.candidates]
        assert len(set(numbers)) == 4
        if item.kind == "nobody":
            assert item.right == NONE == 4
            assert {one.name.partition("/")[2] for one in item.candidates} == {"0"}
            continue
        person = int(item.face.name.removeprefix("drawn ").partition("/")[0])
        assert person != 5
        assert max(min((number - person) % people, (person - number) % people) for number in numbers) <= 2
        assert item.candidates[item.right].name == f"{person}/1"
        assert all(one.name.endswith("/0") for n, one in enumerate(item.candidates) if n != item.right)
        if item.kind == "real":
            assert item.face.name == f"{person}/0", "of two photos the first is shown, the second is the answer"
        rights.append(item.right)
    assert set(rights) == {0, 1, 2, 3}
    assert make_quiz(faces, drawn, strangers, "own", seed=2).sha256 != made.sha256
    five = [one if n < 5 else None for n, one in enumerate(drawn[6:] + [None] * 6)]
    assert len(make_quiz(faces, five, strangers, "own", seed=1).items) == 11
    with refused("validation", "--quiz", "4", "least 5"):
        make_quiz(faces, [*five[:4], *[None] * 36], strangers, "own", seed=1)
    with refused("validation", "--quiz", "39"):
        make_quiz(faces, drawn, strangers[:2], "own", seed=1)
