"""If this fails, intervals come from the wrong replicates: wrong weights, wrong thresholds or wrong accepts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.metrics import (
    ImpostorTail,
    Scheme,
    accepts_by_identity,
    allowed_accepts,
    identity_weights,
    just_above,
    tar_replicates,
    threshold_allowing,
    threshold_replicates,
)
from unface.metrics import bootstrap as bootstrap_module

PATCHED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
FARS = st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.3, 0.5])


def complete_tail(seed: int, *, seeds: int = 1, tied: bool = False) -> ImpostorTail:
    """Every impostor pair of a few identities with unequal numbers of images, pooled over some seeds."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 4, size=(seeds, int(rng.integers(3, 7))))
    images[:, :2] += 1
    sides = []
    for counts in images:
        owners = np.repeat(np.arange(len(counts)), counts)
        i, j = np.triu_indices(len(owners), 1)
        sides.append(np.stack([owners[i], owners[j]])[:, owners[i] != owners[j]])
    first, second = np.concatenate(sides, axis=1)
    swap = rng.random(len(first)) < 0.5
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    scores = (rng.integers(0, 4, size=len(first)) if tied else rng.normal(size=len(first))).astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    return ImpostorTail(scores[order], first[order], second[order], images, -np.inf)


def slow_threshold(tail: ImpostorTail, far: float, weights: NDArray[np.float64]) -> float:
    """The smallest threshold whose weighted accepts fit, by trying each score from the lowest."""
    products = weights[tail.first] * weights[tail.second]
    candidates = [just_above(np.float32(-np.inf)), *(just_above(score) for score in np.unique(tail.scores))]
    budget = far * products.sum() * (1 + 1e-12)
    return next(each for each in candidates if products[tail.scores >= each].sum() <= budget)


@given(st.integers(0, 2**32), st.booleans(), FARS)
def test_equal_weights_give_the_plain_threshold(seed: int, tied: bool, far: float) -> None:
    tail = complete_tail(seed, tied=tied)
    allowed = allowed_accepts(far, len(tail.scores))
    thresholds = threshold_replicates(tail, far, np.ones((3, tail.images.shape[1])))
    assert thresholds.dtype == np.float64
    assert thresholds.tolist() == [threshold_allowing(tail.scores, allowed)] * 3


@given(seed=st.integers(0, 2**32), seeds=st.integers(1, 3), tied=st.booleans(), far=FARS, chunk=st.integers(1, 9))
@PATCHED
def test_weighted_thresholds_are_those_of_trying_every_score(
    *, seed: int, seeds: int, tied: bool, far: float, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap_module, "_CHUNK", chunk)
    tail = complete_tail(seed, seeds=seeds, tied=tied)
    weights = np.random.default_rng(seed).integers(0, 5, size=(8, tail.images.shape[1])) / 2.0
    thresholds = threshold_replicates(tail, far, weights)
    assert thresholds.tolist() == [slow_threshold(tail, far, row) for row in weights]


def test_a_tail_without_a_pair_stops_at_its_floor() -> None:
    none = np.empty(0, np.int64)
    tail = ImpostorTail(np.empty(0, np.float32), none, none, np.full((1, 3), 2), floor=0.5)
    assert threshold_replicates(tail, 0.01, np.ones((2, 3))).tolist() == [just_above(np.float32(0.5))] * 2


def test_a_replicate_that_needs_more_than_is_listed_stops_at_the_floor() -> None:
    tail = ImpostorTail(
        np.array([0.9, 0.8], np.float32), np.array([0, 0]), np.array([1, 2]), np.full((1, 9), 3), floor=0.5
    )
    weights = np.ones((1, 9))
    weights[0, 0] = 0  # neither listed pair weighs anything
    assert threshold_replicates(tail, 0.01, weights)[0] == pytest.approx(just_above(np.float32(0.5)))


def test_the_last_listed_pair_counts_with_its_own_weight() -> None:
    tail = ImpostorTail(
        np.array([0.9, 0.8], np.float32), np.array([0, 2]), np.array([1, 3]), np.ones((1, 4)), floor=0.5
    )
    weights = np.array([[0.0, 1, 1, 1]])  # 3 pairs are left, of which only the last listed one has a score above 0.5
    assert threshold_replicates(tail, 0.3, weights).tolist() == [just_above(np.float32(0.8))]
    assert threshold_replicates(tail, 0.4, weights).tolist() == [just_above(np.float32(0.5))]


def test_a_long_list_is_followed_as_far_as_a_replicate_needs() -> None:
    scores = np.linspace(1, 0, 5000).astype(np.float32)
    first = np.repeat([0, 1], 2500)  # the first half of the list belongs to somebody a replicate leaves out
    tail = ImpostorTail(scores, first, np.full(5000, 2), np.full((1, 4), 50), floor=-1.0)
    left_out, plain = threshold_replicates(tail, 0.01, np.array([[0.0, 1, 1, 1], [1.0, 1, 1, 1]]))
    assert plain == just_above(scores[150])
    assert left_out == just_above(scores[slow_position(tail, 0.01)])


def slow_position(tail: ImpostorTail, far: float) -> int:
    """How many pairs the replicate without identity 0 accepts, one after the other."""
    weights = np.ones(4)
    weights[0] = 0
    spent = np.cumsum(weights[tail.first] * weights[tail.second])
    return int(np.count_nonzero(spent <= far * tail.pairs(weights[None])[0]))


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_weighted_pairs_are_summed_over_all_pairs_of_all_seeds(seed: int, seeds: int) -> None:
    tail = complete_tail(seed, seeds=seeds)
    weights = np.random.default_rng(seed).random((5, tail.images.shape[1]))
    slow = [(row[tail.first] * row[tail.second]).sum() for row in weights]
    np.testing.assert_allclose(tail.pairs(weights), slow, rtol=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans())
