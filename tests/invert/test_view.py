"""If these fail, an attack optimises another encoder, window or projection than the one that made the targets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encode.tiny import DIM, SIZE, noise
from tests.invert.toy import LATENT, SLOTS, ToyEncoder, ToyPrior
from tests.prior.gradients import relative_error
from tests.refusals.table import refused
from unface.data import Space
from unface.encode import aligned, framed, space_of
from unface.erase import Projection, RandomSubspace
from unface.invert import Ledger, Threat
from unface.invert.view import FFHQ, View, Window, as_pictures, in_parts, window_of
from unface.prior.diffusion import CELEBA_FACE
from unface.seeds import stream


def projection(rank: int = 3) -> Projection:
    made = RandomSubspace(rank=rank).fit(np.eye(DIM)).projection_
    return replace(made, space=space_of(ToyEncoder()))


@pytest.mark.parametrize("size", [SIZE, 2 * SIZE])
@pytest.mark.parametrize("channels", ["RGB", "BGR"])
def test_a_picture_has_the_vector_that_the_encoder_stores(size: int, channels: str) -> None:
    encoder = ToyEncoder(channels=channels)
    pictures = noise(3, size)
    stored = encoder.encode(pictures)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    seen = View(encoder)(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255).numpy()
    # Resized pictures of the store are rounded to 8 bits.
    assert np.einsum("nd,nd->n", seen, stored).min() > 1 - (1e-6 if size == SIZE else 1e-3)
    erased = View(encoder, projection())(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255).numpy()
    released = projection().apply(stored)
    np.testing.assert_allclose(np.linalg.norm(erased, axis=1), 1, rtol=1e-6)
    assert np.einsum("nd,nd->n", erased, released).min() > 1 - (1e-6 if size == SIZE else 1e-3)


def test_an_aligned_recogniser_sees_the_face_window() -> None:
    recogniser = ToyEncoder(alignment="arcface112")
    pictures = [picture.repeat(16, 0).repeat(16, 1) for picture in noise(2, 16)]
    window = [picture[31:231, 28:228] for picture in pictures]
    expected = ToyEncoder().encode(
        [framed(aligned(one, None, recogniser.card.input), recogniser.card.input) for one in window]
    )
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    seen = View(recogniser)(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255).numpy()
    assert np.einsum("nd,nd->n", seen, expected).min() > 1 - 1e-3
    assert (FFHQ.left * 256, FFHQ.top * 256, FFHQ.side * 256) == (28, 31, 200)


def test_gradients_through_prior_encoder_and_projection_match_finite_differences() -> None:
    prior, view = ToyPrior(torch.float64), View(ToyEncoder(), projection()).cast(torch.float64).double()
    target = torch.nn.functional.normalize(torch.from_numpy(stream(0, "target").standard_normal((2, DIM))), dim=1)
    at = torch.from_numpy(0.1 * stream(0, "latent").standard_normal((2, SLOTS, LATENT)))
    assert relative_error(lambda w: (view(prior.decode(w, SIZE)) * target).sum(), at) < 1e-6


def test_another_space_shares_the_network_and_the_pool() -> None:
    prior, raw = ToyPrior(), View(ToyEncoder())
    erased, ledger = raw.with_projection(projection()), Ledger()
    assert erased.network is raw.network
    threat = Threat("raw", "tiny", raw, prior)
    pool = threat.pool(9, ledger)
    assert threat.of_space("random", erased, None).pool(9, ledger) is pool
    assert ledger.passes["encoder forward"] == ledger.passes["prior forward"] == 9
    target = erased.released(pool.vectors[4:5])
    places, cosines = pool.best(erased, target, 2)
    assert int(places[0, 0]) == 4
    assert float(cosines[0, 0]) == pytest.approx(1, abs=1e-6)
    assert View(ToyEncoder(), projection())(prior.decode(pool.latents, SIZE)).allclose(
        erased.released(pool.vectors), atol=1e-6
    )


def test_bad_encoders_and_projections_are_refused_in_one_line() -> None:
    class Closed:
        card, name, dim = ToyEncoder().card, "closed", DIM

        def encode(self, images: object) -> None: ...

    with refused("encoder", None, "'closed'"):
        View(Closed())  # type: ignore[arg-type]
    other = replace(projection(), space=Space("sface", None, DIM, normalised=True))
    with refused("projection", "projection"):
        View(ToyEncoder(), other)


def test_a_diffusion_prior_says_where_its_faces_are(tmp_path: Path) -> None:
    assert window_of("mobilestylegan") == FFHQ
    assert window_of(tmp_path) == Window(*CELEBA_FACE)
    (tmp_path / "training.json").write_text('{"face": [0.1, 0.2, 0.7]}')
    assert window_of(tmp_path) == Window(0.1, 0.2, 0.7)
    (tmp_path / "training.json").write_text('{"face": [0.5, 0.2, 0.7]}')
    with refused("prior", "test_a_diffusion_prior_says_wh0/training.json"):
        window_of(tmp_path)


def test_pictures_are_rounded_to_bytes() -> None:
    assert as_pictures(torch.full((1, 3, 1, 1), 0.5)).tolist() == [[[[128, 128, 128]]]]


def test_work_that_does_not_fit_into_memory_is_done_in_smaller_parts() -> None:
    tried: list[tuple[int, int]] = []

    def doubled(part: slice) -> torch.Tensor:
        tried.append((part.start, part.stop))
        if part.stop - part.start > 3:
            raise torch.cuda.OutOfMemoryError
        return 2 * torch.arange(part.start, part.stop)

    assert in_parts(10, doubled, 8).tolist() == [2 * number for number in range(10)]
    assert tried == [(0, 8), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]

    def never(part: slice) -> torch.Tensor:
        raise torch.cuda.OutOfMemoryError

    with refused("inversion"):
        in_parts(10, never, 8)
