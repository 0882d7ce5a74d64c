"""If this fails, faces are not found, found elsewhere, or the bystander is taken for the person."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.real import nobody_pictures, weights_here
from tests.refusals.table import refused
from unface.data import decode, read_images
from unface.faces import Face, Remembered, box_crop, load_detector, main_face
from unface.faces.detect import Scrfd, YuNet, _scrfd_decoded, suppressed


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
