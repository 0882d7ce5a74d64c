"""If this fails, pictures, pairs or swaps disappear without a word, or how the work was done shows in the numbers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.attribute.scenes import SIDE, Image, Scene, SceneSwap, drawn, exact_swap, mixture, people
from tests.refusals.table import refused
from unface.attribute import Attribution, Canvas, FaceSwap, LocatedPicture, Reader, attribute, canvas_of, pairing
from unface.attribute.canvas import AT_BORDER, NO_FACE, NO_LANDMARKS, TOO_LARGE
from unface.attribute.encoding import NO_RING
from unface.attribute.pairing import NO_FCR, ONE_PICTURE
from unface.data import Space
from unface.erase import Projection

GOOD = people(3, 2)


def colours(images: Sequence[Image]) -> NDArray[np.float32]:
    return np.stack([image.reshape(-1, 3).mean(axis=0) for image in images]).astype(np.float32)


READER = Reader("colours", SIDE, colours)


def bad_pictures() -> list[LocatedPicture]:
    blank = Scene(9, 900).draw()
    assert blank.face is not None
    return [
        replace(blank, id="faceless", face=None),
        replace(blank, id="broken", image=None, face=None, reason="truncated or damaged"),
        replace(blank, id="pointless", face=replace(blank.face, landmarks=np.zeros((5, 2)))),
        replace(drawn(Scene(9, 901), 1.0, np.array([20.0, 20.0])), id="bordering"),
        replace(drawn(Scene(9, 902), 2.6, np.array([130.0, 125.0])), id="looming"),
        replace(Scene(10, 1000).draw(), id="alone"),
        replace(_wide(Scene(11, 1100).draw(), 1.1), id="wide"),
        replace(Scene(11, 1101).draw(), id="narrow"),
    ]


def _wide(picture: LocatedPicture, factor: float) -> LocatedPicture:
    assert picture.face is not None
    centre = picture.face.landmarks.mean(axis=0)
    return replace(picture, face=replace(picture.face, landmarks=centre + factor * (picture.face.landmarks - centre)))


def test_every_picture_is_used_or_named() -> None:
    result = attribute(GOOD + bad_pictures(), READER, exact_swap)
    quality = result.quality
    assert {(one.id, one.step, one.reason) for one in result.left_out} == {
        ("faceless", "picture", NO_FACE),
        ("broken", "picture", "truncated or damaged"),
        ("pointless", "picture", NO_LANDMARKS),
        ("bordering", "picture", AT_BORDER),
        ("looming", "picture", TOO_LARGE),
        ("alone", "pairing", ONE_PICTURE),
        ("wide", "pairing", NO_FCR),
        ("narrow", "pairing", NO_FCR),
    }
    assert (quality.pictures, quality.usable, quality.identities, quality.pairs) == (14, 9, 5, 6)
    assert (quality.swaps_tried, quality.swaps) == (6, 6)
    assert counts(result, "pairing") == {NO_FCR: 2, ONE_PICTURE: 1}
    assert counts(result, "swap") == {}
    assert (quality.fcr.of, quality.padding.of, quality.fcr_difference.of, quality.area_difference.of) == (9, 9, 6, 6)
    assert quality.fcr_difference.largest <= 0.02
    assert quality.area_difference.largest <= 0.02


def counts(result: Attribution, step: str) -> dict[str, int]:
    return {one.reason: one.count for one in result.quality.left_out if one.step == step}


def refusing(landmarks: Sequence[NDArray[np.float64]]) -> FaceSwap:
    """A swap that fails for hosts with these landmarks."""

    def swap(host: Image, at: NDArray[np.float64], donor: Image, donor_at: NDArray[np.float64]) -> SceneSwap:
        if any(np.allclose(at, one) for one in landmarks):
            return SceneSwap(host, False, "the donor looks away")
        return exact_swap(host, at, donor, donor_at)

    return swap


def test_swaps_that_fail_are_counted_and_leave_no_triplet() -> None:
    victim = canvas_of(GOOD[0], SIDE)
    assert isinstance(victim, Canvas)
    result = attribute(GOOD, READER, refusing([victim.face.landmarks]))
    assert (result.quality.swaps_tried, result.quality.swaps) == (6, 5)
    assert counts(result, "swap") == {"the donor looks away": 1}
    assert [one.id for one in result.left_out] == [GOOD[0].id]
    space = result.spaces[0]
    assert space.fii is not None
    assert space.cpi is not None
    assert space.fii.index.of == 6
    assert {level.preferred.denominator for level in space.cpi.at} == {5}


def test_without_any_swap_only_fii_is_measured() -> None:
    def never(host: Image, *_: object) -> SceneSwap:
        return SceneSwap(host, False, None)

    result = attribute(GOOD, READER, never)
    assert counts(result, "swap") == {"the swap failed": 6}
    assert result.spaces[0].fii is not None
    assert result.spaces[0].cpi is None
    assert result.spaces[0].b_star is None


def test_without_a_ring_only_fii_is_not_measured() -> None:
    large = [_wide(picture, 1.4) for picture in GOOD]
    result = attribute(large, READER, exact_swap, axes="semi")
    assert counts(result, "ring") == {NO_RING: 6}
    assert result.spaces[0].fii is None
    assert result.spaces[0].cpi is not None


def test_identical_pictures_give_exactly_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "SAME_CONTEXT", 2.0)  # they would not be compared otherwise: it is one shoot
    same = [replace(Scene(0, 0).draw(), id=f"{who}{n}", identity=who) for who in "ab" for n in range(2)]
    for place in (0.0, 0.5):
        space = attribute(same, mixture(place), exact_swap).spaces[0]
        assert space.fii is not None
        assert space.cpi is not None
        for estimate in (space.fii.index, space.fii.face_drop, space.fii.background_drop):
            assert (estimate.value, estimate.low, estimate.high) == (0, 0, 0)
        assert space.fii.similarity.value == 1
        assert [level.preferred.numerator for level in space.cpi.at] == [0] * 6


def test_order_batches_and_threads_do_not_show() -> None:
    expected = attribute(GOOD, mixture(0.6), exact_swap)
    assert attribute(GOOD[::-1], mixture(0.6), exact_swap, batch=5, threads=3) == expected


def test_what_cannot_be_measured_at_all_is_refused_in_a_sentence() -> None:
    with refused("attribution", "attribute", "of 2", "1"):
        attribute(bad_pictures()[:2], READER, exact_swap)
    with refused("attribution", "attribute", "1", "fewer"):
        attribute([*GOOD[:2], GOOD[2]], READER, exact_swap)
    with refused("attribution", "attribute", "occurs"):
        attribute([*GOOD, GOOD[0]], READER, exact_swap)
    with refused("attribution", "attribute", "of 0"):
        attribute(GOOD, READER, exact_swap, batch=0)


def test_encoders_and_swaps_that_break_their_promise_are_refused() -> None:
    with refused("attribution", "colours"):
        attribute(GOOD, replace(READER, encode=lambda images: colours(images) * np.nan), exact_swap)
    with refused("attribution", "colours"):
        attribute(GOOD, replace(READER, encode=lambda images: colours(images)[1:]), exact_swap)
    with refused("attribution", "attribute", "gave uint8", "10", "224", "3"):
        attribute(GOOD, READER, lambda host, *_: SceneSwap(host[:10]))


def test_a_projection_of_another_encoder_is_refused_before_the_work() -> None:
    foreign = Projection("isp", np.eye(3)[:, :1], np.ones(1), Space("other", None, 3, normalised=False))

    def encode(images: Sequence[Image]) -> NDArray[np.float32]:
        raise AssertionError("nothing is to be encoded")

    with refused("attribution", "isp"):
        attribute(GOOD, replace(READER, encode=encode), exact_swap, projections={"isp": foreign})
