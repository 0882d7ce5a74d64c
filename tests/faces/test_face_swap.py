"""If this fails, a swapped picture shows the host's face, the donor's elsewhere, or another background."""

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from tests.faces.faces_to_swap import DONOR, HOST, Landmarks, drawn, landmarks_at
from tests.faces.tiny_inswapper import EMAP, STRENGTH, TILES, written
from tests.refusals.table import refused
from unface.faces import ARCFACE_112, align_face, face_ellipse, similarity
from unface.faces.face_swap import InSwapper, _matching, put_face, swap_face, swap_place
from unface.seeds import stream


@settings(max_examples=25)
@given(st.floats(-3.1, 3.1), st.floats(0.6, 1.15), st.integers(0, 1000))
def test_outside_the_mask_the_host_is_untouched_and_the_mask_is_the_ellipse_and_its_feather(
    angle: float, scale: float, seed: int
) -> None:
    where = landmarks_at(100, 100, scale, angle)
    host, donor = drawn(where, seed), drawn(DONOR, seed + 1)
    swapped = swap_face(host, where, donor, DONOR)
    assert swapped.ok
    assert swapped.image.dtype == np.uint8
    np.testing.assert_array_equal(swapped.image[~swapped.mask], host[~swapped.mask])
    ellipse = face_ellipse(where, host.shape)
    distance = cv2.distanceTransform((~ellipse).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    np.testing.assert_array_equal(swapped.mask, distance < 4)
    assert np.mean(swapped.image[ellipse] != host[ellipse]) > 0.8


def test_the_inputs_are_left_alone_and_the_same_comes_out_twice() -> None:
    host, donor = drawn(HOST, 0), drawn(DONOR, 1)
    before = host.copy(), donor.copy()
    first, second = (swap_face(host, HOST, donor, DONOR) for _ in range(2))
    np.testing.assert_array_equal(first.image, second.image)
    np.testing.assert_array_equal(host, before[0])
    np.testing.assert_array_equal(donor, before[1])


@pytest.mark.parametrize("angle", [-0.7, 0.0, 0.5])
@pytest.mark.parametrize("mole", [(-14.0, 6.0), (16.0, 3.0), (0.0, -20.0)])
def test_a_mole_of_the_donor_lands_where_the_similarity_of_the_landmarks_takes_it(
    angle: float, mole: tuple[float, float]
) -> None:
    """Also for a donor of other proportions, which must be kept: the nose is long and the mouth is wide."""
    where = landmarks_at(100, 100, 1.0, angle)
    longer = DONOR + np.array([(0, 0), (0, 0), (0, 6), (-6, 3), (6, 3)])
    spot = DONOR.mean(axis=0) + mole
    bare, marked = drawn(longer, 1), drawn(longer, 1).astype(float)
    rows, columns = np.indices(bare.shape[:2])
    marked += 80 * np.exp(-((columns - spot[0]) ** 2 + (rows - spot[1]) ** 2) / (2 * 2.5**2))[..., None]
    host = drawn(where, 0)
    first, second = (
        swap_face(host, where, np.clip(picture, 0, 255).astype(np.uint8), longer).image.astype(float).sum(axis=2)
        for picture in (bare, marked)
    )
    brighter = second - first
    strong = np.where(brighter > 0.5 * brighter.max(), brighter, 0)
    found = np.array([(strong * columns).sum(), (strong * rows).sum()]) / strong.sum()
    matrix = similarity(longer, where)
    np.testing.assert_allclose(found, matrix[:, :2] @ spot + matrix[:, 2], atol=0.7)


def test_a_face_swapped_with_itself_stays() -> None:
    host = drawn(HOST, 0)
    swapped = swap_face(host, HOST, host, HOST)
    apart = np.abs(swapped.image.astype(int) - host)
    assert apart.mean() < 0.5
    assert apart[face_ellipse(HOST, host.shape)].max() <= 4


def test_the_donors_features_come_and_the_hosts_go() -> None:
    """By the order of levels in a channel, which matching colours keeps."""
    middle = middle_of_the_face()
    for seed in range(0, 20, 2):
        host, donor = drawn(HOST, seed), drawn(HOST, seed + 1)
        image = swap_face(host, HOST, donor, HOST).image
        shown, theirs, own = (picture[middle].T for picture in (image, donor, host))
        like_donor, like_host = (
            np.mean([spearmanr(*channel).statistic for channel in zip(shown, other, strict=True)])
            for other in (theirs, own)
        )
        assert like_donor > 0.95
        assert like_donor > like_host + 0.2


def test_contrast_and_colour_of_the_face_are_the_hosts() -> None:
    middle = middle_of_the_face()
    for seed in range(0, 20, 2):
        host, donor = drawn(HOST, seed, contrast=0.5), drawn(HOST, seed + 1, contrast=1.6)
        shown, theirs, own = (
            picture[middle].astype(float) for picture in (swap_face(host, HOST, donor, HOST).image, donor, host)
        )
        assert theirs.std(axis=0).sum() > 1.5 * own.std(axis=0).sum()
        assert shown.std(axis=0).sum() == pytest.approx(own.std(axis=0).sum(), rel=0.2)
        np.testing.assert_allclose(shown.mean(axis=0), own.mean(axis=0), atol=5)


def middle_of_the_face() -> NDArray[np.bool_]:
    centre = HOST.mean(axis=0)
    return face_ellipse(centre + 0.6 * (HOST - centre), (200, 200))


def test_there_is_no_step_at_the_edge_of_the_face() -> None:
    """A bright face with dark hair around it: colours matched within would end in a step of 120 without Poisson."""
    host = np.full((200, 200, 3), 60, dtype=np.uint8)
    host[middle_of_the_face()] = 180
    donor = np.full((200, 200, 3), 120, dtype=np.uint8)
    swapped = swap_face(host, HOST, donor, HOST)
    ellipse = face_ellipse(HOST, host.shape)
    rim = ellipse & ~(cv2.erode(ellipse.astype(np.uint8), np.ones((3, 3))) > 0)
    assert np.abs(swapped.image[rim].astype(int) - 60).max() < 12


def test_a_donor_six_times_as_large_gives_the_same_picture() -> None:
    host, donor = drawn(HOST, 0), drawn(DONOR, 1)
    large = np.kron(donor, np.ones((6, 6, 1), dtype=np.uint8))
    small_one = swap_face(host, HOST, donor, DONOR).image.astype(int)
    large_one = swap_face(host, HOST, large, (DONOR + 0.5) * 6 - 0.5).image
    assert np.abs(small_one - large_one)[face_ellipse(HOST, host.shape)].mean() < 1.5


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(50, 256))
def test_matched_levels_keep_their_order_and_are_spread_as_the_others(seed: int, n: int) -> None:
    draw = stream(seed, "levels")
    low, high = sorted(draw.integers(0, 256, 2))
    values = draw.permutation(256)[:n].astype(np.uint8)
    like = draw.integers(low, high + 1, n).astype(np.uint8)
    table = _matching(values, like).astype(int)
    assert all(a <= b for a, b in pairwise(table))
    assert like.min() <= table[values].min() <= table[values].max() <= like.max()
    apart = np.abs(np.sort(table[values]) - np.sort(like).astype(int))
    assert apart.mean() <= 0.02 * (high - low) + 0.5
    np.testing.assert_array_equal(_matching(values, values), np.arange(256))


