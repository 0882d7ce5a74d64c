"""If this fails, accepted impostors are miscounted where there are too many to list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, NoisyScreen, crowds, everything, make_crowd, small_blocks
from unface.pairs import (
    Pairing,
    Screen,
    count_impostors,
    fine_histogram,
    impostors_above,
    impostors_between,
    neighbourhood,
    ranked_impostor,
    reaching_impostors,
)
from unface.pairs.histogram import Histogram


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
