"""Certificates against matrices of known rank and conditioning, dense algebra, and the numbers of a first trial."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.data import read_images
from unface.progress import Silent
from unface.protect.certificate import MatrixFrontEnd, SchemeFrontEnd, Spectrum, probe
from unface.protect.frequency import SCHEMES, FrontEnd, scheme
from unface.protect.measure import Portraits, measure_certificate, portraits
from unface.result.certificate import CertificateResult
from unface.seeds import stream

Pixels = NDArray[np.float64]
NOBODY = Path(__file__).parents[1] / "pictures" / "nobody.zip"
SIDE = 4
INPUTS = 3 * SIDE * SIDE


def made_matrix(values: list[float], outputs: int = 60) -> Pixels:
    """A matrix (outputs, 48) with these singular values and random axes."""
    random = stream(0, "matrix")
    left = np.linalg.qr(random.standard_normal((outputs, len(values))))[0]
    right = np.linalg.qr(random.standard_normal((INPUTS, len(values))))[0]
    matrix: Pixels = (left * values) @ right.T
    return matrix


def portraits_of(pixels: Pixels) -> Portraits:
    people = np.arange(len(pixels), dtype=np.int64) // 2
    return Portraits("made", "0" * 64, np.rint(pixels).astype(np.uint8), people)


def test_rank_and_condition_of_matrices_made_to_have_them() -> None:
    spectrum = MatrixFrontEnd(made_matrix([50, 20, 5, 0.5]), SIDE).spectrum()
    assert (spectrum.inputs, spectrum.rank) == (48, 4)
    assert spectrum.condition == pytest.approx(100)
    full = MatrixFrontEnd(made_matrix(list(np.linspace(1, 7, INPUTS))), SIDE).spectrum()
    assert full.rank == 48
    assert full.condition == pytest.approx(7)
    nothing = MatrixFrontEnd(np.zeros((5, INPUTS)), SIDE).spectrum()
    assert (nothing.rank, nothing.condition, nothing.psnr(1.0)) == (0, None, None)


def test_psnr_under_noise_is_what_least_squares_gets_on_many_draws() -> None:
    matrix, random = made_matrix(list(np.linspace(0.5, 3, INPUTS))), stream(1, "noise")
    noise = 2.0 * random.standard_normal((4000, len(matrix)))
    error = float(((noise @ np.linalg.pinv(matrix).T) ** 2).mean())
    expected = 10 * np.log10(255**2 / error)
    assert MatrixFrontEnd(matrix, SIDE).spectrum().psnr(2.0) == pytest.approx(expected, abs=0.05)
    assert Spectrum(np.ones(9)).psnr(1.0) == pytest.approx(48.1308, abs=1e-4)  # 20 log10 255


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("size", [6, 7])
def test_a_scheme_has_the_singular_values_of_its_whole_matrix(name: str, size: int) -> None:
    front, exact = FrontEnd(scheme(name), size), SchemeFrontEnd(scheme(name), size)
    basis = np.eye(3 * size * size).reshape(-1, size, size, 3)
    zero = front.planes(np.zeros((1, size, size, 3)))
    for number in (0, len(front.scheme.subsets) - 1):
        sent = front.channels(front.planes(basis) - zero, number).reshape(len(basis), -1)
        dense = np.linalg.svd(sent, compute_uv=False)
        found = np.sort(exact.spectrum(number).values)[::-1]
        assert np.abs(found - dense).max() <= 1e-5 * dense.max()


def test_dctdp_and_duetface_lose_one_dimension_of_a_plane() -> None:
    """At 20 × 20, as a first trial found: condition 11 and 430; a mean budget of 2 in place of 4 leaves 57 dB."""
    plane = SchemeFrontEnd(scheme("dctdp"), 20).plane_spectrum(0)
    assert plane.rank == 20 * 20 - 1
    assert plane.condition == pytest.approx(11.2, abs=0.1)
    assert plane.psnr(np.sqrt(2) / 2) == pytest.approx(57.65, abs=0.05)
    assert plane.psnr(np.sqrt(2) / 4) == pytest.approx(57.65 + 20 * np.log10(2), abs=0.05)
    plane = SchemeFrontEnd(scheme("duetface"), 20).plane_spectrum(0)
    assert plane.rank == 20 * 20 - 1
    assert plane.condition == pytest.approx(430, rel=0.01)


def test_what_dctdp_loses_is_the_brightness_of_each_plane() -> None:
    front = SchemeFrontEnd(scheme("dctdp", "as-attacked"), 12)
    pictures = stream(0, "pictures").uniform(0, 255, (3, 12, 12, 3))
    solved, _ = front.reconstruct(pictures, np.full_like(pictures, 100.0), stream(0, "noise"))
    missing = pictures - solved
    assert np.abs(missing - missing.mean(axis=(1, 2), keepdims=True)).max() < 0.01
    assert np.allclose(solved.mean(axis=(1, 2)), 100, atol=0.01)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_reconstruction_explains_what_was_sent_and_keeps_the_guess_elsewhere(name: str) -> None:
    """Least squares by sparse algebra is least squares by a dense pseudo-inverse."""
    size, front = 8, SchemeFrontEnd(scheme(name, "as-attacked"), 8)
    random = stream(0, "pictures")
    pictures, guesses = random.uniform(0, 255, (2, size, size, 3)), random.uniform(0, 255, (2, size, size, 3))
    basis = np.eye(size * size).reshape(-1, 1, size, size).repeat(3, axis=1)
    sent = front.front.channels(basis)[:, 0].reshape(size * size, -1).T.astype(np.float64)
    shown = np.linalg.pinv(sent, rcond=1e-5) @ sent
    difference = (front.front.planes(pictures) - front.front.planes(guesses)).reshape(2, 3, -1)
    expected = front.front.planes(guesses) + (difference @ shown.T).reshape(2, 3, size, size)
    solved, _ = front.reconstruct(pictures, guesses, stream(0, "noise"))
    assert np.abs(front.front.planes(solved) - expected).max() < 0.5


def test_published_partialface_reaches_what_a_first_trial_found_and_more() -> None:
    """At 20 × 20 and with grey for a guess: 14 to 18 dB for five of its subsets; the sixth loses brightness alone."""
    images = read_images(NOBODY).take(range(0, 288, 4))
    given = portraits(images, 20, recogniser=None, detector=None, progress=Silent())
    pixels = given.pixels.astype(np.float64)
    front = SchemeFrontEnd(scheme("partialface"), 20)
    solved, drawn = front.reconstruct(pixels, np.full_like(pixels, 128.0), stream(0, "subsets"))
    error = ((np.clip(solved, 0, 255) - pixels) ** 2).mean(axis=(1, 2, 3))
    quality = [float(np.mean(10 * np.log10(255**2 / error[drawn == number]))) for number in range(6)]
    assert all(13 < one < 19 for one in quality[:5])
    assert quality[5] > 20
    assert [1200 - front.spectrum(number).rank for number in (1, 5)] == [3 * 39, 3]


def crop(pictures: Pixels) -> Pixels:
    return pictures[:, 1:3, :, :] * 2 + 7


def rectified(pictures: Pixels) -> Pixels:
    return np.maximum(pictures.reshape(len(pictures), -1) - 128, 0)


def test_a_linear_function_is_found_with_its_rank_and_condition() -> None:
    probed = probe(crop, SIDE, name="here:crop")
    assert probed.kind == "linear"
    assert (probed.front_end.spectrum().rank, probed.front_end.outputs) == (24, [24])
    assert probed.front_end.spectrum().condition == pytest.approx(1)

    matrix = made_matrix([100, 10, 1])
    found = probe(lambda pictures: pictures.reshape(len(pictures), -1) @ matrix.T, SIDE, name="here:made").front_end
    assert found.spectrum().rank == 3
    assert found.spectrum().condition == pytest.approx(100, rel=1e-6)


def test_a_piecewise_linear_function_is_certified_around_one_picture() -> None:
    probed = probe(rectified, SIDE, name="here:rectified")
    assert probed.kind == "piecewise linear"
    bright = int((stream(0, "probe").uniform(64, 192, (4, INPUTS))[0] > 128).sum())
    assert probed.front_end.spectrum().rank == bright


def test_a_certificate_survives_its_file(tmp_path: object) -> None:
    given = portraits_of(stream(0, "pictures").uniform(0, 255, (6, 12, 12, 3)))
    result = measure_certificate(
        SchemeFrontEnd(scheme("dctdp"), 12), name="dctdp", variant="published", given=given, progress=Silent()
    )
    assert CertificateResult.load(result.save(str(tmp_path))) == result
    assert result.decision == "hides almost nothing"
    assert result.verdict.startswith("This front end hides almost nothing: all but 3 of the 432 dimensions")
    whole = [one.model_copy(update={"rank": result.inputs}) for one in result.maps]
    assert "nothing: all 432 dimensions of a" in result.model_copy(update={"maps": whole}).verdict
    assert result.pictures is not None
    assert result.pictures.psnr.value > result.pictures.guess_psnr.value + 5
    assert result.maps[0].noise_psnr == pytest.approx(59, abs=1.5)


def test_noise_that_drowns_everything_is_not_called_clear() -> None:
    """A front end that loses nothing and adds much noise hides part of a picture."""
    result = measure_certificate(SchemeFrontEnd(scheme("dctdp"), 6), name="dctdp", progress=Silent())
    loud = result.model_copy(update={"maps": [result.maps[0].model_copy(update={"noise_psnr": 12.0})]})
    assert loud.decision == "hides part of a picture"
