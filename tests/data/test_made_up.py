"""If these fail, people who do not exist are other people than in earlier versions."""

import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from docs.figures import embedded_files
from scipy import stats

from tests.real import nobody_pictures
from unface.data import EMBEDDED_ENCODERS, EmbeddingSet, identity_basis, make_identities, nobody, things
from unface.models import card


def test_a_set_has_the_sizes_asked_for_and_names_in_order() -> None:
    made = make_identities(3, 4, 5)
    assert made.vectors.shape == (12, 5)
    assert made.names == ("p0001", "p0002", "p0003")
    assert made.identities.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert made.ids[:2].tolist() == ["p0001-0", "p0001-1"]
    assert not made.space.normalised
    assert made.source == "synthetic"


def test_the_seed_decides_everything() -> None:
    assert make_identities(5, 3, 4, rank=2).sha256() == make_identities(5, 3, 4, rank=2).sha256()
    assert make_identities(5, 3, 4, rank=2).sha256() != make_identities(5, 3, 4, rank=2, seed=1).sha256()


def test_the_basis_is_orthonormal_and_belongs_to_its_seed() -> None:
    basis = identity_basis(16, 5, 3)
    assert np.allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    assert np.array_equal(basis, identity_basis(16, 5, 3))
    assert not np.allclose(basis, identity_basis(16, 5, 4))


def test_means_lie_in_the_known_subspace_and_nowhere_else() -> None:
    made = make_identities(40, 2, 12, rank=4, between=3.0, within=0.0, seed=7)
    basis = identity_basis(12, 4, 7)
    inside = made.vectors @ basis
    outside = made.vectors - inside @ basis.T
    assert np.abs(outside).max() < 1e-5 * np.abs(inside).max()
    assert np.linalg.matrix_rank(made.vectors, tol=1e-3) == 4


def test_variances_between_and_within_are_those_asked_for() -> None:
    """10,000 identities × 4 images × 6 dimensions: the relative error of a variance is about 0.6 % and 0.3 %."""
    made = make_identities(10_000, 4, 6, between=2.0, within=0.5, seed=1)
    images = made.vectors.astype(np.float64).reshape(10_000, 4, 6)
    within = images.var(axis=1, ddof=1).mean()
    between = images.mean(axis=1).var(axis=0, ddof=1).mean() - within / 4
    assert within == pytest.approx(0.25, rel=0.02)
    assert between == pytest.approx(4.0, rel=0.03)


def test_images_are_normal_without_tails_and_student_with_them() -> None:
    """For eps with t tails, |eps|² / dim follows F(dim, tails); a normal's is chi² / dim."""
    dim, rows = 5, 20_000
    plain = make_identities(rows // 2, 2, dim, between=0.0, within=2.0, seed=3).vectors.astype(np.float64) / 2
    heavy = (
        make_identities(rows // 2, 2, dim, between=0.0, within=2.0, seed=3, tails=4.0).vectors.astype(np.float64) / 2
    )
    normal, student = stats.chi2(dim, scale=1 / dim).cdf, stats.f(dim, 4).cdf
    sizes = {"plain": (plain**2).mean(axis=1), "heavy": (heavy**2).mean(axis=1)}
    assert stats.kstest(sizes["plain"], normal).pvalue > 1e-3
    assert stats.kstest(sizes["heavy"], student).pvalue > 1e-3
    assert stats.kstest(sizes["heavy"], normal).pvalue < 1e-9


def test_unequal_sizes_have_the_mean_asked_for_and_at_least_two() -> None:
    """1 + geometric: standard deviation about 8.5 at mean 10, so 0.09 for the mean of 10,000."""
    sizes = np.bincount(make_identities(10_000, 10, 1, seed=5, unequal=True).identities)
    assert sizes.min() == 2
    assert sizes.mean() == pytest.approx(10, abs=0.45)
    assert sizes.std() == pytest.approx(np.sqrt(9 * 8), rel=0.1)


@pytest.fixture(params=EMBEDDED_ENCODERS)
def encoder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def images_of_each(found: EmbeddingSet) -> set[int]:
    return set(np.bincount(found.identities).tolist())


def test_there_are_twelve_pictures_of_480_people(encoder: str) -> None:
    people = nobody(encoder)
    assert (len(people.names), images_of_each(people)) == (480, {12})
    assert people.labels == {}


def test_there_are_sixty_things_of_each_class_to_learn_from_and_forty_to_try(encoder: str) -> None:
    found = things(encoder)
    assert (len(found.names), images_of_each(found)) == (10, {100})
    assert images_of_each(found.take(np.flatnonzero(found.labels["split"] == "train"))) == {60}
    assert set(found.labels["split"]) == {"train", "test"}


def test_every_vector_is_of_length_one_to_half_precision_and_none_is_there_twice(encoder: str) -> None:
    for found in (nobody(encoder), things(encoder)):
        np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1, atol=2**-11)
        assert len(np.unique(found.vectors, axis=0)) == len(found.vectors)


def test_the_space_names_the_encoder_and_the_weights_of_its_card(encoder: str) -> None:
    people, objects = nobody(encoder).space, things(encoder).space
    assert (people.encoder, people.weights_sha256) == (encoder, card(encoder).sha256)
    assert (people.dim, people.normalised) == (card(encoder).dim, True)
    assert people == objects


def test_every_encoder_saw_the_same_pictures() -> None:
    for found in (nobody, things):
        first, *others = (found(encoder) for encoder in EMBEDDED_ENCODERS)
        for other in others:
            np.testing.assert_array_equal(other.ids, first.ids)
            np.testing.assert_array_equal(other.identities, first.identities)


def test_one_recogniser_and_two_general_encoders_whose_licences_allow_it() -> None:
    cards = [card(encoder) for encoder in EMBEDDED_ENCODERS]
    assert sorted(one.family for one in cards) == ["general", "general", "recognition"]
    assert not any(one.licence.research_only for one in cards)


def test_all_of_it_is_less_than_fifteen_megabytes() -> None:
    sizes = [len(file.read_bytes()) for file in (files("unface.data") / "nobody").iterdir()]
    assert len(sizes) == 2 * len(EMBEDDED_ENCODERS)
    assert sum(sizes) < 15e6


def test_the_data_card_has_the_size_and_hash_of_every_file() -> None:
    root = Path(__file__).resolve().parents[2]
    made = "\n".join(embedded_files())
    assert made.count("sha256") == 1
    assert made in (root / "docs" / "data.md").read_text(encoding="utf-8")


def test_the_picture_pack_is_small_and_of_people_whose_vectors_are_embedded() -> None:
    pack = nobody_pictures()
    assert pack.stat().st_size < 4e6
    embedded = set(nobody("sface").ids.tolist())
    with zipfile.ZipFile(pack) as opened:
        names = opened.namelist()
    assert len(names) == 24 * 12
    assert embedded.issuperset(names)
