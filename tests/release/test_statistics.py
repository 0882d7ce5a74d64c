"""If these fail, a release is judged by p-values that are not p-values, or people are listed who are not exposed."""

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2, false_discovery_control, hypergeom, kstest

from unface import EmbeddingSet
from unface.metrics import Resolution, Scheme, identity_weights
from unface.pairs import Nearest
from unface.release import (
    PersonScores,
    Reached,
    Threshold,
    benjamini_hochberg,
    count_copies,
    enrichment,
    exposed,
    fused,
    measure_membership,
    permutation_test,
    person_scores,
    reach_chance,
    separation,
)
from unface.release.faces import faces_of, people_reached
from unface.release.run import Plan, release
from unface.seeds import stream


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=9), st.data())
def test_the_exact_permutation_test_equals_enumeration(counts: list[int], data: st.DataObject) -> None:
    training = data.draw(st.integers(1, len(counts) - 1))
    observed = data.draw(st.integers(0, sum(counts)))
    sums = [sum(chosen) for chosen in combinations(counts, training)]
    expected = sum(one >= observed for one in sums) / comb(len(counts), training)
    found = permutation_test(np.array(counts), training, observed)
    assert found.exact
    assert found.p == pytest.approx(expected, abs=1e-12)


def test_faces_with_a_person_each_follow_the_hypergeometric_distribution() -> None:
    counts = np.array([1] * 40 + [0] * 160)
    assert permutation_test(counts, 100, 28).p == pytest.approx(hypergeom.sf(27, 200, 100, 40), rel=1e-12)


def test_a_large_case_falls_back_to_random_labels_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = stream(0, "counts").poisson(1.0, 300)
    observed = int(counts.sum() / 2) + 8
    exact = permutation_test(counts, 150, observed)
    monkeypatch.setattr("unface.release.membership._MOST_CELLS", 10)
    drawn = permutation_test(counts, 150, observed)
    assert (drawn.exact, drawn.permutations) == (False, 9_999)
    assert drawn.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p / 9_999))
    assert permutation_test(counts, 150, int(counts.sum()) + 1).p == 1 / 10_000, "never zero"


def test_membership_worked_by_hand() -> None:
    # Five faces: three nearest to training person 0, one to training person 1, one to holdout person 2 of 2 + 2 people.
    found = measure_membership(np.array([0, 0, 0, 1, 2]), 2, 2)
    assert (found.share.numerator, found.share.denominator, found.null) == (4, 5, 0.5)
    # Sums over two of (3, 1, 1, 0): 4, 4, 3, 2, 1, 1. Two of six reach 4.
    assert found.permuted.p == pytest.approx(2 / 6)
    assert found.share.low < 0.8 < found.share.high <= 1.0


