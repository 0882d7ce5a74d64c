"""If these fail, FaceMAE learns another loss than the paper's, or hidden pixels reach what it releases."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.invert.toy import ToyEncoder
from tests.prior.gradients import relative_error
from tests.refusals.table import refused
from unface.encode import Encoder
from unface.protect.facemae import (
    PRESETS,
    Features,
    Hidden,
    Loss,
    MaskedAutoencoder,
    Masking,
    Visible,
    feature_loss,
    patches_of,
    preset_of,
    reconstruct,
    relation_matching,
)
from unface.seeds import stream

TINY = PRESETS["tiny"]
TOY = replace(TINY, size=16, patch=4, dim=16, depth=1, heads=2, decoder_dim=16, decoder_depth=1, decoder_heads=2)
KEY = bytes(range(32))


def frame(size: int = 16) -> NDArray[np.uint8]:
    return stream(0, "frame").integers(0, 256, (size, size, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", ["im", "rm", "irm"])
def test_losses_have_the_gradients_of_finite_differences_through_recogniser_and_autoencoder(kind: Loss) -> None:
    recogniser, model = Features(ToyEncoder()).double(), MaskedAutoencoder(TOY).initialise(0).double()
    pictures = torch.from_numpy(stream(0, "pictures").uniform(size=(3, 3, 16, 16)))
    positions = Masking(0.5).drawn(TOY, 3, torch.Generator().manual_seed(0))
    seen = patches_of(pictures, 4).gather(1, positions[..., None].expand(-1, -1, 48))
    real = recogniser(pictures)
    error = relative_error(lambda x: feature_loss(kind, real, recogniser(model(x, positions)), 0.7), seen, step=1e-5)
    assert error < 1e-5


def test_losses_are_the_distances_worked_by_hand() -> None:
    real = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    made = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    # Rows differ by (1, -1) and (0, 0); Gram matrices are the identity and all ones.
    assert float(feature_loss("im", real, made, 1)) == pytest.approx(2**0.5 / 2)
    assert float(feature_loss("rm", real, made, 1)) == pytest.approx(1)
    assert float(feature_loss("irm", real, made, 0.5)) == pytest.approx(2**0.5 / 2 + 0.5)


def test_relation_matching_is_zero_exactly_when_gram_matrices_agree() -> None:
    real = torch.from_numpy(stream(0, "real").integers(-3, 4, (5, 4)).astype(np.float64))
    moved = real[:, [2, 0, 3, 1]] * torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)  # an exact rotation
    assert not torch.equal(real @ real.T, (2 * real) @ real.T)
    assert float(relation_matching(real, moved)) == 0
    assert float(feature_loss("im", real, moved, 1)) > 1
    changed = moved.clone()
    changed[0, 0] += 1e-9
    assert float(relation_matching(real, changed)) > 0


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_changing_hidden_pixels_changes_no_byte_and_visible_ones_do(name: str) -> None:
    preset = replace(PRESETS[name], depth=2)
    model = MaskedAutoencoder(preset).initialise(0).eval()
    positions = Masking().positions(preset, KEY, b"picture")
    picture = frame(preset.size)
    hidden = np.ones(preset.tokens, dtype=bool)
    hidden[positions] = False
    cells = np.kron(hidden.reshape(preset.grid, preset.grid), np.ones((preset.patch, preset.patch))).astype(bool)
    other = picture.copy()
    other[cells] = 255 - other[cells]
    made = reconstruct(model, Visible.of(picture, positions, preset))
    assert made.shape == (1, preset.size, preset.size, 3)
    assert reconstruct(model, Visible.of(other, positions, preset)).tobytes() == made.tobytes()
    other[~cells] = 255 - other[~cells]
    assert reconstruct(model, Visible.of(other, positions, preset)).tobytes() != made.tobytes()


def test_what_the_network_receives_holds_no_reference_to_the_whole_picture() -> None:
    picture, positions = frame(), np.array([0, 5, 15])
    visible = Visible.of(picture, positions, TOY)
    assert visible.patches.shape == (1, 3, 48)
    assert not np.shares_memory(visible.patches, picture)
    owner = visible.patches if visible.patches.base is None else visible.patches.base
    assert owner.size == visible.patches.size
    np.testing.assert_array_equal(visible.patches[0, 1].reshape(4, 4, 3), picture[4:8, 4:8])
    whole = torch.from_numpy(picture).permute(2, 0, 1)[None]
    np.testing.assert_array_equal(patches_of(whole, 4)[0, positions].numpy(), visible.patches[0])


def test_the_decoder_puts_each_pixel_where_it_belongs() -> None:
    model = MaskedAutoencoder(TOY).initialise(0).eval()
    seen, positions = torch.rand(2, 4, 48), torch.tensor([[0, 3, 7, 9], [1, 2, 3, 4]])
    with torch.no_grad():
        made = model(seen, positions)
        model.pixels.bias[3 * (4 * 2 + 1)] += 1  # red of the pixel in row 2, column 1 of each patch
        changed = (model(seen, positions) - made).abs() > 1e-3
    expected = torch.zeros(2, 3, 16, 16, dtype=torch.bool)
    expected[:, 0, 2::4, 1::4] = True
    assert torch.equal(changed, expected)


def test_a_picture_has_one_mask_for_one_key() -> None:
    masking = Masking()
    content = [hashlib.sha256(bytes([number])).digest() for number in range(50)]
    masks = np.stack([masking.positions(TINY, KEY, one) for one in content])
    assert masks.shape == (50, 16)
    assert (np.diff(masks) > 0).all()
    np.testing.assert_array_equal(masks[7], masking.positions(TINY, KEY, content[7]))
    assert len({one.tobytes() for one in masks}) == 50
    assert masking.positions(TINY, bytes(32), content[7]).tolist() != masks[7].tolist()
    # Every patch is visible in about a quarter of pictures; a golden mask keeps releases comparable over versions.
    assert np.bincount(masks.ravel(), minlength=64).max() < 26
    assert masks[0].tolist() == [1, 10, 13, 17, 32, 34, 37, 38, 39, 42, 43, 44, 49, 50, 55, 59]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("hidden", "points"), [("eyes", [(38, 52), (73, 51)]), ("mouth", [(42, 92), (71, 92)])])
def test_eyes_or_mouth_are_never_visible(name: str, hidden: Hidden, points: list[tuple[int, int]]) -> None:
    preset = PRESETS[name]
    masking = Masking(0.75, hidden)
    shown = {int(token) for token in masking.free(preset)}
    side = 112 / preset.grid
    assert not shown & {int(y // side) * preset.grid + int(x // side) for x, y in points}
    assert {0, preset.tokens - 1} < shown
    drawn = masking.drawn(preset, 20, torch.Generator().manual_seed(0))
    assert drawn.shape == (20, preset.tokens // 4)
    assert set(drawn.ravel().tolist()) <= shown
    assert set(masking.positions(preset, KEY, b"picture").tolist()) <= shown


def test_what_cannot_be_done_is_refused_in_one_line() -> None:
    class Closed:
        card, name, dim = ToyEncoder().card, "closed", 3

        def encode(self, images: object) -> None: ...

    closed: Encoder = Closed()  # type: ignore[assignment]
    with refused("encoder", None, "'closed'"):
        Features(closed)
    with refused("protection", None, "'large'"):
        preset_of("large")
    with refused("protection", None, "is 1", "above 0", "below 1"):
        Masking(1)
    with refused("protection", None, "shows 0", "of 64"):
        Masking(0.999).shown(TINY)
    with refused("protection", None, "shows 58", "of 4"):
        Masking(0.1, "eyes").shown(TINY)
