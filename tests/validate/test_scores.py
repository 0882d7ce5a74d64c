"""If this fails, a validation reports attacks that recover less or more than they do, or judges that see wrong."""

from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.validate.world import QUERIES, World, world
from unface.seeds import stream
from unface.validate.attacks import BestOfN, load_attack, usual_attacks
from unface.validate.hardening import harden, usual_measures
from unface.validate.judges import make_judges
from unface.validate.measure import Curve, ceilings, judge_recovered, shared_fars, worst_curve
from unface.validate.oracle import Replayed
from unface.validate.ports import Attack
from unface.validate.scores import Decisions, Scores


@pytest.fixture(scope="module")
def made() -> World:
    return world()


def curve(made: World, attack: Attack, answers: NDArray[np.float64], *, decisions_only: bool = False) -> Curve:
    recovered = made.run(attack, answers, decisions_only=decisions_only)
    return Curve.of(judge_recovered(attack.settings, recovered, made.enrolled, made.judges), seed=0)


def other(made: World, found: Curve, queries: int, far: float = 1e-3) -> float:
    point = found.result("any").point(queries, far)
    assert point is not None
    assert point.other is not None
    return point.other.value


def test_fifty_scores_of_another_recogniser_are_worth_a_picture_of_the_person(made: World) -> None:
    found = curve(made, Scores(), made.scores)
    (ceiling,) = [one for one in ceilings(made.enrolled, made.judges, 0) if (one.far, one.judge) == (1e-3, "all")]
    assert other(made, found, 50) > 0.95 * ceiling.other.value > 0.5
    assert other(made, found, 10) < 0.7 * ceiling.other.value  # ten equations for 24 unknowns
    best = curve(made, BestOfN(), made.scores)
    assert other(made, best, 160) < 0.3 * other(made, found, 160)


def test_scores_in_another_order_are_at_chance(made: World) -> None:
    order = stream(0, "shuffle").permutation(made.scores.shape[1])
    found = curve(made, Scores(), made.scores[:, order]).result("scores")
    points = [point for point in found.at if point.judge == "all"]
    assert len(points) == 9, "three rates at three numbers of questions"
    for point in points:
        assert point.other is not None
        assert point.other.low <= 3 * point.far
        assert point.other.value < 0.05, "in their own order they reach 0.16 at the lowest rate, with ten questions"


def test_strangers_are_accepted_about_as_often_as_the_rate_says(made: World) -> None:
    """The control that catches a mean face: templates judged against everybody else."""
    point = curve(made, Scores(), made.scores).result("scores").point(160, 1e-2)
    assert point is not None
    assert 1e-3 < point.chance < 3e-2


def test_what_is_recovered_after_n_questions_ignores_later_answers(made: World) -> None:
    changed = made.scores.copy()
    changed[:, 50:] = 0
    for attack in (Scores(), BestOfN(), Decisions()):
        whole, cut = (made.run(attack, answers)[3].templates[:, :2] for answers in (made.scores, changed))
        np.testing.assert_array_equal(whole, cut)


def test_unanswered_questions_are_left_out(made: World) -> None:
    """The same as if they had never been asked."""
    answers = made.scores[:1].copy()
    answers[0, 5:15] = np.nan
    (found,) = made.run(Scores(), answers)
    knowledge = made.knowledge
    kept = np.r_[0:5, 15:160]
    without = replace(
        knowledge, pictures=tuple(knowledge.pictures[row] for row in kept), vectors=knowledge.vectors[kept]
    )
    # The prior is that of all faces at hand, so only the settings without one agree.
    plain = [number for number, setting in enumerate(Scores.settings) if not setting["prior"]]
    again = Scores().run(Replayed(without.pictures, answers[0, kept]), without, (150,))
    np.testing.assert_allclose(found.templates[plain, 2], again.templates[plain, 0], rtol=1e-6)


def test_one_answer_to_everything_recovers_nothing(made: World) -> None:
    answers = np.full_like(made.scores[:1], 0.5)
    assert np.isnan(made.run(Scores(), answers)[0].templates).all()
    (nobody,) = made.run(BestOfN(), np.zeros_like(answers), decisions_only=True)
    assert np.isnan(nobody.templates).all()
    assert nobody.pictures == ((None, None, None),)
    assert np.isnan(made.run(Decisions(), made.scores[:1])[0].templates).all()  # scores are no decisions


def test_decisions_need_more_questions_than_scores_and_logistic_loses_less(made: World) -> None:
    decided = (made.scores >= np.quantile(made.scores, 0.9)).astype(float)
    answers = curve(made, Scores(), made.scores)
    ridge, logistic = (curve(made, attack, decided, decisions_only=True) for attack in (Scores(), Decisions()))
    assert other(made, ridge, 160) < other(made, answers, 160)
    assert other(made, logistic, 160) >= other(made, ridge, 160) - 0.03 > 0.1


