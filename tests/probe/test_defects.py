"""If these fail, one person under two names goes unseen, or two people are said to be one."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betainc

from tests.probe.planted import Model
from tests.probe.small import cosines
from tests.refusals.table import refused
from unface.data import EmbeddingSet, make_identities
from unface.memory import limit_memory
from unface.probe import lookalikes, near_duplicates
from unface.probe.defects import _pairs_above, _unlikely_cosine
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


def directions(count: int, dim: int, families: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = stream(count, "directions", dim)
    vectors = rng.normal(size=(count, dim))
    if families:
        vectors += 1.5 * rng.normal(size=(families, dim))[np.arange(count) % families]
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def chance_of(cosine: float, dimension: float) -> float:
    """That two random directions are at least so alike: in three dimensions (1 − cosine) / 2."""
    half = (dimension - 1) / 2
    return float(betainc(half, half, (1 - cosine) / 2))


@pytest.mark.parametrize("count", [100, 700])
@pytest.mark.parametrize("dim", [8, 64])
def test_of_independent_people_one_set_in_a_thousand_has_two_as_alike(count: int, dim: int) -> None:
    """The dimension is read off the cosines: their mean square is one over it."""
    some = directions(count, dim)
    found = _unlikely_cosine(some)
    seen = cosines(some)[np.triu_indices(count, 1)]
    dimension = float(1 / np.mean(seen**2))
    assert dimension == pytest.approx(dim, rel=0.1)
    assert chance_of(float(np.quantile(seen, 0.99)), dimension) == pytest.approx(0.01, rel=0.3)
    at_least = chance_of(found, dimension) * count * (count - 1) / 2
    assert 0.3e-3 < at_least < 1.001e-3  # less where the highest hundredth asks for fewer dimensions
    assert seen.max() < found < 1


def test_where_people_come_in_families_the_highest_hundredth_says_how_few_dimensions_there_are() -> None:
    some = directions(200, 64, families=20)
    seen = cosines(some)[np.triu_indices(200, 1)]
    found, high = _unlikely_cosine(some), float(np.quantile(seen, 0.99))
    fitting = [d for d in np.linspace(2, 64, 3101) if chance_of(high, d) >= 0.01]
    assert chance_of(found, fitting[-1]) * 200 * 199 / 2 == pytest.approx(1e-3, rel=0.1)
    assert found > _unlikely_cosine(directions(200, 64))


def test_where_hundredths_are_all_but_equal_two_dimensions_are_left() -> None:
    """Three dozen of four hundred are one direction: no dimension explains that, and the angle alone is uniform."""
    some = directions(400, 32)
    some[:60] = some[0]
    expected = np.cos(np.pi * 1e-3 / (400 * 399 / 2))
    assert _unlikely_cosine(some) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_pairs_above_a_cosine_are_listed_once_each_the_most_alike_first(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("unface.probe.defects._ROWS_AT_ONCE", at_once)
    some = directions(40, 3)
    seen = cosines(some)
    expected = [(i, j) for i in range(40) for j in range(i + 1, 40) if seen[i, j] >= 0.7]
    expected.sort(key=lambda pair: -seen[pair])
    i, j = _pairs_above(some, 0.7)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
    assert len(expected) > 20


def test_more_lookalikes_than_the_budget_can_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.probe.defects._BYTES_OF_A_NAME", 1 << 30)
    limit_memory("64M")
    try:
        with refused("memory", "780 pairs of people who look alike"):
            _pairs_above(directions(40, 3), -1.1)
    finally:
        limit_memory(None)


def test_lookalikes_do_not_depend_on_how_many_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_identities(60, 12, 64, between=1.5, seed=2)
    second = (np.arange(len(made)) % 12 >= 6) & (made.identities < 10)
    names = [f"x{code}" if other else f"{code}" for code, other in zip(made.identities, second, strict=True)]
    embeddings = EmbeddingSet.from_arrays(made.vectors, names)
    whole = lookalikes(embeddings)
    assert {(double.first, double.second) for double in whole} == {(f"{code}", f"x{code}") for code in range(10)}
    monkeypatch.setattr("unface.probe.defects._ROWS_AT_ONCE", 61)
    assert {(double.first, double.second) for double in lookalikes(embeddings)} == {
        (double.first, double.second) for double in whole
    }


def test_a_single_picture_under_a_name_of_its_own_is_compared_by_the_others_resemblance_to_itself() -> None:
    made = make_identities(60, 8, 128, between=2.0, seed=0)
    names = [made.names[code] for code in made.identities]
    names[3] = "zz"
    embeddings = EmbeddingSet.from_arrays(made.vectors, names)
    unit = embeddings.unit().vectors.astype(np.float64)
    rest = unit[[0, 1, 2, 4, 5, 6, 7]]
    (found,) = lookalikes(embeddings)
    assert (found.first, found.second) == ("p0001", "zz")
    assert found.across == pytest.approx(float((rest @ unit[3]).mean()))
    assert found.within == pytest.approx((rest @ rest.T)[np.triu_indices(7, 1)].mean())


def test_two_pictures_under_each_name_are_enough_to_be_found() -> None:
    found = lookalikes(Model(60, 2, 128, 3.0).one_under_two_names(0))
    assert [(double.first, double.second) for double in found] == [("p0001", "zz")]


def planted(cosine: float) -> EmbeddingSet:
    """Twelve axes, two of each identity; the last two pictures, p4's and p5's, are at the given cosine."""
    vectors = np.eye(12)
    vectors[11] = cosine * vectors[9] + np.sqrt(1 - cosine**2) * vectors[11]
    return EmbeddingSet.from_arrays(vectors, np.repeat([f"p{code}" for code in range(6)], 2))


def test_near_duplicates_reach_the_cosine_asked_for() -> None:
    found = near_duplicates(planted(0.995))
    assert (found.cosine, found.across, found.within, found.mated) == (0.999, 0, 0, 6)
    looser = near_duplicates(planted(0.995), 0.99)
    assert (looser.cosine, looser.across) == (0.99, 1)
    assert looser.named == (("9", "p4", "11", "p5"),)
    assert near_duplicates(planted(0.5), 0.5).across == 1


def test_pictures_of_one_identity_count_from_the_same_cosine() -> None:
    vectors = np.eye(4)
    vectors[1] = 0.5 * vectors[0] + np.sqrt(0.75) * vectors[1]
    embeddings = EmbeddingSet.from_arrays(vectors, ["a", "a", "b", "b"])
    counts = [near_duplicates(embeddings, cosine).within for cosine in (0.49, 0.5, 0.51)]
    assert counts == [1, 1, 0]


def test_only_the_first_of_very_many_duplicates_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.probe.defects._NAMED_AT_MOST", 3)
    vectors = np.repeat(np.eye(2), 4, axis=0)
    found = near_duplicates(EmbeddingSet.from_arrays(vectors, [f"p{row}" for row in range(8)]))
    assert (found.across, len(found.named)) == (12, 3)


def test_duplicates_are_sought_on_the_device_asked_for() -> None:
    with refused("pairs", None, "'abacus'"):
        near_duplicates(planted(0.5), device="abacus")
