"""If this fails, encoders are shown the wrong part of a canvas, or pictures get lost on the way to one."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.attribute.averages import Averages
from tests.attribute.scenes import Scene, exact_swap
from unface.attribute import Canvas, attribute, canvas_of, locate, reader_of
from unface.data import BadPicture, ImageRef, ImageSet
from unface.faces import ARCFACE_112, DLIB_150, Face, align_face
from unface.models import card


@pytest.mark.parametrize(
    ("name", "canvas", "seen"),
    [("sscd-int8", 288, 288), ("mobilenet-v2", 224, 224), ("arcface-mbf", 224, 112), ("dlib", 224, 150)],
)
def test_each_encoder_is_given_what_its_card_wants(name: str, canvas: int, seen: int) -> None:
    encoder = Averages(card(name), [])
    pictures = [Scene(who, 10 * who + n).draw() for who in range(2) for n in range(2)]
    result = attribute(pictures, reader_of(encoder), exact_swap)
    assert (result.encoder, result.size) == (name, canvas)
    assert set(encoder.shapes) == {(seen, seen, 3)}


@pytest.mark.parametrize(("name", "template"), [("sface", ARCFACE_112), ("dlib", DLIB_150)])
def test_recognisers_see_the_face_where_their_template_has_it(name: str, template: NDArray[np.float64]) -> None:
    picture = Scene(0, 0).draw()
    canvas = canvas_of(picture, 224)
    assert isinstance(canvas, Canvas)
    assert picture.image is not None
    assert picture.face is not None
    encoder = Averages(card(name), [])
    seen = reader_of(encoder).view(canvas.image, canvas.face)
    direct = align_face(picture.image, picture.face.landmarks, template, len(seen))
    middle = slice(20, -20)
    assert np.corrcoef(seen[middle, middle].reshape(-1), direct[middle, middle].reshape(-1))[0, 1] > 0.95


def test_facenet_sees_the_box_with_its_margin() -> None:
    canvas = canvas_of(Scene(0, 0).draw(), 224)
    assert isinstance(canvas, Canvas)
    seen = reader_of(Averages(card("facenet"), [])).view(canvas.image, canvas.face)
    assert seen.shape[0] == seen.shape[1] == round(1.25 * float(canvas.face.box[2:].max()))


class InTheMiddle:
    """Finds one face in the middle of every picture that is not black."""

    name = "middle"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        half = np.array(image.shape[1::-1]) / 2
        points = half + np.array([(-9, -9), (9, -9), (0, 0), (-7, 9), (7, 9)], dtype=float)
        return [Face(np.concatenate([half - 20, [40.0, 40.0]]), points, 0.9)] if image.any() else []


def encoded(grey: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (120, 100), (grey, grey, grey)).save(buffer, "PNG")
    return buffer.getvalue()


def test_every_picture_is_located_or_says_why_not_in_order() -> None:
    def lost() -> bytes:
        raise BadPicture("cannot be read")

    refs = (
        ImageRef("a", "x", lambda: encoded(90)),
        ImageRef("b", "x", lambda: b"nonsense"),
        ImageRef("c", "y", lost),
        ImageRef("d", "y", lambda: encoded(0)),
    )
    found = list(locate(ImageSet(refs, "made"), InTheMiddle(), threads=2))
    assert [(one.id, one.identity, one.reason) for one in found] == [
        ("a", "x", None),
        ("b", "x", "not a picture"),
        ("c", "y", "cannot be read"),
        ("d", "y", None),
    ]
    assert [one.face is not None for one in found] == [True, False, False, False]
    assert found[3].image is not None
