"""If these fail, a release reports other numbers than the full matrices of all cosines give."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import hypergeom
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.release.made import FACES, Sets, sets
from unface.data import EmbeddingSet
from unface.metrics import allowed_accepts, threshold_allowing, wilson, zero_bound
from unface.release import benjamini_hochberg, exchangeability, measure_membership, permutation_test, reach_chance
from unface.release.faces import faces_of
from unface.release.paper import PaperSet, paper_score
from unface.release.run import Plan, Released, View, measure_release, release
from unface.verification import verify

PLAN = Plan(far=(1e-2, 1e-3), k=(1, 2))
PLANTED, PEOPLE, HOLDOUT = 25, 100, 300
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Everything that a release of these sets rests on, held whole."""

    given: Sets
    trained: Numbers
    """(faces, training pictures)."""
    held: Numbers
    ours: Numbers
    """(people,) the best cosine above what is usual at the place of a picture."""
    others: Numbers
    usual: Numbers
    """(training pictures,)."""


@cache
def matrices() -> Matrices:
    given = sets(PLANTED)
    s, t, h = (side.unit().vectors.astype(np.float64) for side in (given.synthetic, given.training, given.holdout))
    real, whose = np.concatenate([t, h]), np.repeat(np.arange(PEOPLE + HOLDOUT), 3)
    cosines = np.where(whose[:, None] == whose, -np.inf, real @ real.T)
    usual = np.sort(cosines, axis=1)[:, -10:].mean(axis=1)
    best = (np.concatenate([s @ t.T, s @ h.T], axis=1).max(axis=0) - usual).reshape(-1, 3).max(axis=1)
    return Matrices(given, s @ t.T, s @ h.T, best[:PEOPLE], best[PEOPLE:], usual[: 3 * PEOPLE])


@cache
def done() -> Released:
    given = matrices().given
    return release(given.synthetic, given.training, given.holdout, plan=PLAN)


def p_values(made: Matrices) -> Numbers:
    return np.asarray((1 + (made.others >= made.ours[:, None]).sum(axis=1)) / (1 + HOLDOUT))


def test_exposure_is_the_rank_of_each_person_among_holdout_people() -> None:
    made, found = matrices(), done().result.main.exposure
    p = p_values(made)
    listed = benjamini_hochberg(p)
    assert found.exposed is not None
    assert (found.exposed.numerator, found.exposed.denominator) == (int(listed.sum()), PEOPLE)
    bound = wilson(int(listed.sum()), PEOPLE)
    assert (found.exposed.low, found.exposed.high) == (bound.low, bound.high)
    assert found.smallest_p == pytest.approx(p.min())
    assert (found.pictures, found.least, found.fdr) == (3, 7, 0.05)
    rows = {row[0]: row for row in done().exposed.rows}
    names = matrices().given.training.names
    assert set(rows) == {names[person] for person in np.flatnonzero(listed)}
    for person in np.flatnonzero(listed):
        name, view, shown, score, _, _ = rows[names[person]]
        assert (name, view, shown) == (names[person], "face", f"{p[person]:.6g}")
        assert float(score) == pytest.approx(made.ours[person], abs=1e-4)
    assert done().exposed.columns == ("person", "view", "p", "score", "pictures", "synthetic")
    order = [(float(row[2]), row[0]) for row in done().exposed.rows]
    assert order == sorted(order)


def test_pictures_that_expose_a_person_are_as_near_as_the_least_near_person_listed() -> None:
    made = matrices()
    listed = np.flatnonzero(benjamini_hochberg(p_values(made)))
    cut = made.ours[listed].min()
    above = (made.trained - made.usual).reshape(FACES, PEOPLE, 3)[:, listed]
    exposing = (above >= cut - 1e-5).any(axis=2)
    best = made.trained.reshape(FACES, PEOPLE, 3)[:, listed].copy()
    best[above < cut - 1e-5] = -2
    rows = {row[0]: row for row in done().exposed.rows}
    for number, person in enumerate(listed):
        faces = np.flatnonzero(exposing[:, number])
        order = faces[np.argsort(-best[faces, number].max(axis=1))]
        row = rows[made.given.training.names[person]]
        assert int(row[4]) == len(faces)
        assert row[5].split(" ") == [made.given.synthetic.ids[face] for face in order[:10]]
    people = dict(enumerate(exposing.sum(axis=1).tolist()))
    place = {name: number for number, name in enumerate(made.given.synthetic.ids)}
    for risky in done().result.main.riskiest:
        assert risky.people == people[place[risky.id]]


