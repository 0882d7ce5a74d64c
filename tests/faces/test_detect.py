"""If these fail, a face is not where it is said to be, or is cut out elsewhere."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.faces.drawn import LANDMARKS, scene
from tests.real import nobody_pictures, pictures_here, weights_here
from tests.refusals.table import refused
from unface.data import decode, read_images
from unface.faces import (
    ARCFACE_112,
    DLIB_150,
    Face,
    Remembered,
    align_face,
    box_crop,
    load_detector,
    main_face,
    similarity,
)
from unface.faces.detect import Scrfd, YuNet, _scrfd_decoded, _yunet_decoded, suppressed
from unface.seeds import stream


def face(left: float, top: float, width: float, height: float, score: float = 0.9) -> Face:
    return Face(np.array([left, top, width, height], dtype=float), np.zeros((5, 2)), score)


def test_the_largest_face_is_the_person_unless_it_is_at_the_edge() -> None:
    large, small = face(40, 40, 60, 60), face(100, 100, 20, 20)
    assert main_face([small, large], (200, 200)) is large
    corner, central = face(0, 0, 44, 44), face(80, 80, 40, 40)
    assert main_face([corner, central], (200, 200)) is central
    assert main_face([], (200, 200)) is None


def test_a_box_is_cut_square_with_its_margin_and_edges_repeat_outside() -> None:
    image = np.arange(100 * 100, dtype=np.uint16).astype(np.uint8).reshape(100, 100, 1).repeat(3, axis=2)
    crop = box_crop(image, face(40, 30, 20, 40), 1.25)
    np.testing.assert_array_equal(crop, image[25:75, 25:75])
    outside = box_crop(image, face(-10, 0, 20, 20), 1.0)
    np.testing.assert_array_equal(outside[:, :10], np.repeat(image[:20, :1], 10, axis=1))


class Counting:
    """Finds as many faces as the picture has rows, and counts how often it was asked."""

    name = "counting"
    asked = 0

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        self.asked += 1
        return [face(0, 0, 9, 9)] * len(image)


def test_a_picture_is_looked_at_once_and_never_taken_for_another_of_its_bytes() -> None:
    counting = Counting()
    remembered = Remembered(counting)
    wide, tall = (np.zeros(shape, dtype=np.uint8) for shape in ((2, 4, 3), (4, 2, 3)))
    assert [len(remembered.detect(image)) for image in (wide, tall, wide.copy(), tall)] == [2, 4, 2, 4]
    assert (counting.asked, remembered.name) == (2, "counting")


def test_faces_are_remembered_to_the_last_bit_and_none_as_none() -> None:
    points = np.linspace(0, 1, 10).reshape(5, 2) / 3

    class Once:
        name = "once"

        def __init__(self) -> None:
            self.left = [[Face(np.array([0.1, 2, 3, 4]), points, 1 / 3), face(5, 6, 7, 8, 0.2)], []]

        def detect(self, image: NDArray[np.uint8]) -> list[Face]:
            return self.left.pop(0)

    remembered = Remembered(Once())
    picture, empty = np.zeros((4, 4, 3), dtype=np.uint8), np.ones((4, 4, 3), dtype=np.uint8)
    for _ in range(2):
        first, second = remembered.detect(picture)
        np.testing.assert_array_equal(first.box, [0.1, 2, 3, 4])
        np.testing.assert_array_equal(first.landmarks, points)
        assert (first.score, second.score, second.side) == (1 / 3, 0.2, np.sqrt(56))
        assert remembered.detect(empty) == []


def test_scrfd_boxes_and_points_are_distances_in_strides_from_cell_corners() -> None:
    stride, cells = 32, 20
    score, box, points = np.zeros((800, 1)), np.zeros((800, 4)), np.zeros((800, 10))
    anchor = 2 * (3 * cells + 5) + 1  # second anchor at row 3, column 5
    score[anchor], box[anchor], points[anchor] = 0.8, (1, 2, 3, 4), np.arange(10)
    found = _scrfd_decoded([part.astype(np.float32) for part in (score, box, points)], stride)
    assert found[0] == pytest.approx([0.8])
    np.testing.assert_array_equal(found[1], [[160 - 32, 96 - 64, 160 + 96, 96 + 128]])
    np.testing.assert_array_equal(found[2][0, 1], [160 + 2 * 32, 96 + 3 * 32])


def test_of_boxes_that_overlap_only_the_best_stays() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [8, 0, 18, 10]], dtype=float)
    assert suppressed(np.array([0.5, 0.9, 0.6, 0.4]), boxes, 0.4) == [1, 2, 3]
    # The fourth shares 3 · 9 of 100 + 100 − 27 with the second: 0.156.
    assert suppressed(np.array([0.5, 0.9, 0.6, 0.4]), boxes, 0.15) == [1, 2]


def test_an_unknown_detector_is_one_sentence() -> None:
    with refused("faces", None, "'haar'", "scrfd-500m"):
        load_detector("haar")


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 400, 3), (64, 64, 3), (2000, 30, 3)])
@pytest.mark.parametrize(("name", "kind"), [("yunet", YuNet), ("scrfd-500m", Scrfd)])
def test_pictures_of_nothing_have_no_face(name: str, kind: type[YuNet | Scrfd], shape: tuple[int, int, int]) -> None:
    assert kind(weights_here(name)).detect(np.full(shape, 127, dtype=np.uint8)) == []


def test_two_detectors_agree_on_every_face_and_its_points() -> None:
    images = read_images(nobody_pictures())
    yunet, scrfd = YuNet(weights_here("yunet")), Scrfd(weights_here("scrfd-500m"))
    for ref in images.images[::12]:
        # with room around it: SCRFD scales a picture to 640 pixels and misses faces that fill most of them
        picture = np.pad(decode(ref.read()), ((128, 128), (128, 128), (0, 0)), mode="edge")
        first, second = (main_face(detector.detect(picture), picture.shape) for detector in (yunet, scrfd))
        assert first is not None
        assert second is not None
        assert np.abs(first.landmarks - second.landmarks).mean() < 0.06 * first.side


def test_a_face_is_found_at_the_same_place_in_a_larger_picture() -> None:
    picture = decode(read_images(nobody_pictures()).images[0].read())
    large = np.kron(picture, np.ones((6, 6, 1), dtype=np.uint8))  # 1536 pixels: scaled down before detection
    yunet = YuNet(weights_here("yunet"))
    first, second = main_face(yunet.detect(picture), picture.shape), main_face(yunet.detect(large), large.shape)
    assert first is not None
    assert second is not None
    assert np.abs(6 * first.landmarks - second.landmarks).mean() < 0.05 * second.side


def test_scores_come_best_first() -> None:
    yunet, pictures = (
        YuNet(weights_here("yunet")),
        [decode(ref.read()) for ref in read_images(nobody_pictures()).images],
    )
    for number in range(0, 48, 6):  # four people in one picture, each of another size
        four = [pictures[(number + step * 12) % len(pictures)][:: step + 1, :: step + 1] for step in range(4)]
        canvas = np.zeros((256, 256 * 4, 3), dtype=np.uint8)
        for place, one in enumerate(four):
            canvas[: len(one), 256 * place : 256 * place + one.shape[1]] = one
        scores = [found.score for found in yunet.detect(canvas)]
        assert len(scores) > 1
        assert all(a >= b for a, b in pairwise(scores))


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


def applied(matrix: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    moved: NDArray[np.float64] = points @ matrix[:, :2].T + matrix[:, 2]
    return moved


def umeyama(points: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """By singular values, for any dimension (Umeyama 1991, eqs. 40-42)."""
    a, b = points - points.mean(0), targets - targets.mean(0)
    u, s, vt = np.linalg.svd(b.T @ a)
    sign = np.diag([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u @ sign @ vt
    scale = np.trace(np.diag(s) @ sign) / (a**2).sum()
    return np.column_stack([scale * rotation, targets.mean(0) - scale * rotation @ points.mean(0)])


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_the_closed_form_is_umeyamas(seed: int) -> None:
    points, targets = stream(seed, "points").normal(50, 20, (2, 5, 2))
    np.testing.assert_allclose(similarity(points, targets), umeyama(points, targets), rtol=1e-9, atol=1e-7)


@settings(max_examples=60)
@given(st.floats(-3.1, 3.1), st.floats(0.05, 20), st.floats(-500, 500), st.floats(-500, 500))
def test_a_similarity_is_undone_exactly(angle: float, scale: float, right: float, down: float) -> None:
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = ARCFACE_112 @ turn.T + (right, down)
    np.testing.assert_allclose(applied(similarity(moved, ARCFACE_112), moved), ARCFACE_112, atol=1e-8)


def test_a_mirrored_face_is_not_mirrored_back() -> None:
    mirrored = ARCFACE_112 * (-1, 1)
    assert np.linalg.det(similarity(mirrored, ARCFACE_112)[:, :2]) > 0


def test_five_times_the_same_point_is_only_shifted() -> None:
    matrix = similarity(np.ones((5, 2)), ARCFACE_112)
    np.testing.assert_allclose(matrix[:, :2], np.eye(2))


@pytest.mark.parametrize(("template", "size"), [(ARCFACE_112, 112), (DLIB_150, 150)])
@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0, 9.0])
def test_marks_drawn_at_the_landmarks_land_on_the_template(
    template: NDArray[np.float64], size: int, scale: float
) -> None:
    angle = 0.4
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    landmarks = (template - size / 2) @ turn.T + 1.2 * size * max(scale, 1)
    side = int(2.4 * size * max(scale, 1))
    rows, columns = np.indices((side, side))
    for number in range(5):
        distance = np.hypot(columns - landmarks[number, 0], rows - landmarks[number, 1])
        picture = np.repeat((255 * np.exp(-((distance / (3 * scale)) ** 2)))[..., None], 3, axis=2).astype(np.uint8)
        aligned = align_face(picture, landmarks, template, size)[..., 0].astype(float)
        assert aligned.shape == (size, size)
        ys, xs = np.indices(aligned.shape)
        centre = np.array([(aligned * xs).sum(), (aligned * ys).sum()]) / aligned.sum()
        np.testing.assert_allclose(centre, template[number], atol=0.3)


def test_both_templates_are_upright_faces_left_before_right() -> None:
    for template, size in ((ARCFACE_112, 112), (DLIB_150, 150)):
        left_eye, right_eye, nose, left_mouth, right_mouth = template
        assert 0 < left_eye[0] < nose[0] < right_eye[0] < size
        assert left_eye[1] < nose[1] < left_mouth[1] < size
        assert left_mouth[0] < right_mouth[0]
