"""If this fails, encoders whose answer is known by construction are distinguished wrongly, or not at all."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.attribute.scenes import Image, exact_swap, face_vectors, mixture, people
from unface.attribute import Attribution, attribute
from unface.data import Space
from unface.erase import Projection
from unface.result.attribution import AttributedSpace

PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def measured() -> dict[float, Attribution]:
    pictures = people(6, 3)
    return {place: attribute(pictures, mixture(place), exact_swap) for place in PLACES}


def raw(result: Attribution) -> AttributedSpace:
    return result.spaces[0]


def test_an_encoder_of_faces_alone_rests_on_the_face(measured: dict[float, Attribution]) -> None:
    space = raw(measured[0.0])
    assert space.fii is not None
    assert space.cpi is not None
    assert space.b_star is not None
    assert space.fii.index.low > 0
    assert space.fii.background_drop.value == pytest.approx(0, abs=1e-6)
    assert [level.preferred.numerator for level in space.cpi.at] == [0] * 6
    assert space.cpi.crossover.value is None
    assert (space.b_star.median.value, space.b_star.crossing.value) == (1, 1)
    assert space.b_star.at_one.numerator == space.b_star.at_one.denominator == 18
    assert space.cpi.donor_nearer.value == 1


def test_an_encoder_of_places_alone_rests_on_the_place(measured: dict[float, Attribution]) -> None:
    space = raw(measured[1.0])
    assert space.fii is not None
    assert space.cpi is not None
    assert space.b_star is not None
    assert space.fii.index.high < 0
    assert space.fii.face_drop.value == pytest.approx(0, abs=1e-6)
    assert [level.preferred.value for level in space.cpi.at] == [1] * 6
    assert space.cpi.at[0].preferred.low > 0.6
    # It sees nothing where nothing is revealed, and is sure as soon as anything is.
    assert space.b_star.crossing.value == pytest.approx(0, abs=1e-6)
    assert space.b_star.median.value == 0.25
    assert space.b_star.at[0].to_context.value == 0
    assert space.cpi.donor_nearer.value == 0


def test_the_fii_of_a_mixture_is_the_mixture_of_both(measured: dict[float, Attribution]) -> None:
    faces, places = raw(measured[0.0]).fii, raw(measured[1.0]).fii
    assert faces is not None
    assert places is not None
    for place in PLACES:
        mixed = raw(measured[place]).fii
        assert mixed is not None
        expected = (1 - place) * faces.index.value + place * places.index.value
        assert mixed.index.value == pytest.approx(expected, abs=1e-6)


def test_mixtures_move_one_way(measured: dict[float, Attribution]) -> None:
    spaces = [raw(measured[place]) for place in PLACES]
    for less, more in pairwise(spaces):
        assert less.fii is not None and more.fii is not None  # noqa: PT018
        assert less.cpi is not None and more.cpi is not None  # noqa: PT018
        assert less.b_star is not None and more.b_star is not None  # noqa: PT018
        assert less.fii.index.value > more.fii.index.value
        assert less.b_star.crossing.value >= more.b_star.crossing.value
        assert less.b_star.median.value >= more.b_star.median.value
        for before, after in zip(less.cpi.at, more.cpi.at, strict=True):
            assert before.preferred.numerator <= after.preferred.numerator
    crossings = [space.b_star.crossing.value for space in spaces if space.b_star is not None]
    assert len(set(crossings)) >= 3


def test_with_everything_revealed_and_nothing_blurred_the_question_is_the_same(
    measured: dict[float, Attribution],
) -> None:
    for result in measured.values():
        space = raw(result)
        assert space.cpi is not None
        assert space.b_star is not None
        assert space.b_star.at[-1].preferred == space.cpi.at[0].preferred


def test_erasing_the_face_from_a_mixture_leaves_the_encoder_of_places(measured: dict[float, Attribution]) -> None:
    pictures = people(6, 3)
    reader = mixture(0.5)
    images = [picture.image[:224, :224] for picture in pictures[:1] if picture.image is not None]
    whole, face = reader.encode(images).shape[1], face_vectors(images).shape[1]
    space = Space(None, None, whole, normalised=False)
    faceless = Projection("known", np.eye(whole)[:, :face], np.ones(face), space)
    calls = 0

    def counted(given: Sequence[Image]) -> NDArray[np.float32]:
        nonlocal calls
        calls += 1
        return reader.encode(given)

    result = attribute(pictures, replace(reader, encode=counted), exact_swap, projections={"faceless": faceless})
    assert calls == -(-18 * 17 // 32)  # each perturbed picture once, whatever the number of spaces
    assert [one.name for one in result.spaces] == ["raw", "faceless"]
    erased, places = result.spaces[1], raw(measured[1.0])
    assert erased.fii is not None and places.fii is not None  # noqa: PT018
    assert erased.cpi is not None and places.cpi is not None  # noqa: PT018
    assert erased.fii.index.value == pytest.approx(places.fii.index.value, abs=1e-6)
    assert erased.fii.index.low == pytest.approx(places.fii.index.low, abs=1e-6)
    assert [level.preferred.value for level in erased.cpi.at] == [1] * 6
    assert result.spaces[0] == raw(measured[0.5])
