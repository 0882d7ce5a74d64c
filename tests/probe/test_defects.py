"""If these fail, one person under two names goes unseen, or two people are said to be one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.planted import Model
from unface.data import EmbeddingSet, make_identities
from unface.probe import lookalikes, near_duplicates
from unface.seeds import stream

CLEAN = [
    Model(20, 3, 8),
    Model(20, 10, 32, 2.0),
    Model(60, 5, 16, 0.0),
    Model(100, 3, 32, 0.3),
    Model(100, 10, 128),
    Model(100, 5, 32, tails=3.0),
    Model(100, 10, 64, rank=4),
    Model(500, 4, 32),
]
SPLIT = [
    Model(20, 10, 32),
    Model(20, 6, 128),
    Model(100, 10, 32),
    Model(100, 5, 64, 2.0, tails=3.0),
    Model(500, 4, 128),
    Model(100, 10, 64, 2.0, rank=24),
]


@pytest.mark.parametrize("model", CLEAN, ids=str)
def test_people_of_their_own_are_not_called_one(model: Model) -> None:
    for seed in range(6):
        assert lookalikes(model.clean(seed)) == ()


@pytest.mark.parametrize("model", SPLIT, ids=str)
def test_one_person_under_two_names_is_found_and_nobody_else(model: Model) -> None:
    for seed in range(4):
        found = lookalikes(model.one_under_two_names(seed))
        assert [(double.first, double.second) for double in found] == [("p0001", "zz")], seed


def test_a_common_part_of_all_vectors_hides_nothing() -> None:
    """Encoders often put a large constant into every vector; all cosines are high then."""
    split = Model(60, 10, 32).one_under_two_names(3)
    shifted = EmbeddingSet.from_arrays(split.vectors + np.float32(2.0), np.array(split.names)[split.identities])
    assert [(double.first, double.second) for double in lookalikes(shifted)] == [("p0001", "zz")]
    clean = make_identities(60, 10, 32, seed=3)
    names = np.array(clean.names)[clean.identities]
    assert lookalikes(EmbeddingSet.from_arrays(clean.vectors + np.float32(2.0), names)) == ()


def test_families_are_not_one_person() -> None:
    """Ten clusters of people whose means have most of their length in common."""
    rng = stream(0, "families")
    means = 2 * rng.normal(size=(10, 64))[np.arange(100) % 10] + rng.normal(size=(100, 64))
    vectors = means[:, None] + rng.normal(size=(100, 8, 64))
    assert lookalikes(people_of(vectors)) == ()


def test_siblings_are_not_one_person_though_no_two_strangers_are_as_alike() -> None:
    """One pair in 4,950 has means at a cosine of 0.7, which nobody else comes near: alike, but less than to itself."""
    for seed in range(4):
        rng = stream(seed, "siblings")
        means = rng.normal(size=(100, 128))
        means[1] = 0.7 * means[0] + np.sqrt(1 - 0.7**2) * means[1]
        vectors = means[:, None] + 0.5 * rng.normal(size=(100, 10, 128))
        assert lookalikes(people_of(vectors)) == ()


def test_what_is_said_of_a_pair_are_mean_cosines() -> None:
    split = Model(30, 5, 32, 1.5).one_under_two_names(1)
    found = lookalikes(split)[0]
    unit = split.unit().vectors.astype(np.float64)
    first, second = (unit[split.identities == split.names.index(name)] for name in (found.first, found.second))
    assert found.across == pytest.approx((first @ second.T).mean())
    own = [(x @ x.T)[np.triu_indices(5, 1)].mean() for x in (first, second)]
    assert found.within == pytest.approx(min(own))


def test_every_pair_is_named_however_many_there_are() -> None:
    """Thirty people under two names each, the most alike first."""
    made = make_identities(200, 12, 64, between=1.5, seed=2)
    names = np.array(made.names, dtype=object)[made.identities]
    second = (np.arange(len(made)) % 12 >= 6) & (made.identities < 30)
    names[second] = [f"x{name}" for name in names[second]]
    found = lookalikes(EmbeddingSet.from_arrays(made.vectors, names))
    assert {(double.first, double.second) for double in found} == {(name, f"x{name}") for name in made.names[:30]}


def test_identities_of_one_image_are_never_called_one() -> None:
    assert lookalikes(make_identities(30, 1, 16)) == ()


def test_a_picture_under_two_identities_is_named_by_both_ids() -> None:
    made = make_identities(20, 4, 16, seed=1)
    vectors = made.vectors.copy()
    vectors[7] = 3 * vectors[50] + 1e-4  # p0002-3 shows what p0013-2 does, only brighter
    found = near_duplicates(EmbeddingSet.from_arrays(vectors, np.array(made.names)[made.identities], ids=made.ids))
    assert (found.across, found.within) == (1, 0)
    assert found.named == (("p0002-3", "p0002", "p0013-2", "p0013"),)


def test_the_same_picture_twice_under_one_identity_is_counted_but_not_named() -> None:
    made = make_identities(20, 4, 16, seed=1)
    vectors = made.vectors.copy()
    vectors[1] = vectors[0]
    found = near_duplicates(EmbeddingSet.from_arrays(vectors, np.array(made.names)[made.identities]))
    assert (found.across, found.within, found.named) == (0, 1, ())


def test_all_duplicates_are_counted_and_named() -> None:
    vectors = np.repeat(stream(0, "copies").normal(size=(2, 5)), 16, axis=0)
    found = near_duplicates(EmbeddingSet.from_arrays(vectors, [f"p{row:02d}" for row in range(32)]))
    assert found.across == 2 * 16 * 15 // 2
    assert len(found.named) == found.across


def people_of(vectors: NDArray[np.float64]) -> EmbeddingSet:
    identities, images, dim = vectors.shape
    return EmbeddingSet.from_arrays(vectors.reshape(-1, dim), np.repeat(np.arange(identities), images))
