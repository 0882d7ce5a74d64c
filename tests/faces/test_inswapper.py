"""If this fails, INSwapper is given another donor or another crop than it was made for, or its face lands elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.faces.faces_to_swap import DONOR, HOST, drawn
from tests.faces.tiny_inswapper import EMAP, STRENGTH, TILES, written
from tests.refusals.table import refused
from unface.faces import ARCFACE_112, align_face, face_ellipse
from unface.faces.face_swap import InSwapper, put_face, swap_face, swap_place


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
