"""If these fail, the vectors that come with unface are not those that docs/data.md tells of."""

import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from docs.figures import embedded_files

from tests.real import nobody_pictures
from unface.data import EMBEDDED_ENCODERS, EmbeddingSet, nobody, things
from unface.models import card


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
