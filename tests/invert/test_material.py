"""If these fail, a decoder learns faces at another place than the prior and the attacked encoder have them."""

from io import BytesIO

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from unface.data import ImageRef
from unface.faces import ARCFACE_112, Face
from unface.invert.material import in_frame
from unface.seeds import stream

FACE = (0.125, 0.25, 0.5)
SIZE = 112
TEMPLATE = ARCFACE_112 * 0.5 + np.array([14.0, 28.0])


class Knows:
    """A detector that knows where the face is."""

    name = "told"

    def __init__(self, *landmarks: NDArray[np.float64]) -> None:
        self.landmarks = landmarks

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        return [Face(np.array([20.0, 30.0, 40.0, 50.0]), one, 1.0) for one in self.landmarks]


def shown(picture: NDArray[np.uint8]) -> ImageRef:
    content = BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return ImageRef("a/0.png", "a", content.getvalue)


def test_a_picture_in_the_priors_frame_stays_as_it_is() -> None:
    picture = stream(0, "frame").integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    (found,) = in_frame([shown(picture)], Knows(TEMPLATE), FACE, SIZE)
    assert np.array_equal(found, picture)


def test_a_face_elsewhere_is_brought_to_its_place() -> None:
    picture = np.zeros((200, 160, 3), np.uint8)
    picture[40:152, 30:142] = stream(1, "frame").integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    (found,) = in_frame([shown(picture)], Knows(TEMPLATE + np.array([30.0, 40.0])), FACE, SIZE)
    assert np.array_equal(found, picture[40:152, 30:142])


@pytest.mark.parametrize("shape", [(60, 30), (30, 60)])
def test_without_a_face_it_is_the_middle(shape: tuple[int, int]) -> None:
    picture = np.zeros((*shape, 3), np.uint8)
    picture[shape[0] // 2 - 15 : shape[0] // 2 + 15, shape[1] // 2 - 15 : shape[1] // 2 + 15] = 200
    (found,) = in_frame([shown(picture)], Knows(), FACE, 30)
    assert found.shape == (30, 30, 3)
    assert (found == 200).all()
