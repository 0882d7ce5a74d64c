"""Front ends against an independent implementation, and the channels that each scheme is published with."""

import random
import re
from html import unescape

import numpy as np
import pytest
import scipy.fft
from benchmarks.frequency_speed import thin_products
from numpy.typing import NDArray

from tests.kit import documents
from unface.progress import Silent
from unface.protect.certificate import SchemeFrontEnd
from unface.protect.frequency import BLOCK, SCHEMES, VARIANTS, YCBCR, FrontEnd, scheme
from unface.protect.measure import measure_certificate
from unface.seeds import stream


def by_scipy(pictures: NDArray[np.float64], kept: tuple[int, ...]) -> NDArray[np.float64]:
    """Enlarge by interpolation, convert each large pixel, cut into blocks, transform each by scipy, pick channels."""
    count, size = pictures.shape[:2]
    grid = np.linspace(0, size - 1, BLOCK * size)
    tall = np.stack([np.apply_along_axis(lambda line: np.interp(grid, range(size), line), 0, one) for one in pictures])
    large = np.stack([np.apply_along_axis(lambda line: np.interp(grid, range(size), line), 1, one) for one in tall])
    jpeg = large @ YCBCR.T + np.array([0, 128, 128]) - 128
    blocks = jpeg.reshape(count, size, BLOCK, size, BLOCK, 3).transpose(0, 5, 1, 3, 2, 4)
    found = scipy.fft.dctn(blocks, axes=(4, 5), norm="ortho").reshape(count, 3, size, size, BLOCK * BLOCK)
    channels: NDArray[np.float64] = np.moveaxis(found, -1, 2)[:, :, list(kept)]
    return channels


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", SCHEMES)
def test_channels_are_those_of_an_independent_implementation(name: str, variant: str) -> None:
    pictures = stream(0, "frequency").uniform(0, 255, (2, 24, 24, 3))
    front = FrontEnd(scheme(name, variant), 24)
    for subset, kept in enumerate(front.scheme.subsets):
        expected = by_scipy(pictures, kept)
        got = front.channels(front.planes(pictures), subset)
        assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


def test_at_full_size_the_error_stays_below_1e_4_of_the_range() -> None:
    pictures = stream(0, "frequency").uniform(0, 255, (1, 112, 112, 3))
    front = FrontEnd(scheme("dctdp"), 112)
    got = front.channels(front.planes(pictures))
    assert np.abs(got - by_scipy(pictures, front.scheme.subsets[0])).max() <= 1e-4 * 255


def test_channels_and_noise_are_the_published_ones() -> None:
    counts = {(name, variant): len(scheme(name, variant).subsets[0]) for name in SCHEMES for variant in VARIANTS}
    assert counts == {
        ("dctdp", "published"): 63,
        ("dctdp", "as-attacked"): 63,
        ("duetface", "published"): 54,
        ("duetface", "as-attacked"): 54,
        ("partialface", "published"): 9,
        ("partialface", "as-attacked"): 36,
    }
    dropped = {0, 1, 2, 3, 8, 9, 10, 16, 17, 24}
    sent = [channel for subset in scheme("partialface").subsets for channel in subset]
    assert sorted(sent) == [channel for channel in range(64) if channel not in dropped]
    server = list(scheme("duetface").subsets[0])
    assert scheme("partialface", "as-attacked").subsets[0] == tuple(sorted(random.Random(42).sample(server, 36)))
    assert scheme("dctdp").laplace == 0.25
    assert all(
        scheme(name, variant).laplace is None for name, variant in counts if (name, variant) != ("dctdp", VARIANTS[0])
    )


def test_noise_has_its_scale_and_each_picture_draws_its_own_subset() -> None:
    front = FrontEnd(scheme("dctdp"), 16)
    pictures = np.zeros((4, 16, 16, 3))
    sent, _ = front.protect(pictures, stream(1, "noise"))
    noise = sent - front.channels(front.planes(pictures))
    assert np.abs(noise).mean() == pytest.approx(
        0.25, rel=0.01
    )  # the mean absolute value of Laplace noise is its scale

    partial = FrontEnd(scheme("partialface"), 8)
    pictures = stream(2, "pictures").uniform(0, 255, (60, 8, 8, 3))
    sent, drawn = partial.protect(pictures, stream(3, "subsets"))
    assert set(drawn) == set(range(6))
    for number in (0, 1, 2):
        assert np.array_equal(sent[number], partial.channels(partial.planes(pictures[[number]]), drawn[number])[0])


def test_planes_and_pictures_are_inverse() -> None:
    pictures = stream(0, "planes").uniform(0, 255, (2, 8, 8, 3))
    front = FrontEnd(scheme("dctdp"), 8)
    assert np.allclose(front.pictures(front.planes(pictures)), pictures)


def test_the_benchmark_compares_with_both_whole_products() -> None:
    planes = stream(0, "planes").standard_normal((1, 3, 8, 8)).astype(np.float32)
    front = FrontEnd(scheme("dctdp"), 8)
    product = thin_products(front.bases.astype(np.float32).reshape(64, 8), planes[:, :1])
    spread = product.reshape(8, 8, 8, 8).transpose(0, 2, 1, 3).reshape(64, 8, 8)[1:]
    assert np.allclose(front.channels(planes)[0, 0], spread, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", SCHEMES)
def test_what_a_certificate_says_of_a_scheme_continues_after_its_subject(name: str, variant: str) -> None:
    chosen = scheme(name, variant)
    result = measure_certificate(SchemeFrontEnd(chosen, 6), name=name, notes=chosen.notes, progress=Silent())
    (found,) = result.findings
    assert (found.severity, found.about in ("noise", "channels", "server")) == ("note", True)
    assert found.text[0] != found.text[0].upper() or found.text[0].isdigit(), "as in 'noise: never applied'"
    assert not found.text.endswith(".")
    page = unescape(re.sub(r"<[^>]+>", "", documents.page(result)))
    assert f"{found.about}: {found.text}" in page.replace("\N{NO-BREAK SPACE}", " ")
