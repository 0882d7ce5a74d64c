"""If this fails, accepted impostors are miscounted where there are too many to list."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, NoisyScreen, crowds, everything, make_crowd, small_blocks
from unface.pairs import (
    Histogram,
    Mated,
    Pairing,
    Screen,
    all_mated,
    bin_scores,
    cosine_space,
    count_impostors,
    fine_histogram,
    impostor_histogram,
    impostors_above,
    impostors_between,
    mated_pairs,
    neighbourhood,
    open_screen,
    pair_up,
    ranked_impostor,
    reaching_impostors,
    sample_impostors,
)
from unface.pairs import mated as mated_module
from unface.pairs.pairing import Block


def screens(pairing: Pairing, seed: int) -> list[Screen]:
    return [small_blocks(pairing), NoisyScreen(pairing, 0.1 * pairing.space.bound, seed)]


@given(crowds(), st.data())
def test_as_many_impostors_reach_a_score_as_in_the_full_matrix_or_too_many(crowd: Crowd, data: st.DataObject) -> None:
    truth = everything(crowd)
    score, most = data.draw(st.sampled_from(truth.scores.tolist())), data.draw(st.integers(0, len(truth.impostor)))
    reaching = int(np.count_nonzero(truth.impostor >= score))
    for screen in screens(crowd.pairing, data.draw(st.integers(0, 2**32))):
        found = reaching_impostors(crowd.pairing, score, most, screen)
        assert found == (reaching if reaching <= most else None)


@given(crowds(), st.data())
def test_counts_are_those_of_the_full_matrix(crowd: Crowd, data: st.DataObject) -> None:
    pairing, truth = crowd.pairing, everything(crowd)
    drawn = data.draw(st.lists(st.sampled_from(truth.impostor.tolist()), min_size=1, max_size=4))
    thresholds = np.array([*drawn, np.nextafter(np.float32(drawn[0]), np.float32(np.inf)), -np.inf, np.inf])
    rows, scores = truth.rows[~truth.is_mated], truth.scores[~truth.is_mated]
    for screen in screens(pairing, data.draw(st.integers(0, 2**32))):
        accepts = count_impostors(pairing, thresholds, screen)
        assert accepts.by_identity.shape == (crowd.identities.max() + 1, len(thresholds))
        for column, threshold in enumerate(thresholds):
            accepted = rows[scores >= threshold]
            assert accepts.total[column] == len(accepted)
            takes_part = np.bincount(crowd.identities[accepted].ravel(), minlength=len(accepts.by_identity))
            np.testing.assert_array_equal(accepts.by_identity[:, column], takes_part)


@given(st.integers(0, 2**32), st.integers(2, 45))
def test_a_screen_that_errs_by_exactly_its_margin_is_corrected(seed: int, size: int) -> None:
    crowd = make_crowd(seed, "integers", size, "l2")  # integer scores, so that a margin of 1 is met to the last bit
    pairing, truth = crowd.pairing, everything(crowd).impostor
    screen = NoisyScreen(pairing, 1.0, seed)
    thresholds = np.unique(truth).astype(np.float64)
    counted = count_impostors(pairing, thresholds, screen)
    assert counted.total.tolist() == [np.count_nonzero(truth >= threshold) for threshold in thresholds]
    assert {str(counts.dtype) for counts in (counted.total, counted.by_identity)} == {"int64"}
    low, high = float(thresholds[len(thresholds) // 3]), float(thresholds[-1])
    above, scores, counts = impostors_between(pairing, low, high, screen)
    assert above == np.count_nonzero(truth >= high)
    np.testing.assert_array_equal(np.repeat(scores, counts), truth[(truth >= low) & (truth < high)])
    tail, count = impostors_above(pairing, low, screen, most=len(truth))
    np.testing.assert_array_equal(tail.scores, truth[truth >= low])
    assert count == len(tail)


def test_a_lying_margin_would_be_noticed() -> None:
    crowd = make_crowd(5, "continuous", 45)
    truth = everything(crowd).impostor
    lying = NoisyScreen(crowd.pairing, 0.2, 0)
    lying.margin = 0.0
    counted = count_impostors(crowd.pairing, truth[::40].astype(np.float64), lying).total
    assert not np.array_equal(counted, [np.count_nonzero(truth >= score) for score in truth[::40]])


@given(crowds(), st.data())
def test_the_impostor_of_a_rank_is_that_of_the_sorted_list(crowd: Crowd, data: st.DataObject) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    rank = data.draw(st.integers(0, len(truth) - 1))
    for screen in screens(pairing, data.draw(st.integers(0, 2**32))):
        score, higher = ranked_impostor(pairing, rank, screen)
        assert score == truth[rank]
        assert higher == np.count_nonzero(truth > score)


@pytest.mark.parametrize("kind", ["continuous", "integers", "duplicates", "scales"])
@pytest.mark.parametrize("score", ["cosine", "l2"])
def test_every_rank_of_a_larger_crowd_is_found_whatever_the_threads(kind: str, score: str) -> None:
    crowd = make_crowd(7, kind, 300, score)
    pairing, truth = crowd.pairing, everything(crowd).impostor
    for rank in np.linspace(0, len(truth) - 1, 12).astype(int):
        for threads in (1, 3):
            found, higher = ranked_impostor(pairing, int(rank), small_blocks(pairing, 64, 100), threads=threads)
            assert found == truth[rank]
            assert higher == np.count_nonzero(truth > found)


@given(crowds(), st.data())
def test_impostors_between_bounds_include_the_lower_and_not_the_upper(crowd: Crowd, data: st.DataObject) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    bounds = st.sampled_from([-np.inf, *truth.tolist(), np.inf])
    low, high = sorted([data.draw(bounds), data.draw(bounds)])
    for screen in screens(pairing, data.draw(st.integers(0, 2**32))):
        above, scores, counts = impostors_between(pairing, low, high, screen)
        assert above == np.count_nonzero(truth >= high)
        np.testing.assert_array_equal(np.repeat(scores, counts), truth[(truth >= low) & (truth < high)])
        assert len(np.unique(scores)) == len(scores)


def test_all_scores_equal_leaves_one_score_for_every_rank() -> None:
    crowd = Crowd(np.ones((30, 4), np.float32), np.arange(30) // 2)
    score = everything(crowd).impostor[0]
    for rank in (0, 200, 419):
        assert ranked_impostor(crowd.pairing, rank, small_blocks(crowd.pairing)) == (score, 0)


def test_a_neighbourhood_is_a_bin_wider_on_both_sides_and_open_at_the_ends() -> None:
    histogram = Histogram(0.0, 0.25, np.ones(4, np.int64))
    assert neighbourhood(histogram, 1, 0.125) == (-0.125, 0.875)
    assert neighbourhood(histogram, 0, 0.125) == (-np.inf, 0.625)
    assert neighbourhood(histogram, 3, 0.125) == (0.375, np.inf)


def test_a_fine_histogram_has_65536_bins_from_the_lowest_score_to_the_highest() -> None:
    crowd = make_crowd(7, "continuous", 60)
    truth = everything(crowd).impostor
    fine = fine_histogram(crowd.pairing, small_blocks(crowd.pairing))
    assert (len(fine.counts), fine.counts.sum()) == (65_536, len(truth))
    ends = fine.low, fine.low + 65_536 * fine.width
    assert ends == pytest.approx((truth[-1], truth[0]), abs=2 * crowd.space.float32_margin())


def test_a_fine_histogram_of_one_score_is_as_wide_as_the_screen_errs() -> None:
    crowd = Crowd(np.ones((6, 4), np.float32), np.arange(6))
    screen = small_blocks(crowd.pairing)
    assert fine_histogram(crowd.pairing, screen).width == pytest.approx(screen.margin / 65_536)


def integer_crowd(seed: int, size: int) -> Crowd:
    """Integer vectors and l2: every score is an integer that float32 holds exactly."""
    return make_crowd(seed, "integers", size, "l2")


@given(st.integers(0, 2**32), st.integers(2, 45), st.integers(-40, 0), st.integers(1, 50))
def test_integer_scores_are_counted_in_their_bins_exactly(seed: int, size: int, low: int, bins: int) -> None:
    crowd = integer_crowd(seed, size)
    truth = everything(crowd).impostor
    counted = impostor_histogram(crowd.pairing, small_blocks(crowd.pairing), low, low + bins, bins)
    by_hand = np.bincount(np.clip(truth - low, 0, bins - 1).astype(int), minlength=bins)
    np.testing.assert_array_equal(counted.counts, by_hand)
    np.testing.assert_array_equal(counted.edges, np.arange(low, low + bins))


@given(crowds())
def test_every_impostor_is_counted_within_the_margin_of_its_place(crowd: Crowd) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    screen, low, high = small_blocks(pairing), float(truth[-1]), float(truth[0])
    counted = impostor_histogram(pairing, screen, low, max(high, low + 1e-3), 64)
    assert counted.counts.sum() == len(truth)
    slack = screen.margin + 1e-5 * (high - low)
    at_least = [(truth >= edge + slack).sum() for edge in counted.edges[1:]]
    at_most = [(truth >= edge - slack).sum() for edge in counted.edges[1:]]
    assert (counted.at_least_edge()[1:] >= at_least).all()
    assert (counted.at_least_edge()[1:] <= at_most).all()


def test_counts_do_not_depend_on_threads_or_blocks() -> None:
    pairing = integer_crowd(0, 400).pairing
    plain = impostor_histogram(pairing, open_screen(pairing.space), -20, 0, 20, threads=1)
    cut_up = impostor_histogram(pairing, small_blocks(pairing, 32, 48), -20, 0, 20, threads=3)
    np.testing.assert_array_equal(plain.counts, cut_up.counts)
    assert plain.counts.dtype == np.int64


def test_outer_bins_take_what_lies_beyond_them() -> None:
    counted = bin_scores(np.array([-9, 0, 0.5, 1, 1.5, 2, 99], np.float32), 0.0, 1.0, 2)
    assert (counted.low, counted.width, counted.counts.tolist()) == (0.0, 1.0, [3, 4])
    assert counted.at_least_edge().tolist() == [7, 4]


def test_histograms_of_the_same_bins_add_up_and_others_do_not() -> None:
    one, two = Histogram(0.0, 1.0, np.array([1, 2])), Histogram(0.0, 1.0, np.array([10, 20]))
    both = one.add(two)
    assert (both.low, both.width, both.counts.tolist()) == (0.0, 1.0, [11, 22])
    longer = np.array([1, 2, 3])
    for other in (Histogram(0.5, 1.0, two.counts), Histogram(0.0, 2.0, two.counts), Histogram(0.0, 1.0, longer)):
        with pytest.raises(ValueError, match="histograms with different bins cannot be added"):
            one.add(other)


@given(crowds())
def test_a_sample_of_few_rows_is_every_impostor(crowd: Crowd) -> None:
    sample, truth = np.sort(sample_impostors(crowd.pairing))[::-1], everything(crowd).impostor
    assert len(sample) == len(truth)
    np.testing.assert_allclose(sample, truth, atol=2 * crowd.space.float32_margin(), rtol=0)


def test_a_sample_of_many_rows_is_bounded_and_reaches_from_end_to_end() -> None:
    angles = np.linspace(0, np.pi, 20_000)
    crowd = Crowd(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), np.arange(20_000))
    sample = sample_impostors(crowd.pairing)
    assert len(sample) == 1024 * 1023 // 2
    assert (sample.min(), sample.max()) == pytest.approx((-1, 1), abs=1e-4)


@pytest.mark.parametrize(("people", "sampled"), [(64, 64), (300, 64), (4000, 500)])
def test_a_sample_is_of_an_eighth_of_the_rows_but_of_sixty_four_at_least(people: int, sampled: int) -> None:
    crowd = Crowd(np.random.default_rng(0).normal(size=(people, 3)).astype(np.float32), np.arange(people))
    assert len(sample_impostors(crowd.pairing)) == sampled * (sampled - 1) // 2


def assert_is_every_mated_pair(mated: Mated, crowd: Crowd) -> None:
    truth = everything(crowd)
    assert len(mated) == len(truth.mated)
    assert {tuple(sorted(pair)) for pair in mated.rows.tolist()} == {
        (i, j) for i, j in truth.rows[truth.is_mated].tolist()
    }
    np.testing.assert_array_equal(mated.scores, truth.score_of(mated.rows))
    for side in (0, 1):
        np.testing.assert_array_equal(mated.identities, crowd.identities[mated.rows[:, side]])


@given(crowds())
def test_every_mated_pair_comes_once_with_its_score_and_identity(crowd: Crowd) -> None:
    assert_is_every_mated_pair(all_mated(crowd.pairing), crowd)


@given(crowd=crowds())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_chunks_cut_large_identities_without_losing_pairs(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mated_module, "_ROWS_AT_ONCE", 3)
    chunks = list(mated_pairs(crowd.pairing))
    assert_is_every_mated_pair(all_mated(crowd.pairing), crowd)
    largest = int(crowd.pairing.sizes.max())
    assert all(len(chunk) <= 3 * largest for chunk in chunks)


def test_a_mated_pair_scores_as_the_same_vectors_would_as_impostors() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 512)).astype(np.float32)
    space = cosine_space(np.vstack([vectors, vectors]))
    together = pair_up(space, np.repeat([0, 1], 40))
    mated = all_mated(together)
    inside = mated.rows[(mated.identities == 0)]
    as_impostors = together.space.exact(inside[:, 0], inside[:, 1] + 40)
    np.testing.assert_array_equal(mated.scores[mated.identities == 0], as_impostors)


def test_people_with_one_image_have_no_mated_pair() -> None:
    pairing = pair_up(cosine_space(np.eye(3)), np.array([4, 2, 9]))
    assert list(mated_pairs(pairing)) == []
    mated = all_mated(pairing)
    assert (len(mated), mated.identities.shape, mated.rows.shape) == (0, (0,), (0, 2))
    assert [str(part.dtype) for part in (mated.identities, mated.scores, mated.rows)] == ["int64", "float32", "int64"]


@given(crowds())
def test_mated_and_impostor_pairs_are_counted_as_the_full_matrix_has_them(crowd: Crowd) -> None:
    pairing, truth = crowd.pairing, everything(crowd)
    assert (pairing.mated, pairing.impostors) == (len(truth.mated), len(truth.impostor))


@given(crowds())
def test_sorting_keeps_rows_with_their_vectors_and_identities(crowd: Crowd) -> None:
    pairing = crowd.pairing
    assert (np.diff(pairing.identities) >= 0).all()
    assert sorted(pairing.rows) == list(range(len(crowd.vectors)))
    np.testing.assert_array_equal(pairing.identities, crowd.identities[pairing.rows])
    np.testing.assert_array_equal(pairing.space.left, crowd.space.left[pairing.rows])
    np.testing.assert_array_equal(pairing.space.right, crowd.space.right[pairing.rows])


@given(crowds(("cosine",)), st.integers(1, 50), st.integers(1, 50))
def test_blocks_hold_every_impostor_pair_once(crowd: Crowd, rows: int, columns: int) -> None:
    pairing = crowd.pairing
    seen = np.zeros((len(pairing), len(pairing)), np.int64)
    for block in pairing.blocks(rows, columns):
        mask = pairing.impostor_mask(block)
        seen[block.rows, block.columns] += 1 if mask is None else mask.astype(np.int64)
    differ = pairing.identities[:, None] != pairing.identities[None, :]
    np.testing.assert_array_equal(seen, np.triu(differ, 1))


def test_a_block_that_shares_no_identity_needs_no_mask() -> None:
    pairing = pair_up(cosine_space(np.eye(4)), np.array([0, 0, 3, 9]))
    assert pairing.impostor_mask(Block(slice(0, 2), slice(2, 4))) is None
    mask = pairing.impostor_mask(Block(slice(0, 2), slice(1, 4)))
    assert mask is not None
    assert mask.tolist() == [[False, True, True], [False, True, True]]


def test_rows_already_in_order_are_not_copied() -> None:
    space = cosine_space(np.eye(4, dtype=np.float32))
    assert pair_up(space, np.array([0, 0, 3, 9])).space is space


def test_a_space_with_one_side_for_both_keeps_one_when_its_rows_are_sorted() -> None:
    pairing = pair_up(cosine_space(np.eye(4)), np.array([9, 3, 0, 0], np.uint8))
    assert pairing.space.right is pairing.space.left
    assert pairing.identities.dtype == np.int64


@pytest.mark.parametrize("images", [[3], [1, 1, 1], [5, 1, 2]])
def test_pair_numbers_worked_by_hand(images: list[int]) -> None:
    identities = np.repeat(np.arange(len(images)), images)
    pairing = pair_up(cosine_space(np.ones((len(identities), 2), np.float32)), identities)
    by_hand = {(3,): (3, 0), (1, 1, 1): (0, 3), (5, 1, 2): (11, 17)}
    assert (pairing.mated, pairing.impostors) == by_hand[tuple(images)]
    assert list(pairing.sizes) == images


def test_pair_numbers_do_not_overflow() -> None:
    crowd = make_crowd(0, "continuous", 4)
    identities = np.zeros(100_000, np.int64)
    pairing = pair_up(crowd.space.take(np.zeros(100_000, np.int64)), identities)
    assert pairing.mated == 4_999_950_000


def test_rows_of_one_identity_keep_their_order() -> None:
    identities = np.random.default_rng(0).integers(0, 3, size=500)
    pairing = pair_up(cosine_space(np.ones((500, 2), np.float32)), identities)
    for code in range(3):
        assert pairing.rows[pairing.identities == code].tolist() == np.flatnonzero(identities == code).tolist()