def test_the_riskiest_pictures_are_those_most_nearer_to_training() -> None:
    made = matrices()
    near, far = made.trained.max(axis=1), made.held.max(axis=1)
    order = [int(row) for row in np.argsort(far - near)[:20] if near[row] > far[row]]
    found = done().result.main.riskiest
    assert [one.id for one in found] == [made.given.synthetic.ids[row] for row in order]
    strictest = done().result.main.copies[-1]
    for one, row in zip(found, order, strict=True):
        assert [one.training, one.holdout] == pytest.approx([near[row], far[row]], abs=1e-5)
        assert one.is_copy == (near[row] >= strictest.cosine)
    pairs = [(made.given.synthetic.ids[row], made.given.training.ids[made.trained[row].argmax()]) for row in order]
    assert done().faces == pairs


def test_membership_linking_and_enrichment_are_counted_over_all_pairs() -> None:
    made, main = matrices(), done().result.main
    both = np.concatenate([made.trained, made.held], axis=1)
    expected = measure_membership(both.argmax(axis=1) // 3, PEOPLE, HOLDOUT)
    assert main.membership.share == expected.share
    assert main.membership.null == 0.25
    assert main.membership.test.p == pytest.approx(expected.permuted.p)
    assert (main.membership.test.exact, main.membership.test.permutations) == (True, None)
    pool = np.concatenate([made.ours, made.others])
    nearest = np.sort(pool)[-10:]
    inside = int((made.ours >= nearest[0]).sum())
    assert main.enrichment is not None
    assert (main.enrichment.nearest, main.enrichment.training, main.enrichment.expected) == (10, inside, 2.5)
    assert main.enrichment.p == pytest.approx(hypergeom.sf(inside - 1, PEOPLE + HOLDOUT, PEOPLE, 10))
    real = np.concatenate([made.given.training.vectors, made.given.holdout.vectors])
    known = verify(real, np.repeat(np.arange(PEOPLE + HOLDOUT), 3), far=1e-2).at[1e-2]
    assert main.linking is not None
    assert (main.linking.far, main.linking.above_chance) == (1e-2, True)
    assert (main.linking.tar.numerator, main.linking.tar.denominator) == (known.accepted, 3 * (PEOPLE + HOLDOUT))
    assert main.linking.tar.identities == PEOPLE + HOLDOUT
    assert main.linking.tar.low > 0.98


def test_separation_is_that_of_one_score_a_person() -> None:
    made, found = matrices(), done().result.main.separation
    labels, pool = np.repeat([1, 0], [PEOPLE, HOLDOUT]), np.concatenate([made.ours, made.others])
    assert found.auc.value == pytest.approx(roc_auc_score(labels, pool), abs=1e-6)
    assert found.average_precision == pytest.approx(average_precision_score(labels, pool), abs=1e-6)
    assert (found.fpr, found.coin, found.auc.level) == (0.01, 0.25, 0.95)
    # Hanley and McNeil 1982: the variance of an AUC.
    a = found.auc.value
    variance = a * (1 - a) + (PEOPLE - 1) * (a / (2 - a) - a * a) + (HOLDOUT - 1) * (2 * a * a / (1 + a) - a * a)
    spread = np.sqrt(variance / PEOPLE / HOLDOUT)
    assert found.auc.high - found.auc.low == pytest.approx(2 * 1.96 * spread, rel=0.25)
    threshold = threshold_allowing(made.others, allowed_accepts(0.01, HOLDOUT))
    if found.tpr is not None:
        hits = int((made.ours >= threshold).sum())
        assert (found.tpr.numerator, found.tpr.denominator) == (hits, PEOPLE)


def test_copies_are_faces_that_reach_the_threshold_of_strangers() -> None:
    made = matrices()
    real = np.concatenate([made.given.training.vectors, made.given.holdout.vectors])
    known = verify(real, np.repeat(np.arange(PEOPLE + HOLDOUT), 3), far=(1e-2, 1e-3)).at
    assert [one.far for one in done().result.main.copies] == [1e-2, 1e-3]
    for found in done().result.main.copies:
        cosine = known[found.far].threshold
        assert (found.cosine, found.false_accepts) == (cosine, known[found.far].false_accepts)
        assert found.strangers == 9 * (PEOPLE + HOLDOUT) * (PEOPLE + HOLDOUT - 1) // 2
        assert found.resolution == "resolved"
        ours, others = (side.max(axis=1) >= cosine for side in (made.trained, made.held))
        assert (found.copies.numerator, found.copies.denominator) == (int(ours.sum()), FACES)
        assert found.holdout == int(others.sum())
        reached = (made.held.reshape(FACES, HOLDOUT, 3) >= cosine).any(axis=2).sum(axis=1)
        expected = reach_chance(reached[others].astype(float), HOLDOUT, PEOPLE).sum()
        assert found.expected == pytest.approx(expected)
        assert found.excess.value == pytest.approx((ours.sum() - expected) / FACES)
        assert found.excess.low <= found.excess.value <= found.excess.high
        both = np.concatenate([made.trained, made.held], axis=1)
        whose = np.bincount(both.argmax(axis=1)[both.max(axis=1) >= cosine] // 3, minlength=PEOPLE + HOLDOUT)
        test = permutation_test(whose, PEOPLE, int(whose[:PEOPLE].sum()))
        assert found.test.p == pytest.approx(test.p)
        assert found.test.exact
        bound = wilson(int(ours.sum()), FACES)
        assert (found.copies.low, found.copies.high) == (bound.low, bound.high)


def test_a_training_set_that_is_larger_than_the_holdout_is_brought_to_its_size() -> None:
    given = sets(5, people=60, holdout=20)
    (found,) = release(given.synthetic, given.training, given.holdout, plan=Plan(far=(1e-2,))).result.main.copies
    s, t, h = (side.unit().vectors.astype(np.float64) for side in (given.synthetic, given.training, given.holdout))
    ours, others = (s @ t.T).reshape(FACES, 60, 3), (s @ h.T).max(axis=1) >= found.cosine
    reached = (ours >= found.cosine).any(axis=2).sum(axis=1)
    # With 20 of the 60 training people so many faces reach somebody; what the holdout's 20 reach grows alike.
    fewer = reach_chance(reached[reached > 0].astype(float), 60, 20).sum()
    assert found.expected == pytest.approx(others.sum() * (reached > 0).sum() / fewer)


def test_faces_that_name_a_training_person_are_compared_with_the_others_alone() -> None:
    given = sets(0, people=12, holdout=40)
    names = [given.training.names[number % 12] for number in range(FACES)]
    vectors = given.synthetic.vectors.copy()
    vectors[:24] = given.training.vectors[np.arange(24) % 12 * 3] + 0.1 * vectors[:24]
    named = EmbeddingSet.from_arrays(vectors, names, ids=given.synthetic.ids, source="synthetic")
    found = release(named, given.training, given.holdout, named=True, plan=Plan(far=(1e-2,), k=(1, 3)))
    t, h, s = (side.unit().vectors.astype(np.float64) for side in (given.training, given.holdout, named))
    cosines = (s @ t.T).reshape(FACES, 12, 3)
    own = np.arange(FACES) % 12
    cosines[np.arange(FACES), own] = -2
    near, far = cosines.reshape(FACES, -1).max(axis=1), (s @ h.T).max(axis=1)
    risky = found.result.main.riskiest
    order = [row for row in np.argsort(far - near)[:20] if near[row] > far[row]]
    assert [one.id for one in risky] == [named.ids[row] for row in order]
    (copies,) = found.result.main.copies
    assert copies.copies.numerator == int((near >= copies.cosine).sum())
    assert found.result.synthetic.people == 12
    assert any(one.about == "own identity" and one.severity == "note" for one in found.result.findings)
    assert {(one.pictures, one.k) for one in found.result.retrieval} == {("any", 1), ("any", 3)}
    assert {one.identities for one in found.result.retrieval} == {10, 12}
    full = s @ t.T
    asked = np.repeat(np.arange(12), 3)
    first = full.argmax(axis=0)
    hits = int((own[first] == asked).sum())
    (one,) = [risk for risk in found.result.retrieval if (risk.k, risk.identities) == (1, 12)]
    assert (one.share.numerator, one.share.denominator, one.released) == (hits, 36, FACES)
    assert one.chance == pytest.approx(1 / 12)
    assert one.share.identities == 12


def test_nothing_found_has_the_bound_of_nothing_found() -> None:
    given = sets(0, seed=4)
    found = release(given.synthetic, given.training, given.holdout, plan=Plan(far=(1e-6,), k=(1,))).result
    exposed = found.exposure.exposed
    assert exposed is not None
    assert (exposed.numerator, exposed.low, exposed.high, exposed.level) == (0, 0.0, zero_bound(PEOPLE), 0.95)


def test_facts_of_the_sets_and_the_check_of_the_holdout() -> None:
    made, result = matrices().given, done().result
    for facts, side, people in (
        (result.synthetic, made.synthetic, None),
        (result.training, made.training, PEOPLE),
        (result.holdout, made.holdout, HOLDOUT),
    ):
        assert (facts.name, facts.rows, facts.people, facts.clustered) == (side.source, len(side.ids), people, False)
        assert (facts.dim, facts.encoder, facts.weights_sha256, facts.notes) == (64, None, None, [])
        assert facts.sha256 == faces_of(side).sha256()
    first = [side.unit().vectors[::3] for side in (made.training, made.holdout)]
    expected = exchangeability(*first)
    assert expected is not None
    found = result.exchangeable
    assert found is not None
    assert (found.auc, found.limit, found.people, found.holds) == (expected.auc, expected.limit, PEOPLE, True)
    assert (result.paper, result.retrieval, result.fused) == ([], [], None)
    assert result.not_measured == ["retrieval risk: synthetic rows name no training person"]
    assert [(one.severity, one.about) for one in result.findings] == [("note", "source"), ("note", "holdout")]
    assert "not testable" in result.findings[0].text
    assert "before 7 are nearer than all of them" in result.findings[1].text
    assert "with 300 holdout people nobody can be listed" in result.findings[1].text


def test_the_papers_score_is_that_of_the_same_pictures() -> None:
    given = sets(0, people=20, holdout=30)
    sides = {
        name: faces_of(getattr(given, name), labelled=name != "synthetic")
        for name in ("synthetic", "training", "holdout")
    }
    plan = Plan(far=(1e-2,), k=(1,), paper=True, seed=3)
    found = measure_release([View("face", **sides)], plan).result.paper
    units = PaperSet(*(getattr(given, name).unit().vectors for name in ("training", "synthetic", "holdout")))
    expected = paper_score({"face": units}, given.training.identities, given.holdout.identities, seed=3)
    assert found == expected
    assert measure_release([View("face", **sides)], replace(plan, paper=False)).result.paper == []


def test_training_people_with_fewer_pictures_than_holdout_people_are_measured_too() -> None:
    """One picture each, three in the holdout: one picture of everybody is compared."""
    given = sets(25)
    first = given.training.take(np.arange(0, 3 * PEOPLE, 3))
    found = release(given.synthetic, first, given.holdout, plan=PLAN).result
    assert found.main.enrichment is not None
    assert found.main.enrichment.nearest == 10
    assert found.main.enrichment.p < 1e-4
    assert found.exposure.listed >= 25
