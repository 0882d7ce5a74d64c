"""If these fail, people who have more pictures look exposed, exposure is hidden, or a clean set is advised against."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest

from unface.data import EmbeddingSet
from unface.metrics import wilson, zero_bound
from unface.release import enrichment, measure_membership, permutation_test, person_scores, separation
from unface.release.copies import SyntheticPeople
from unface.release.draws import DRAWS, compared_pictures, equal_draws, over_draws
from unface.release.exchangeable import exchangeability, people_needed
from unface.release.overall import nearness, overall_test
from unface.release.run import Plan, release
from unface.result.release import ReleaseResult
from unface.seeds import stream

DIM, TRAINING, HOLDOUT, FACES = 64, 60, 120, 200
Counts = NDArray[np.int64]


def drawn(seed: int, training: Counts, holdout: Counts, *, planted: int = 0, each: int = 1) -> ReleaseResult:
    """Gaussian people with so many pictures; synthetic people of ``each`` faces, of whom the first copy a picture."""
    rng = stream(seed, "equal pictures")

    def pictures(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        whose = np.repeat(np.arange(len(counts)), counts)
        return rng.standard_normal((len(counts), DIM))[whose] + 0.6 * rng.standard_normal((len(whose), DIM)), whose

    def named(side: tuple[NDArray[np.float64], NDArray[np.int64]], name: str) -> EmbeddingSet:
        people = [f"{name}{person:04d}" for person in side[1]]
        ids = [f"{name} {row}" for row in range(len(people))]
        return EmbeddingSet.from_arrays(side[0].astype(np.float32), people, ids=ids, source=name)

    real, others, synthetic = pictures(training), pictures(holdout), pictures(np.full(FACES // each, each))
    for person in range(planted):
        rows = np.flatnonzero(real[1] == person)
        faces = synthetic[1] == person
        synthetic[0][faces] = real[0][rng.choice(rows)] + 0.1 * rng.standard_normal((int(faces.sum()), DIM))
    sets = (named(side, name) for side, name in ((synthetic, "s"), (real, "t"), (others, "h")))
    return release(*sets, plan=Plan(far=(1e-3, 1e-4), k=(1,), seed=seed)).result


def same(pictures: int, people: int) -> Counts:
    return np.full(people, pictures)


def mixed(seed: int, most: int, people: int) -> Counts:
    return stream(seed, "mixed").integers(1, most + 1, people)


@pytest.mark.parametrize(("ours", "others"), [(5, 2), (2, 5), (9, 1)])
def test_more_pictures_of_each_person_accuse_no_clean_set_and_hide_nothing(ours: int, others: int) -> None:
    misses = 0
    for seed in range(4):
        clean = drawn(seed, same(ours, TRAINING), same(others, HOLDOUT))
        assert clean.decision == "no evidence", clean.verdict
        member, auc = clean.main.membership, clean.main.separation.auc
        assert member.null == pytest.approx(1 / 3)
        misses += not member.share.low <= 1 / 3 <= member.share.high
        misses += not auc.low <= 0.5 <= auc.high
        misses += sum(not one.excess.low <= 0 <= one.excess.high for one in clean.main.copies)
    assert misses <= 3, "of 16 intervals of 95 %"
    planted = drawn(0, same(ours, TRAINING), same(others, HOLDOUT), planted=30)
    assert planted.verdict.startswith("Do not publish")
    assert planted.main.copies[-1].excess.low > 0
    assert planted.main.copies[-1].excess.value == pytest.approx(0.15, abs=0.05)


def test_any_numbers_of_pictures_leave_the_labels_exchangeable() -> None:
    p = []
    for seed in range(12):
        found = drawn(seed, mixed(seed, 9, TRAINING), mixed(seed + 100, 3, HOLDOUT), each=5)
        assert not found.verdict.startswith("Do not publish")
        assert found.overall is not None
        p.append(found.overall.p)
    assert np.mean(np.array(p) < 0.5) < 0.95
    few = drawn(0, same(1, TRAINING), same(3, HOLDOUT), planted=30)
    assert few.main.separation.auc.low > 0.5, "three pictures are nearer than one: that hid the copies"
    assert few.verdict.startswith("Do not publish")


def test_as_many_pictures_are_compared_as_both_sides_have() -> None:
    assert compared_pictures(same(5, 9), same(2, 7)) == 2
    assert compared_pictures(same(1, 9), same(3, 7)) == 1
    assert compared_pictures(np.array([1, 1, 1, 9]), same(9, 4)) == 1, "a quarter of the people is too few"
    assert compared_pictures(np.array([1, 4, 4, 4]), same(9, 4)) == 4
    ours, others = np.repeat([0, 1, 2, 3], [5, 1, 3, 2]), np.repeat([0, 1, 2], [2, 2, 4])
    draws = equal_draws(ours, others, seed=3)
    assert len(draws) == DRAWS
    for draw in draws:
        assert draw.most == 2, "√2 · 3/4 is more than 1 and more than √3 / 2"
        assert np.bincount(ours[draw.rows[0]]).tolist() == [2, 1, 2, 2]
        assert np.bincount(others[draw.rows[1]]).tolist() == [2, 2, 2]
        assert draw.alike.tolist() == [2, 1, 2, 2, 2, 2, 2]
        for rows in draw.rows:
            assert (np.diff(rows) > 0).all()
    assert len({tuple(draw.rows[0]) for draw in draws}) > 1
    (whole,) = equal_draws(np.repeat([0, 1], 3), np.repeat([0, 1, 2], 3), seed=3)
    assert [len(rows) for rows in whole.rows] == [6, 9]
    # The first draw is the one that the list of people is made of.
    scores = stream(1, "scores").standard_normal(len(ours)).astype(np.float32)
    best = person_scores(scores, ours, 4, seed=3, side="training").capped(2)
    assert best.tolist() == [scores[draws[0].rows[0]][ours[draws[0].rows[0]] == person].max() for person in range(4)]


def test_p_values_of_several_draws_make_one() -> None:
    assert over_draws([0.2]) == 0.2
    assert over_draws([0.001, 0.004, 0.9]) == 0.008
    assert over_draws([0.6, 0.7, 0.9]) == 1.0


def test_labels_are_exchanged_among_people_with_as_many_pictures_alone() -> None:
    # Training people first: 0 and 1; people 0 and 3 have one picture drawn, the others two.
    counts, alike = np.array([3, 1, 2, 0, 5]), np.array([1, 2, 2, 1, 2])
    labels = [(a, b) for a in (0, 3) for b in (1, 2, 4)]
    for observed in range(10):
        expected = np.mean([counts[list(pair)].sum() >= observed for pair in labels])
        assert permutation_test(counts, 2, observed, alike=alike).p == pytest.approx(expected)
    found = measure_membership(np.repeat(np.arange(5), counts), 2, 3, alike=alike)
    assert found.null == pytest.approx((3 / 2 + (1 + 2 + 5) / 3) / 11)
    twice = measure_membership(np.stack([np.repeat(np.arange(5), counts)] * 2), 2, 3, alike=alike)
    assert (twice.share.numerator, twice.share.denominator) == (8, 22)
    assert (twice.share.low, twice.share.high) == (found.share.low, found.share.high), "draws are no further faces"


def test_the_share_in_training_varies_as_people_of_each_side_do() -> None:
    """How many people a side has is given, and no chance."""
    counts = np.concatenate([np.repeat([0, 8], 40), np.repeat([0, 8], 80)])
    found = measure_membership(np.repeat(np.arange(240), counts), 80, 160).share
    assert found.value == pytest.approx(1 / 3)
    # A / (A + B) of sums over 80 and 160 people, whose counts have a variance of 16.
    variance = ((2 / 3) ** 2 * 80 + (1 / 3) ** 2 * 160) * 16 / 960**2
    expected = wilson(2 / 9 / variance / 3, 2 / 9 / variance)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=0.1)


def test_random_labels_of_a_group_are_those_of_its_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.release.membership._MOST_CELLS", 0)
    counts, alike = np.array([3, 1, 2, 0, 5, 0]), np.array([1, 2, 2, 1, 2, 2])
    labels = [(a, b) for a in (0, 3) for b in (1, 2, 4, 5)]
    for observed in (3, 5, 8):
        expected = np.mean([counts[list(pair)].sum() >= observed for pair in labels])
        assert permutation_test(counts, 2, observed, alike=alike).p == pytest.approx(expected, abs=0.02)


def test_the_overall_test_is_that_of_all_labellings() -> None:
    """The strongest of two kinds with one question each, for all 20 ways to deal three labels among six people."""
    kinds = [np.array([[4.0, 3, 0, 1, 0, 0]]), np.array([[0.0, 1, 2, 0, 0, 1]])]
    every = list(combinations(range(6), 3))
    sums = np.array([[kind[0, list(chosen)].sum() for kind in kinds] for chosen in every])
    ranks = (sums[:, None] <= sums).sum(axis=1)  # labellings that are at least as strong
    strongest = ranks.min(axis=1)
    expected = np.mean(strongest <= strongest[every.index((0, 1, 2))])
    found = overall_test(kinds, 3, np.zeros(6, np.int64), seed=1)
    assert found.p == pytest.approx(expected, abs=0.02)
    assert (found.exact, found.permutations) == (False, 9_999)
    again = overall_test([np.concatenate([kinds[0]] * 3)], 3, np.zeros(6, np.int64), seed=1)
    assert again.p == pytest.approx(np.mean(sums[:, 0] >= 7), abs=0.02), "one question asked three times is one"
    assert overall_test([np.zeros((1, 6))], 3, np.zeros(6, np.int64)).p == 1.0, "nothing was counted"
    assert overall_test(kinds, 3, np.array([1, 1, 1, 2, 2, 2])).p == 1.0, "no label can be exchanged"


def test_the_overall_test_holds_its_level_and_sees_few_who_stand_out() -> None:
    rng = stream(7, "overall")
    p, seen = [], 0
    for repeat in range(150):
        scores = rng.standard_t(4, 120)
        p.append(overall_test([nearness(scores)], 40, np.zeros(120, np.int64), seed=repeat).p)
        scores[:6] += 12
        seen += overall_test([nearness(scores)], 40, np.zeros(120, np.int64), seed=repeat).p < 0.01
    assert kstest(p, "uniform").pvalue > 0.01
    assert seen >= 140
    assert nearness(np.array([1.0, 1.0, 1.0, 3.0]))[:3, 3].tolist() == [1, 1, 1], "most are equal"


def test_a_list_that_chance_explains_advises_against_nothing() -> None:
    """One person of 20 is beyond all 400 of the holdout: enough for a list at 5 %, and one set in 21 is so."""
    found = drawn(3, same(1, 20), same(1, 400), planted=1)
    assert found.exposure.listed >= 1
    assert found.overall is not None
    assert found.overall.p > 0.01
    assert found.decision == "no evidence"
    assert "listed as exposed" in found.verdict
    few = found.model_copy(update={"overall": None})
    assert few.verdict.startswith("Do not publish"), "files of earlier versions have no such test"


def test_nobody_who_could_be_listed_is_not_measured() -> None:
    small = drawn(0, same(2, TRAINING), same(2, 12))
    assert small.exposure.exposed is None
    assert "too small to list anybody" in small.verdict
    assert not any(one.name == "people exposed" for one in small.readings())


def test_faces_of_one_synthetic_person_are_one_witness() -> None:
    codes = np.repeat(np.arange(30), 10)
    people, hits = SyntheticPeople(np.arange(300), codes, 300), codes < 3
    assert people.worth(hits) == pytest.approx(30, rel=0.05)
    assert people.worth(np.zeros(300, bool)) == pytest.approx(30)
    assert SyntheticPeople.each(300).worth(hits) == pytest.approx(300)
    # A sample of 100 of the faces sees groups of three or four, and knows that they are groups of ten.
    rng = stream(2, "sample")
    worth = []
    for _ in range(200):
        rows = np.sort(rng.permutation(300)[:100])
        worth.append(SyntheticPeople(rows, codes[rows], 300).worth(np.zeros(300, bool)))
    assert np.mean(worth) == pytest.approx(30, rel=0.1)


def test_the_share_of_copies_is_as_wide_as_synthetic_people_make_it() -> None:
    one, ten = (drawn(5, same(3, TRAINING), same(3, HOLDOUT), planted=20 // each, each=each) for each in (1, 10))
    wide, narrow = (found.main.copies[-1].copies for found in (ten, one))
    assert wide.identities == pytest.approx(20, abs=2)
    expected = wilson(narrow.value * 20, 20)
    assert wide.high - wide.low == pytest.approx(expected.high - expected.low, rel=0.25)
    alone = wilson(narrow.numerator, FACES)
    assert narrow.high - narrow.low == pytest.approx(alone.high - alone.low, rel=0.15)
    none = drawn(6, same(3, TRAINING), same(3, HOLDOUT), each=10).main.copies[-1]
    assert none.copies.high >= zero_bound(25), "one face by chance says nothing about people who were not drawn"


def test_a_holdout_is_testable_with_as_many_people_as_a_shift_takes() -> None:
    assert people_needed(16) < people_needed(64) < people_needed(256)
    assert people_needed(64) == pytest.approx(1_020, abs=60)
    rng = stream(9, "few")
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in rng.standard_normal((2, 60, 16))]
    found = exchangeability(unit[0].astype(np.float32), unit[1].astype(np.float32))
    assert found is not None
    assert found.holds
    assert found.needed > 500
    told = drawn(0, same(1, TRAINING), same(1, TRAINING))
    assert told.exchangeable is not None
    assert not told.exchangeable.testable
    assert any("not testable" in one.text for one in told.findings)


def test_enrichment_and_separation_compare_people_who_have_as_many_pictures() -> None:
    rng = stream(4, "as many")
    ours, others = np.repeat(np.arange(40), mixed(1, 6, 40)), np.repeat(np.arange(90), mixed(2, 3, 90))
    t = person_scores(rng.standard_normal(len(ours)).astype(np.float32), ours, 40, seed=0, side="training")
    h = person_scores(rng.standard_normal(len(others)).astype(np.float32), others, 90, seed=0, side="holdout")
    most = compared_pictures(t.pictures, h.pictures)
    compared = [int((side.pictures >= most).sum()) for side in (t, h)]
    found = enrichment(t, h)
    assert found.expected == pytest.approx(found.nearest * compared[0] / sum(compared))
    weights = np.ones((1, compared[0])), np.ones((1, compared[1]))
    assert separation(t, h, weights, 0.2).auc_replicates.tolist() == pytest.approx([separation(t, h, weights, 0.2).auc])