def test_logistic_regression_reaches_the_optimum_of_a_peer(made: World) -> None:
    from sklearn.linear_model import LogisticRegression

    from unface.validate.scores import ScoreRegression

    faces = made.knowledge.vectors[:160]
    decided = (made.scores[0, :160] >= np.quantile(made.scores[0, :160], 0.8)).astype(float)
    fit = ScoreRegression.of(faces)
    ours = fit.logistic(decided[None], [0.1])[0, 0]
    strength = 0.1 * float((fit.values**2).mean())
    peer = LogisticRegression(C=1 / strength, tol=1e-8).fit(faces - faces.mean(axis=0), decided).coef_[0]
    np.testing.assert_allclose(ours, peer, atol=0.02 * np.abs(peer).max())


def test_settings_are_chosen_on_people_they_do_not_count_for(made: World) -> None:
    """A setting that works for one half of the people alone is chosen for the other half, and helps nobody."""
    recovered = made.run(BestOfN(), made.scores)
    found = judge_recovered(BestOfN.settings, recovered, made.enrolled, made.judges)
    half = stream(0, "validate", "halves").permutation(len(made.enrolled.names)) % 2
    first, second = (np.where(half[found.owners] == side, np.float32(1), np.float32(-1)) for side in (0, 1))
    blank = np.zeros_like(found.other)
    rigged = replace(found, other=first + blank).joined([replace(found, other=second + blank)])
    curve = Curve.of(rigged, seed=0)
    for far in range(len(found.fars)):
        share = curve.share("other", [0, 1], far, 0)
        assert share is not None
        assert share.numerator == 0


def test_the_worst_attack_is_the_best_of_the_panel(made: World) -> None:
    panel = [
        judge_recovered(attack.settings, made.run(attack, made.scores), made.enrolled, made.judges)
        for attack in (BestOfN(), Scores())
    ]
    worst, scores = worst_curve(panel, 0), Curve.of(panel[1], 0)
    assert other(made, worst, 160) == pytest.approx(other(made, scores, 160), abs=0.02)


def test_the_target_never_judges_and_others_see_templates_through_a_map(made: World) -> None:
    own, second = made.judges
    assert (own.name, own.independent, own.translation) == ("own", False, None)
    assert (second.name, second.independent) == ("second", True)
    assert "perfect template" in second.notes[1]
    assert shared_fars(made.judges) == (1e-2, 1e-3, 1e-4)
    only = replace(made.asked, vectors={"own": made.asked.vectors["own"]})
    alone = make_judges("own", "own", only, only, only)
    assert [(judge.name, judge.independent) for judge in alone] == [("own", False)]


def test_a_picture_is_judged_as_every_judge_sees_it(made: World) -> None:
    picture = made.asked.pictures[7]
    for judge in made.judges:
        seen = judge.compare(np.full((1, 24), np.nan), [picture], made.enrolled)
        expected = made.asked.vectors[judge.name][7] @ made.enrolled.vectors[judge.name].T
        np.testing.assert_allclose(seen[0], expected, atol=1e-6)


def test_hardening_orders_measures_as_their_noise_does(made: World) -> None:
    rows = {
        row.measure: row
        for row in harden(made.scores, made.knowledge, made.enrolled, made.judges, QUERIES, 1e-3, seed=0)
    }
    half = {words: row.queries_to_half for words, row in rows.items()}
    plain, rounded, coarse = (half[words] for words in ("as it is", "scores rounded to 0.01", "scores rounded to 0.1"))
    assert plain is not None
    assert rounded is not None
    assert plain.low <= plain.value <= plain.high
    assert plain.value <= 1.1 * rounded.value
    assert coarse is not None
    assert coarse.value > 0.9 * rounded.value
    assert rows["at most 50 questions about a person"].largest == 50
    decided, whole = rows["decisions only, at FAR 0.01"], rows["as it is"]
    assert decided.other is not None
    assert whole.other is not None
    assert decided.other.value < 0.6 * whole.other.value
    loud, quiet = (half[f"noise of standard deviation {size:g} added to every score"] for size in (0.2, 0.05))
    assert quiet is not None
    assert loud is not None
    assert loud.value > 1.2 * quiet.value
    assert quiet.value > plain.value


def test_decisions_leave_nothing_to_harden(made: World) -> None:
    assert usual_measures((made.scores > 0).astype(float), 0) == []


def test_attacks_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usual_attacks(decisions_only=False) == ("best-of-n", "scores")
    assert load_attack("decisions").name == "decisions"
    given = EntryPoints([EntryPoint("mine", "unface.validate.attacks:BestOfN", "unface.attacks")])
    monkeypatch.setattr("unface.functions.entry_points", given.select)
    assert isinstance(load_attack("mine"), BestOfN)
    with refused("name", None, "'other'", "best-of-n, scores, decisions, map2v, map2v-improved, mine"):
        load_attack("other")