def test_matching_worked_by_hand() -> None:
    """10 and 20 in equal parts against 100 and 200: rank to rank; 15 lies between, 5 and 25 keep their distance.

    A face of one level takes the middle one.
    """
    table = _matching(np.array([10, 10, 20, 20], dtype=np.uint8), np.array([100, 100, 200, 200], dtype=np.uint8))
    assert [int(table[level]) for level in (5, 10, 15, 20, 25)] == [95, 100, 150, 200, 205]
    assert _matching(np.full(5, 50, dtype=np.uint8), np.array([0, 10, 20, 30, 90], dtype=np.uint8))[50] == 20


@pytest.mark.parametrize(
    ("landmarks", "reason"),
    [
        (np.full((5, 2), 100.0), "landmarks are no face's"),
        (HOST * (1, 0) + (0, 100), "landmarks are no face's"),
        (HOST[[1, 0, 2, 4, 3]], "landmarks are no face's"),
        (np.where(np.arange(10).reshape(5, 2) == 4, np.nan, HOST), "landmarks are not five points"),
        (HOST[:4], "landmarks are not five points"),
        (HOST - np.array([55, 0]), "face at the border"),
        (HOST + np.array([0, 50]), "face at the border"),
        (HOST + np.array([900, 0]), "face at the border"),
        (landmarks_at(100, 100, 3.0), "face at the border"),
        (landmarks_at(100, 100, 0.3), "face too small"),
    ],
)
def test_what_cannot_be_swapped_says_why_and_whose_and_leaves_the_host(landmarks: Landmarks, reason: str) -> None:
    host, donor = drawn(HOST, 0), drawn(DONOR, 1)
    for whose, swapped in (
        ("host", swap_face(host, landmarks, donor, DONOR)),
        ("donor", swap_face(host, HOST, donor, landmarks)),
    ):
        assert not swapped.ok
        assert swapped.reason == f"{whose}: {reason}"
        np.testing.assert_array_equal(swapped.image, host)
        assert swapped.mask.shape == host.shape[:2]
        assert not swapped.mask.any()


