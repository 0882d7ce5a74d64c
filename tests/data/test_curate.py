"""If these fail, some identities weigh more than others, or a curated set cannot be made again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unface.data import Curation, EmbeddingSet, curate, usual_images


def with_sizes(sizes: list[int]) -> EmbeddingSet:
    names = [f"p{identity}" for identity, size in enumerate(sizes) for _ in range(size)]
    vectors = np.random.default_rng(0).standard_normal((len(names), 3), dtype=np.float32)
    return EmbeddingSet.from_arrays(vectors, names, source="faces.parquet")


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(1, 9), st.integers(0, 3))
def test_every_kept_identity_has_exactly_that_many_images(sizes: list[int], images: int, seed: int) -> None:
    enough = sum(size >= images for size in sizes)
    if enough < 2:
        return
    before = with_sizes(sizes)
    after, told = curate(before, images, seed)
    assert np.bincount(after.identities).tolist() == [images] * enough
    assert set(after.ids) <= set(before.ids)
    assert len(set(after.ids)) == len(after)
    assert told == Curation(images, enough, len(sizes) - enough, enough * images, sum(sizes) - enough * images)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(2, 9), st.integers(0, 3))
def test_with_a_cap_everybody_with_two_images_stays_and_nobody_brings_more(
    sizes: list[int], images: int, seed: int
) -> None:
    two = [size for size in sizes if size >= 2]
    if len(two) < 2:
        return
    before = with_sizes(sizes)
    order = [int(name[1:]) for name in before.names]  # sorted as text
    after, told = curate(before, images, seed, most=np.full(len(sizes), images))
    expected = [min(sizes[person], images) for person in order if sizes[person] >= 2]
    assert np.bincount(after.identities).tolist() == expected
    assert told == Curation(images, len(two), len(sizes) - len(two), sum(expected), sum(sizes) - sum(expected))


def test_a_cap_takes_the_images_that_the_same_exact_number_takes() -> None:
    before = with_sizes([20, 20, 7])
    exact, _ = curate(before, 5, 0)
    capped, _ = curate(before, 5, 0, most=np.full(3, 5))
    assert exact.sha256() == capped.sha256()


def test_rows_keep_their_order_and_their_identity() -> None:
    before = with_sizes([5, 6, 2])
    after, _ = curate(before, 3, seed=1)
    rows = after.ids.astype(int)
    assert rows.tolist() == sorted(rows)
    assert [after.names[code] for code in after.identities] == [before.names[before.identities[row]] for row in rows]
    assert np.array_equal(after.vectors, before.vectors[rows])


def test_the_same_seed_gives_the_same_images_and_another_others() -> None:
    before = with_sizes([20, 20, 20])
    assert curate(before, 5, 0)[0].sha256() == curate(before, 5, 0)[0].sha256()
    assert curate(before, 5, 0)[0].sha256() != curate(before, 5, 1)[0].sha256()


def test_every_image_has_the_same_chance() -> None:
    """2 of 8 images over 2,000 seeds: each is kept 500 times, give or take five standard deviations (97)."""
    before = with_sizes([8, 8])
    kept = np.zeros(16)
    for seed in range(2000):
        kept[curate(before, 2, seed)[0].ids.astype(int)] += 1
    assert np.all(np.abs(kept - 500) < 97)


def test_usual_images_is_the_lower_median_of_people_with_two_at_most_twenty() -> None:
    assert usual_images(with_sizes([1, 1, 1, 4, 9])) == 4
    assert usual_images(with_sizes([2, 4, 6, 9])) == 4
    assert usual_images(with_sizes([30, 40, 50])) == 20
    assert usual_images(with_sizes([30, 40, 50]), at_most=35) == 35


def with_bad_rows(good: list[int], bad: list[int]) -> EmbeddingSet:
    names = [f"p{row:02}" for row, numbers in enumerate(zip(good, bad, strict=True)) for _ in range(sum(numbers))]
    vectors = np.ones((len(names), 3), np.float32)
    ends = np.cumsum(np.add(good, bad))
    for end, lost in zip(ends, bad, strict=True):
        vectors[end - lost : end] = np.nan
    return EmbeddingSet.from_arrays(vectors, names, bad_rows="drop")


def test_one_bad_row_does_not_cost_a_person_ten_good_ones() -> None:
    found = with_bad_rows(good=[11] * 20 + [10], bad=[0] * 20 + [1])
    assert usual_images(found) == 10
    assert curate(found, usual_images(found), seed=0)[1].identities_dropped == 0


@pytest.mark.parametrize(
    ("good", "bad", "images"),
    [([11] * 20 + [5], [0] * 20 + [6], 11), ([4] * 20 + [3], [0] * 20 + [1], 4), ([11] * 20 + [10], [0] * 21, 11)],
    ids=["most of them bad", "few pictures", "nothing bad"],
)
def test_a_bad_row_does_not_cost_everybody_else_more_than_a_tenth(good: list[int], bad: list[int], images: int) -> None:
    assert usual_images(with_bad_rows(good, bad)) == images
