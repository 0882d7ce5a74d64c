"""If this fails, curves are drawn from the wrong counts, and passes over the pairs look in the wrong place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, crowds, everything, make_crowd, small_blocks
from unface.pairs import Histogram, bin_scores, impostor_histogram, open_screen, sample_impostors


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