def test_a_picture_that_is_none_is_a_reason_too() -> None:
    host = drawn(HOST, 0)
    assert swap_face(host[..., 0], HOST, host, HOST).reason == "host: not an RGB picture of bytes"
    bright = (host / 255.0).astype(np.float32)
    assert swap_face(host, HOST, bright, HOST).reason == "donor: not an RGB picture of bytes"  # type: ignore[arg-type]


def test_an_error_of_opencv_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise cv2.error("assertion failed")

    monkeypatch.setattr(cv2, "seamlessClone", broken)
    host = drawn(HOST, 0)
    swapped = swap_face(host, HOST, drawn(DONOR, 1), DONOR)
    assert swapped.reason == "OpenCV could not blend the face"
    np.testing.assert_array_equal(swapped.image, host)


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=10), st.integers(1, 60), st.integers(1, 60))
def test_no_landmarks_and_no_size_raise(points: list[float], height: int, width: int) -> None:
    picture = np.zeros((height, width, 3), dtype=np.uint8)
    swapped = swap_face(picture, np.array(points).reshape(5, 2), picture, np.array(points).reshape(5, 2))
    assert swapped.image.shape == picture.shape


def embed(face: NDArray[np.uint8]) -> NDArray[np.float32]:
    """512 numbers that depend on where the picture is bright."""
    assert face.shape == (112, 112, 3)
    return face[::7, ::7].astype(np.float32).reshape(-1)[:512] - 128


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("swapper") / "inswapper_128.onnx")


def test_the_generator_sees_the_hosts_crop_and_the_mapped_donor_and_its_face_is_put_back(model: Path) -> None:
    """The same by hand: v · emap of length one, the crop of 128 with InsightFace's points, RGB from 0 to 1."""
    host, donor = drawn(HOST, 0), drawn(DONOR, 1)
    latent = embed(align_face(donor, DONOR, ARCFACE_112, 112)) @ EMAP
    latent = latent / np.linalg.norm(latent)
    points = np.array(
        [(46.2946, 51.6963), (81.5318, 51.5014), (64.0252, 71.7366), (49.5493, 92.3655), (78.7299, 92.2041)]
    )
    crop = align_face(host, HOST, points, 128) / 255
    crop += STRENGTH * (TILES.T @ latent[:256].reshape(16, 16) @ TILES)[..., None]
    face = np.rint(np.clip(crop, 0, 1) * 255).astype(np.uint8)
    place = swap_place(host, HOST, donor, DONOR)
    assert not isinstance(place, str)
    expected = put_face(host, place, face, points)
    found = InSwapper(model, embed)(host, HOST, donor, DONOR)
    assert found.ok
    np.testing.assert_array_equal(found.mask, expected.mask)
    # A rounding of the crop may fall to either side; nothing else differs.
    assert np.abs(found.image.astype(int) - expected.image).mean() < 0.05
    assert np.abs(found.image.astype(int) - host)[found.mask].mean() > 3


