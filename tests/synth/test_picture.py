"""If this fails, a variation changes what it should leave, or does not change what it says it does."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.synth.toy import DarkIsNobody, ToyPrior
from unface.faces import ARCFACE_112, Face
from unface.synth.palette import Palette, draw, moved, palette_of, principal_directions, turning
from unface.synth.photograph import PLAIN, photographed
from unface.synth.recipe import Recipe

GENTLE = torch.linspace(0.2, 0.8, 128)
FACE = torch.stack([GENTLE.expand(128, 128), GENTLE.expand(128, 128).T, torch.full((128, 128), 0.4)])[None]
BLACK = torch.zeros(1, 3, 128, 128)


def taken(**change: object) -> torch.Tensor:
    return photographed(FACE, [replace(PLAIN, **change)], BLACK, 128)[0].float() / 255  # type: ignore[arg-type]


ORIGINAL = FACE[0].permute(1, 2, 0)


def test_a_plain_picture_is_the_face_itself() -> None:
    assert (taken() - ORIGINAL).abs().max() <= 1 / 255


def test_a_smaller_picture_is_the_mean_of_its_pixels() -> None:
    half = photographed(FACE, [PLAIN], BLACK, 64)[0].float() / 255
    assert (half - ORIGINAL.reshape(64, 2, 64, 2, 3).mean(dim=(1, 3))).abs().max() <= 1 / 255


def test_mirrored_is_left_for_right() -> None:
    assert (taken(mirrored=True) - ORIGINAL.flip(1)).abs().max() <= 1 / 255


def test_zoom_shows_the_middle_larger() -> None:
    twice = taken(zoom=2.0)
    assert torch.allclose(twice[64, 64], ORIGINAL[64, 64], atol=0.01)
    assert torch.allclose(twice[0, 0], ORIGINAL[32, 32], atol=0.01)


def test_a_shift_moves_by_its_share_of_the_picture() -> None:
    assert torch.allclose(taken(shift=(0.25, 0.0))[64, 32], ORIGINAL[64, 64], atol=0.01)
    assert torch.allclose(taken(shift=(0.0, 0.25))[32, 64], ORIGINAL[64, 64], atol=0.01)


def test_one_stop_is_twice_the_light_and_side_light_falls_from_one_edge_to_the_other() -> None:
    brighter = taken(exposure=1.0)
    np.testing.assert_allclose(brighter[20, 20, 2] ** 2.2, 2 * 0.4**2.2, rtol=0.02)
    beside = taken(side_light=(1.0, 0.0))[64, :, 2] ** 2.2
    np.testing.assert_allclose(beside[-1] / beside[0], 2, rtol=0.05)
    warm = taken(warmth=0.1)[64, 64] ** 2.2 / ORIGINAL[64, 64] ** 2.2
    np.testing.assert_allclose(warm, [1.1, 1.0, 0.9], rtol=0.03)


def test_blur_keeps_the_mean_and_takes_away_the_edge() -> None:
    edge = torch.zeros(1, 3, 128, 128)
    edge[..., 64:] = 1
    blurred = photographed(edge, [replace(PLAIN, blur=8.0)], BLACK, 128)[0].float() / 255
    np.testing.assert_allclose(blurred.mean(), 0.5, atol=0.01)
    # A Gaussian of 4 pixels: one standard deviation beside the edge lies Φ(1) = 0.84 of the step.
    np.testing.assert_allclose(blurred[64, 67:69, 0].mean(), 0.84, atol=0.01)


def test_pictures_of_one_batch_are_blurred_each_by_its_own() -> None:
    faces = FACE.repeat(2, 1, 1, 1)
    sharp, soft = photographed(faces, [PLAIN, replace(PLAIN, blur=8.0)], BLACK, 128)
    assert (sharp.float() / 255 - ORIGINAL).abs().max() <= 2 / 255
    assert (sharp[0, 0].float() - soft[0, 0].float()).abs().max() > 1


def test_another_background_leaves_the_face_and_changes_the_corners() -> None:
    placed = taken(background=0)
    assert (placed[40:90, 44:84] - ORIGINAL[40:90, 44:84]).abs().max() < 0.05
    assert placed[:8, :8].max() < 0.02
    assert placed[:8, -8:].max() < 0.02


@pytest.fixture(scope="module")
def palette() -> Palette:
    return palette_of(ToyPrior(), Recipe(5, 2, 64), DarkIsNobody())


def test_late_slots_go_to_another_person_early_ones_part_of_the_way_and_the_middle_stays(palette: Palette) -> None:
    latent = torch.tensor([1.0, 2.0, 3.0, 4.0])
    one = replace(PLAIN, late=1.0, late_towards=7, early=0.25, early_towards=9, along=np.zeros(4, dtype=np.float32))
    (slots,) = moved(latent, [one], palette, 23)
    assert torch.equal(slots[5:13], latent.expand(8, 4))
    assert torch.equal(slots[13:], palette.others[7].expand(10, 4))
    torch.testing.assert_close(slots[:5], (0.75 * latent + 0.25 * palette.others[9]).expand(5, 4))
    (turned,) = moved(latent, [replace(one, turned=-2.0)], palette, 23)
    torch.testing.assert_close(turned[:5], slots[:5] - 2 * palette.turning)
    assert torch.equal(turned[5:], slots[5:])


class Looking:
    """A prior whose second number moves the nose of a drawn face, and whose first, the larger one, only its colour."""

    name, slots, latent_dim, sizes, device = "looking", 23, 3, (128,), torch.device("cpu")

    def mean_latent(self) -> torch.Tensor:
        return torch.zeros(3)

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> torch.Tensor:
        raise NotImplementedError

    def decode(self, latents: torch.Tensor, size: int) -> torch.Tensor:
        return torch.stack([torch.full((3, size, size), 0.5 + 0.1 * float(latent[1])) for latent in latents])


class Nose:
    """Finds the nose of ``Looking`` where its brightness says."""

    name = "nose"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        landmarks = ARCFACE_112.copy()
        landmarks[2, 0] += (image.mean() / 255 - 0.5) * 100
        return [Face(np.array([20.0, 20.0, 70.0, 80.0]), landmarks, 0.9)]


def test_the_direction_that_turns_the_head_is_found_by_the_nose() -> None:
    directions = torch.diag(torch.tensor([3.0, 1.0, 0.5]))
    assert torch.equal(turning(Looking(), directions, Nose()), directions[1])


def test_directions_are_the_principal_components_as_long_as_people_spread_along_them() -> None:
    rng = np.random.default_rng(0)
    latents = torch.from_numpy(rng.standard_normal((20_000, 3)) * [1.0, 3.0, 2.0] + 5).float()
    found = principal_directions(latents, 2)
    torch.testing.assert_close(found, torch.tensor([[0.0, 3.0, 0.0], [0.0, 0.0, 2.0]]), atol=0.1, rtol=0)


def test_a_try_depends_on_its_person_and_number_and_is_weaker_where_that_was_needed(palette: Palette) -> None:
    first, again = (draw(0, 3, 1, palette) for _ in range(2))
    assert (first.late, first.zoom, first.quality) == (again.late, again.zoom, again.quality)
    others = [draw(0, 3, 2, palette), draw(0, 4, 1, palette), draw(1, 3, 1, palette)]
    assert len({first.zoom, *(other.zoom for other in others)}) == 4
    weaker = draw(0, 3, 1, palette, weaker=2)
    assert weaker.early == pytest.approx(0.64 * first.early)
    np.testing.assert_allclose(weaker.along, 0.64 * first.along, rtol=1e-5)
    assert weaker.zoom == first.zoom