def test_accepts_are_counted_for_each_identity_and_threshold(seed: int, pairs: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    identities, scores = rng.integers(0, 5, size=pairs), rng.integers(0, 4, size=pairs).astype(np.float32)
    thresholds = rng.choice([-np.inf, 0, 1, just_above(np.float32(1)), 2, 3, np.inf], size=6)
    weights = rng.random(pairs) if weighted else None
    each = np.ones(pairs) if weights is None else weights
    slow = [[each[(identities == who) & (scores >= at)].sum() for at in thresholds] for who in range(6)]
    accepts = accepts_by_identity(identities, scores, thresholds, 6, weights)
    assert accepts.dtype == np.float64
    np.testing.assert_allclose(accepts, slow, rtol=1e-12)


@given(st.integers(0, 2**32), st.booleans())
def test_tar_replicates_are_weighted_accepts_over_weighted_pairs(seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    identities, scores = rng.integers(0, 5, size=40), rng.normal(size=40).astype(np.float32)
    weights, thresholds = rng.random((7, 5)), rng.normal(size=7)
    pair_weights = rng.random(40) if weighted else None
    each = weights[:, identities] * (1 if pair_weights is None else pair_weights)
    slow = [row[scores >= at].sum() / row.sum() for row, at in zip(each, thresholds, strict=True)]
    found = tar_replicates(identities, scores, thresholds, weights, pair_weights)
    np.testing.assert_allclose(found, slow, rtol=1e-12)


def test_an_identity_without_a_mated_pair_changes_no_replicate() -> None:
    identities, scores = np.array([0, 0, 1]), np.array([3, 1, 2], np.float32)
    found = tar_replicates(identities, scores, np.full(2, 2.0), np.array([[1.0, 1, 1], [2, 0, 2]]))
    assert found.tolist() == [2 / 3, 1 / 2]


def test_a_replicate_without_anyone_in_it_accepts_nothing() -> None:
    found = tar_replicates(np.array([0]), np.array([1], np.float32), np.array([0.0]), np.zeros((1, 1)))
    assert found.tolist() == [0.0]


@pytest.mark.parametrize("scheme", list(Scheme))
def test_weights_have_mean_and_variance_one(scheme: Scheme) -> None:
    weights = identity_weights(scheme, 200, 500, seed=0, role="test")
    assert weights.shape == (500, 200)
    assert weights.mean() == pytest.approx(1, abs=5 / np.sqrt(weights.size))
    assert weights.var() == pytest.approx(1, abs=0.03)
    assert (weights >= 0).all()


def test_multinomial_weights_redraw_as_many_identities_as_there_are() -> None:
    weights = identity_weights(Scheme.MULTINOMIAL, 37, 100, seed=0, role="test")
    assert set(weights.sum(axis=1)) == {37.0}


def test_double_or_nothing_weights_are_double_or_nothing() -> None:
    assert set(identity_weights(Scheme.DOUBLE_OR_NOTHING, 37, 100, seed=0, role="test").ravel()) == {0.0, 2.0}


def test_what_the_first_half_doubles_the_second_leaves_out() -> None:
    weights = identity_weights(Scheme.DOUBLE_OR_NOTHING, 37, 100, seed=0, role="test")
    np.testing.assert_array_equal(weights[:50] + weights[50:], np.full((50, 37), 2.0))


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_seed_and_a_role_name_the_weights(scheme: Scheme) -> None:
    weights = identity_weights(scheme, 20, 30, seed=1, role="test")
    np.testing.assert_array_equal(weights, identity_weights(scheme, 20, 30, seed=1, role="test"))
    assert not np.array_equal(weights, identity_weights(scheme, 20, 30, seed=1, role="calibrate"))
    assert not np.array_equal(weights, identity_weights(scheme, 20, 30, seed=2, role="test"))


def test_the_weights_of_a_seed_never_change() -> None:
    """Golden values: weights that move between versions would move every interval of an audit made again."""
    mirrored = identity_weights(Scheme.DOUBLE_OR_NOTHING, 8, 4, seed=0, role="test")
    assert mirrored[:2].tolist() == [[0, 0, 0, 0, 0, 2, 2, 0], [0, 0, 2, 0, 2, 0, 2, 0]]
    drawn = identity_weights(Scheme.MULTINOMIAL, 8, 2, seed=0, role="test")
    assert drawn.tolist() == [[0, 1, 3, 0, 1, 1, 2, 0], [2, 1, 1, 1, 1, 1, 0, 1]]


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("identities", [4, 5, 9])
def test_every_draw_leaves_an_impostor_pair(scheme: Scheme, identities: int) -> None:
    weights = identity_weights(scheme, identities, 400, seed=0, role="calibrate")
    assert weights.shape == (400, identities)
    assert np.count_nonzero(weights, axis=1).min() >= 2


def test_a_multinomial_draw_may_keep_everyone() -> None:
    weights = identity_weights(Scheme.MULTINOMIAL, 4, 4000, seed=0, role="test")
    everyone = np.count_nonzero((weights > 0).all(axis=1)) / 4000
    assert everyone == pytest.approx(24 / 252, abs=0.02)  # 4! of the 4⁴ draws, less the 4 that leave one identity


@pytest.mark.parametrize("scheme", list(Scheme))
def test_three_identities_are_drawn_though_no_two_mirrors_both_have_a_pair(scheme: Scheme) -> None:
    assert identity_weights(scheme, 3, 10, seed=0, role="test").shape == (10, 3)