def test_another_donor_gives_another_face_and_the_length_of_its_vector_does_not_matter(model: Path) -> None:
    host, first, second = drawn(HOST, 0), drawn(DONOR, 1), drawn(DONOR, 2)
    swapper = InSwapper(model, embed)
    one, other = (swapper(host, HOST, donor, DONOR).image.astype(int) for donor in (first, second))
    assert np.abs(one - other)[face_ellipse(HOST, host.shape)].mean() > 2
    longer = InSwapper(model, lambda face: 64 * embed(face))(host, HOST, first, DONOR)
    np.testing.assert_allclose(longer.image, one, atol=1)


def test_outside_the_mask_the_host_is_untouched(model: Path) -> None:
    host = drawn(HOST, 0)
    swapped = InSwapper(model, embed)(host, HOST, drawn(DONOR, 1), DONOR)
    np.testing.assert_array_equal(swapped.image[~swapped.mask], host[~swapped.mask])
    assert 0.9 < swapped.mask.sum() / face_ellipse(HOST, host.shape).sum() < 1.2


def test_what_cannot_be_swapped_has_the_reason_swap_face_gives(model: Path) -> None:
    host, donor, swapper = drawn(HOST, 0), drawn(DONOR, 1), InSwapper(model, embed)
    for bad in (np.ones((5, 2)), HOST - (60, 0), HOST * 0.3 + 60, HOST[:4]):
        for arguments in ((host, bad, donor, DONOR), (host, HOST, donor, bad)):
            swapped = swapper(*arguments)
            assert swapped.reason == swap_face(*arguments).reason
            assert not swapped.ok
            np.testing.assert_array_equal(swapped.image, host)


@pytest.mark.parametrize("fill", [0.0, np.nan, np.inf])
def test_a_donor_without_a_direction_is_a_reason(model: Path, fill: float) -> None:
    swapper = InSwapper(model, lambda _: np.full(512, fill, dtype=np.float32))
    assert swapper(drawn(HOST, 0), HOST, drawn(DONOR, 1), DONOR).reason == "donor: no vector of the face"


def test_a_generator_that_gives_no_numbers_is_a_reason(tmp_path: Path) -> None:
    swapper = InSwapper(written(tmp_path / "broken.onnx", factor=np.inf), embed)
    host = drawn(HOST, 0)
    swapped = swapper(host, HOST, drawn(DONOR, 1), DONOR)
    assert swapped.reason == "INSwapper drew no face"
    np.testing.assert_array_equal(swapped.image, host)


def test_files_of_another_kind_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with refused("faces", "text.onnx", "give inswapper_128.onnx"):
        InSwapper(tmp_path / "text.onnx", embed)
    with refused("faces", "absent.onnx"):
        InSwapper(tmp_path / "absent.onnx", embed)
    with refused("faces", "small.onnx", "'source'", "300"):
        InSwapper(written(tmp_path / "small.onnx", dim=300), embed)
    with refused("faces", "map.onnx", "512", "4"):
        InSwapper(written(tmp_path / "map.onnx", emap=EMAP[:, :4].copy()), embed)


def test_vectors_of_another_recogniser_are_one_sentence(model: Path) -> None:
    swapper = InSwapper(model, lambda _: np.ones(128, dtype=np.float32))
    with refused("faces", "INSwapper", "gave 128", "expected 512", "it w600k_r50"):
        swapper(drawn(HOST, 0), HOST, drawn(DONOR, 1), DONOR)