def test_p_values_are_uniform_over_random_splits_when_nothing_is_planted() -> None:
    # Gaussian people, synthetic faces of nobody. 200 random splits into training and holdout. A discrete p-value lies
    # above uniform; p less a random share of its own step is exactly uniform.
    rng = stream(3, "uniform")
    people, each, dim = 120, 3, 24
    pictures = np.repeat(rng.standard_normal((people, dim)), each, axis=0) + 0.7 * rng.standard_normal(
        (people * each, dim)
    )
    synthetic = rng.standard_normal((150, dim))
    scores = (synthetic / np.linalg.norm(synthetic, axis=1)[:, None]) @ pictures.T / np.linalg.norm(pictures, axis=1)
    counts = np.bincount(scores.argmax(axis=1) // each, minlength=people)
    smooth = []
    for _ in range(200):
        order = rng.permutation(people)
        observed = int(counts[order[:60]].sum())
        p, above = (permutation_test(counts, 60, at).p for at in (observed, observed + 1))
        smooth.append(above + rng.random() * (p - above))
    assert kstest(smooth, "uniform").pvalue > 0.05
    assert kstest([p**2 for p in smooth], "uniform").pvalue < 0.001, "the test can tell a p-value that is off"


def gaussian_people(
    rng: np.random.Generator, people: int, pictures: NDArray[np.int64], planted: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The best synthetic similarity of each picture; more pictures, higher maxima. The first people are exposed."""
    owner = np.repeat(np.arange(people), pictures)
    scores = rng.standard_normal(people)[owner] * 0.5 + rng.standard_normal(len(owner))
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])[:planted]
    scores[first] += 8
    return scores.astype(np.float32), owner


@pytest.mark.parametrize("planted", [0, 40])
def test_at_most_five_percent_of_the_listed_are_false(planted: int) -> None:
    rng = stream(5, "fdr", planted)
    false, found = [], []
    for repeat in range(150):
        # Training people have more pictures than holdout people: an unadjusted maximum would list them for that.
        t, t_people = gaussian_people(rng, 100, rng.integers(3, 9, 100), planted)
        h, h_people = gaussian_people(rng, 300, rng.integers(1, 7, 300), 0)
        ours = person_scores(t, t_people, 100, seed=repeat, side="training")
        others = person_scores(h, h_people, 300, seed=repeat, side="holdout")
        listed = exposed(ours, others).listed
        false.append(listed[planted:].sum() / max(listed.sum(), 1))
        found.append(listed[:planted].mean() if planted else 0.0)
    spread = np.std(false) / np.sqrt(len(false))
    assert np.mean(false) <= 0.05 + 2 * spread
    assert not planted or np.mean(found) > 0.4, "a picture above the median number is drawn only sometimes"


def test_exposure_worked_by_hand() -> None:
    # Holdout people score 1 … 39 with one picture each; training people 40, 39, 20.5, 0.
    holdout = person_scores(np.arange(1, 40, dtype=np.float32), np.arange(39), 39, seed=0, side="holdout")
    ours = person_scores(np.array([40, 39, 20.5, 0], np.float32), np.arange(4), 4, seed=0, side="training")
    found = exposed(ours, holdout)
    np.testing.assert_allclose(found.p, [1 / 40, 2 / 40, 20 / 40, 1.0])
    # 0.05 · k / 4 allows 0.0125, 0.025, 0.0375, 0.05: one person of four must reach 0.0125 alone, and has 0.025.
    assert not found.listed.any()
    assert found.least == 2
    # With a second person beyond the whole holdout both reach 0.025 = 0.05 · 2 / 4.
    ours = person_scores(np.array([40, 41, 20.5, 0], np.float32), np.arange(4), 4, seed=0, side="training")
    assert exposed(ours, holdout).listed.tolist() == [True, True, False, False]


def test_enrichment_worked_by_hand() -> None:
    # The ten highest of 40 are 40 … 31. Training people have 40, 38, 36 and 1: three of the ten, of four in all.
    ours = person_scores(np.array([40, 38, 36, 1], np.float32), np.arange(4), 4, seed=0, side="training")
    rest = np.setdiff1d(np.arange(1, 41), [40, 38, 36, 1]).astype(np.float32)
    others = person_scores(rest, np.arange(36), 36, seed=0, side="holdout")
    found = enrichment(ours, others)
    assert (found.nearest, found.training, found.expected) == (10, 3, 1.0)
    assert found.p == pytest.approx((comb(10, 3) * 30 + comb(10, 4)) / comb(40, 4))


def test_enrichment_is_valid_with_nothing_planted_and_sees_fewer_people_than_the_list_can() -> None:
    rng = stream(6, "enrichment")
    p, seen, listed = [], 0, 0
    for repeat in range(200):
        for planted in (0, 6):
            t, t_people = gaussian_people(rng, 100, rng.integers(3, 9, 100), planted)
            h, h_people = gaussian_people(rng, 300, rng.integers(1, 7, 300), 0)
            ours = person_scores(t, t_people, 100, seed=repeat, side="training")
            others = person_scores(h, h_people, 300, seed=repeat, side="holdout")
            found = enrichment(ours, others).p
            if planted:
                seen += found < 0.05
                listed += exposed(ours, others).people > 0
            else:
                p.append(found)
    for level in (0.01, 0.05, 0.25):
        assert np.mean(np.array(p) <= level) <= level + 2 * np.sqrt(level * (1 - level) / 200)
    assert listed == 0, "this holdout needs seven people"
    assert seen > 50


def test_more_pictures_alone_expose_nobody() -> None:
    # Every training person has 8 pictures, every holdout person 2, all of one distribution.
    rng = stream(1, "pictures")
    t, h = rng.standard_normal(8 * 200).astype(np.float32), rng.standard_normal(2 * 400).astype(np.float32)
    ours = person_scores(t, np.repeat(np.arange(200), 8), 200, seed=0, side="training")
    others = person_scores(h, np.repeat(np.arange(400), 2), 400, seed=0, side="holdout")
    found = exposed(ours, others)
    assert found.pictures == 2
    assert kstest(found.p, "uniform").pvalue > 0.01
    weights = (np.ones((1, 200)), np.ones((1, 400)))
    assert separation(ours, others, weights, 0.01).auc == pytest.approx(0.5, abs=0.08)


@given(st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=40))
@settings(max_examples=50)
def test_benjamini_hochberg_lists_whom_scipy_lists(p: list[float]) -> None:
    values = np.array(p)
    adjusted = false_discovery_control(values)
    sure = np.abs(adjusted - 0.05) > 1e-9
    np.testing.assert_array_equal(benjamini_hochberg(values)[sure], (adjusted <= 0.05)[sure])


def test_fusion_is_valid_for_traits_that_are_copies_of_each_other_and_finds_what_several_show() -> None:
    rng = stream(2, "fusion")

    def sides(scores: NDArray[np.float64], side: str) -> PersonScores:
        return person_scores(scores.astype(np.float32), np.arange(len(scores)), len(scores), seed=0, side=side)

    t, h = rng.standard_normal(300), rng.standard_normal(300)
    alike = dict.fromkeys("abc", t), dict.fromkeys("abc", h)
    found = fused(*({name: sides(v, s) for name, v in one.items()} for one, s in zip(alike, "th", strict=True)))
    single = exposed(sides(t, "t"), sides(h, "h"))
    np.testing.assert_allclose(found.p, single.p, err_msg="three times the same trait is that trait")
    # One training person against a new holdout each time, traits half alike. Fisher's own table would take them for
    # independent witnesses, and be wrong.
    own, table = [], []
    for _ in range(300):
        both = rng.standard_normal((4, 100)) + 1.5 * rng.standard_normal(100)
        parts = [
            {str(n): sides(both[n][rows], side) for n in range(4)}
            for rows, side in ((slice(1), "t"), (slice(1, None), "h"))
        ]
        one = fused(*parts)
        own.append(float(one.p[0]))
        table.append(float(chi2.sf(2 * one.scores[0], 8)))
    assert kstest(own, "uniform").pvalue > 0.01
    assert kstest(table, "uniform").pvalue < 1e-4
    # A third of the people are a little exposed in each of four independent traits: no single trait lists many.
    shift = np.where(np.arange(300) < 100, 2.5, 0.0)
    t4 = {str(n): rng.standard_normal(300) + shift for n in range(4)}
    h4 = {str(n): rng.standard_normal(1500) for n in range(4)}
    joint = fused({n: sides(v, "t") for n, v in t4.items()}, {n: sides(v, "h") for n, v in h4.items()})
    alone = [exposed(sides(t4[n], "t"), sides(h4[n], "h")).people for n in t4]
    assert joint.people > max(alone) + 20


def test_separation_worked_by_hand() -> None:
    ours = person_scores(np.array([3, 1, 2], np.float32), np.arange(3), 3, seed=0, side="training")
    others = person_scores(np.array([0, 2], np.float32), np.arange(2), 2, seed=0, side="holdout")
    three, two = (identity_weights(Scheme.MULTINOMIAL, n, 50, 0, "test") for n in (3, 2))
    found = separation(ours, others, (three, two), 0.01)
    # Pairs won: 3 beats both, 1 beats 0, 2 beats 0 and ties with 2: (2 + 1 + 1.5) / 6.
    assert found.auc == pytest.approx(4.5 / 6)
    assert found.tpr is None, "two people do not resolve a false-positive rate of 1 %"
    # In falling order 3, {2, 2}, 1, 0: precision 1 at a third, 2/3 at two thirds, 3/4 at all.
    assert found.average_precision == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert len(found.auc_replicates) == 50
    even = separation(ours, others, (np.ones((1, 3)), np.ones((1, 2))), 0.01)
    assert even.auc_replicates[0] == pytest.approx(even.auc)


def test_copies_are_counted_beside_what_the_holdout_leads_to_expect() -> None:
    threshold = Threshold(1e-4, 0.5, 10_000, 1, Resolution.COARSE)
    # Four faces; two people on each side with one picture, of training people there is a second one.
    t = Nearest(np.array([0.9, 0.6, 0.2, 0.4], np.float32), np.array([0, 1, 0, 1]))
    drawn = Nearest(np.array([0.9, 0.6, 0.1, 0.4], np.float32), np.array([0, 1, 0, 1]))
    h = Nearest(np.array([0.1, 0.55, 0.1, 0.3], np.float32), np.array([0, 1, 0, 0]))
    training, holdout = (Reached(near, np.array([0, 1]), np.ones(2, np.int64)) for near in (drawn, h))
    found = count_copies(threshold, (t, h), [(training, holdout)])
    assert (found.training, found.holdout, found.expected) == (2, 1, 1.0), "one picture of each person is compared"
    assert found.excess.value == 1 / 4
    # Both faces that reach a real picture are nearest to training people: one of six ways to label gives both.
    assert found.permuted.p == pytest.approx(1 / 6)
    none = count_copies(Threshold(1e-4, 0.95, 10_000, 1, Resolution.COARSE), (t, h), [(training, holdout)])
    assert none.excess.value == 0.0
    assert none.excess.high == pytest.approx(1 - 0.05 ** (1 / 4)), "nothing found among four is not nothing there"
    # In one of two draws the second face is not reached: half of what is left is half of three, and grows back.
    missed = replace(training, nearest=Nearest(np.array([0.9, 0.2, 0.1, 0.4], np.float32), np.array([0, 1, 0, 1])))
    half = count_copies(threshold, (t, h), [(training, holdout), (missed, holdout)])
    assert half.expected == pytest.approx(1 / 1.5 * 2)
    assert half.excess.value == pytest.approx((2 - 4 / 3) / 4)
    assert half.permuted.p == pytest.approx(1.0), "twice the median of 1/6 and 5/6"


def test_a_face_that_reaches_several_people_of_a_larger_holdout_is_one_copy() -> None:
    # Four holdout people, two training people, one picture each. Faces reach 1, 2 and 3 of the four. Of the six
    # ways to draw two of four, 3 have the one, 5 have one of the two, 6 have one of the three.
    numbers = np.array([1.0, 2.0, 3.0])
    assert reach_chance(numbers, 4, 2).tolist() == pytest.approx([1 / 2, 5 / 6, 1.0])
    h = Nearest(np.array([0.9, 0.9, 0.9], np.float32), np.array([0, 1, 2]))
    t = Nearest(np.array([0.9, 0.9, 0.1], np.float32), np.array([0, 1, 1]))
    threshold = Threshold(1e-2, 0.5, 10_000, 1, Resolution.COARSE)
    training, others = Reached(t, np.arange(2), np.ones(2, np.int64)), np.ones(4, np.int64)
    found = count_copies(threshold, (t, h), [(training, Reached(h, np.arange(4), others, numbers[:, None]))])
    assert found.expected == pytest.approx(7 / 3), "the holdout's 3, halved, would be 1.5"
    assert found.excess.value == pytest.approx((2 - 7 / 3) / 3)
    # A face nobody counted is taken as the others are on average.
    numbers = np.array([[1.0], [2.0], [np.nan]])
    some = count_copies(threshold, (t, h), [(training, Reached(h, np.arange(4), others, numbers))])
    assert some.expected == pytest.approx(2)


def test_people_are_counted_once_however_many_pictures_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three people with two pictures each, by blocks of one picture and of all; the own person does not count."""
    angles = np.radians([0, 10, 20, 80, 40, 50])
    real = EmbeddingSet.from_arrays(np.stack([np.cos(angles), np.sin(angles)], axis=1), ["a", "a", "b", "b", "c", "c"])
    asked = np.array([[1, 0], [np.cos(np.pi / 4), np.sin(np.pi / 4)]], np.float32)
    for pairs in (1, 1000):
        monkeypatch.setattr("unface.release.faces._PAIRS_AT_ONCE", pairs)
        # Within 30°: of 0° the pictures at 0, 10 and 20; of 45° those at 20, 40 and 50.
        found = people_reached(faces_of(real), real.identities, asked, float(np.cos(np.radians(30))))
        assert found.sum(axis=1).tolist() == [2, 2]
        own = people_reached(
            faces_of(real), real.identities, asked, float(np.cos(np.radians(30))), own=np.array([0, -1])
        )
        assert own.sum(axis=1).tolist() == [1, 2]


@pytest.mark.parametrize(("people", "drawn"), [(7, 3), (6, 6), (5, 0)])
def test_the_chance_to_reach_anybody_drawn_is_that_of_all_draws(people: int, drawn: int) -> None:
    for reached in range(1, people + 1):
        draws = list(combinations(range(people), drawn))
        expected = sum(min(draw, default=people) < reached for draw in draws) / len(draws)
        assert reach_chance(np.array([float(reached)]), people, drawn)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("training", "holdout"), [(40, 400), (400, 40)])
def test_nothing_copied_is_no_excess_of_copies_at_a_loose_rate(training: int, holdout: int) -> None:
    """At FAR 1e-2 a face reaches several of 400 people: scaling the holdout made the excess 0.45, or −4.4."""
    excesses, lowest = [], []
    for seed in range(12):
        rng = stream(seed, "loose")
        drawn, ours, others = (
            EmbeddingSet.from_arrays(
                rng.normal(size=(rows, 16)), [f"{name}{n // each}" for n in range(rows)], source=name
            )
            for name, rows, each in (("drawn", 150, 1), ("training", 2 * training, 2), ("holdout", 2 * holdout, 2))
        )
        (copies,) = release(drawn, ours, others, plan=Plan(far=(1e-2,), seed=seed)).result.main.copies
        excesses.append(copies.excess.value)
        lowest.append(copies.excess.low)
    mean, error = np.mean(excesses), np.std(excesses) / np.sqrt(len(excesses))
    assert abs(mean) < 4 * error + 0.01, (mean, error)
    assert np.mean(np.array(lowest) > 0) <= 0.25, "an interval above nothing is rare"
