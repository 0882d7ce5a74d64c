"""If this fails, YuNet's raw output is read otherwise than OpenCV, whose model it is, reads it."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.faces.drawn import LANDMARKS, scene
from tests.real import nobody_pictures, pictures_here, weights_here
from unface.data import decode, read_images
from unface.faces import Face
from unface.faces.detect import YuNet, _yunet_decoded

# height and width of the picture; x, y and height of each head
SCENES: dict[str, tuple[tuple[int, int], list[tuple[float, float, float]]]] = {
    "one": ((250, 250), [(120, 130, 100)]),
    "sides no multiple of 32": ((219, 333), [(100, 110, 90)]),
    "two": ((300, 500), [(120, 150, 120), (360, 160, 60)]),
    "at the border": ((250, 250), [(20, 130, 120), (230, 240, 100)]),
    "overlapping": ((300, 300), [(120, 150, 120), (170, 150, 120)]),
    "small": ((40, 45), [(22, 20, 30)]),
    "larger than 640": ((900, 1300), [(500, 450, 400), (1000, 300, 120)]),
}


@pytest.fixture(scope="module")
def yunet() -> YuNet:
    return YuNet(weights_here("yunet"))


@pytest.fixture(scope="module")
def opencv() -> cv2.FaceDetectorYN:
    cv2.utils.logging.setLogLevel(2)  # errors: OpenCV 5 warns of every network that runs on the CPU
    return cv2.FaceDetectorYN.create(str(weights_here("yunet")), "", (320, 320), 0.6, 0.3, 5000)


def peer_rows(opencv: cv2.FaceDetectorYN, image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(n, 15) of a picture of up to 640 pixels, best score first."""
    opencv.setInputSize(image.shape[1::-1])
    _, found = opencv.detect(cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    rows = np.empty((0, 15)) if found is None else np.asarray(found, dtype=np.float64)
    return np.asarray(rows[np.argsort(-rows[:, 14], kind="stable")])


def rows_of(faces: list[Face]) -> NDArray[np.float64]:
    rows = [np.concatenate([face.box, face.landmarks.reshape(-1), [face.score]]) for face in faces]
    return np.array(rows).reshape(-1, 15)


def test_centres_and_points_are_strides_from_a_cell_and_sides_are_logarithms() -> None:
    stride, width, cells = 16, 96, 6 * 4
    raw = [np.zeros((1, cells, columns), dtype=np.float32) for columns in (1, 1, 4, 10)]
    cell = 2 * 6 + 5  # row 2, column 5
    raw[0][0, [cell, 3]], raw[1][0, [cell, 3]] = 0.9, [[0.64], [0.39]]  # √(0.9 · 0.39) is below 0.6
    raw[2][0, cell] = (0.5, 0.25, np.log(2), np.log(4))
    raw[3][0, cell] = np.arange(10)
    scores, corners, points = _yunet_decoded(raw, stride, width)
    np.testing.assert_allclose(scores, [np.sqrt(0.9 * 0.64)], rtol=1e-6)
    np.testing.assert_allclose(corners, [[88 - 16, 36 - 32, 88 + 16, 36 + 32]], rtol=1e-6)
    np.testing.assert_array_equal(points[0], np.array([5, 2]) * 16 + np.arange(10).reshape(5, 2) * 16)


@pytest.mark.parametrize("name", [name for name in SCENES if name != "larger than 640"])
def test_drawn_faces_are_found_where_opencv_finds_them(yunet: YuNet, opencv: cv2.FaceDetectorYN, name: str) -> None:
    picture = scene(*SCENES[name])
    expected = peer_rows(opencv, picture)
    assert len(expected)
    np.testing.assert_allclose(rows_of(yunet.detect(picture)), expected, atol=1e-3)


@pytest.mark.parametrize("name", ["one", "sides no multiple of 32", "two", "larger than 640"])
def test_points_lie_where_they_were_drawn(yunet: YuNet, name: str) -> None:
    found = sorted(yunet.detect(scene(*SCENES[name])), key=lambda face: float(face.box[0]))
    for face, (x, y, size) in zip(found, SCENES[name][1], strict=True):
        np.testing.assert_allclose(face.landmarks, LANDMARKS * size + (x, y), atol=0.1 * size)
        np.testing.assert_allclose(face.box, (x - 0.36 * size, y - 0.48 * size, 0.72 * size, size), atol=0.15 * size)


def test_several_threads_and_sizes_at_once_change_nothing(yunet: YuNet) -> None:
    pictures = [scene(*drawn) for drawn in SCENES.values()]
    alone = [rows_of(yunet.detect(picture)) for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(yunet.detect, pictures * 3))
    for number, faces in enumerate(together):
        np.testing.assert_array_equal(rows_of(faces), alone[number % len(alone)])


@pytest.mark.parametrize("source", ["nobody", "celeba20.zip", "lfw.tar"])
def test_portraits_have_the_faces_that_opencv_finds(yunet: YuNet, opencv: cv2.FaceDetectorYN, source: str) -> None:
    """All but a few: OpenCV rounds boxes to whole pixels before it asks how much of them overlaps."""
    refs = read_images(nobody_pictures() if source == "nobody" else pictures_here(source)).images
    pictures = [decode(ref.read()) for ref in refs[:: 4 if source == "nobody" else 19]]
    pairs = [(rows_of(yunet.detect(picture)), peer_rows(opencv, picture)) for picture in pictures]
    same = [a.shape == b.shape and bool((np.abs(a - b)[:, :14] <= 0.5).all()) for a, b in pairs]
    assert np.mean(same) >= 0.995
