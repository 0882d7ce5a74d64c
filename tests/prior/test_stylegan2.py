"""If this fails, a checkpoint in StyleGAN2-ADA's layout gives other pictures than the network it was saved from."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from scipy.signal import convolve2d, correlate2d

from tests.prior.gradients import relative_error
from tests.prior.tiny import stylegan2_state
from tests.refusals.table import refused
from unface.prior import load_prior
from unface.prior.stylegan2 import StyleGAN2Synthesis
from unface.seeds import stream

Array = NDArray[np.float64]
BLUR = np.outer([1, 3, 3, 1], [1, 3, 3, 1]) / 64
STATE = stylegan2_state()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(STATE, tmp_path / "tiny.safetensors")
    return tmp_path / "tiny.safetensors"


def test_pictures_are_those_of_the_papers_definition_worked_out_one_by_one(path: Path) -> None:
    prior = load_prior(str(path))
    assert (prior.slots, prior.latent_dim, prior.sizes) == (6, 10, (2, 4, 8, 16))
    w = stream(3, "w").standard_normal((2, 6, 10))
    found = prior.decode(torch.from_numpy(w.astype(np.float32)), 16).numpy()
    expected = np.stack([defined(one) for one in w])
    np.testing.assert_allclose(found, np.clip(expected / 2 + 0.5, 0, 1), atol=2e-5)
    assert found.std() > 0.05


def test_samples_are_those_of_the_layouts_mapping_and_its_own_mean(path: Path) -> None:
    prior = load_prior(str(path))
    assert torch.equal(prior.mean_latent(), STATE["mapping.w_avg"])
    x = stream(4, "prior", "sample").standard_normal((3, 10)).astype(np.float32).astype(np.float64)
    x /= np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-8)
    for layer in range(2):
        weight, bias = (0.01 * number(f"mapping.fc{layer}.{what}") for what in ("weight", "bias"))
        x = leaky(x @ weight.T / np.sqrt(10) + bias)
    np.testing.assert_allclose(prior.sample(3, 4, 1.0).numpy(), x, rtol=1e-4, atol=1e-5)


def test_a_state_dict_of_torch_gives_the_same(path: Path) -> None:
    torch.save(STATE, path.with_suffix(".pt"))
    first, second = load_prior(str(path)), load_prior(str(path.with_suffix(".pt")))
    assert torch.equal(first.decode(first.sample(1, 0), 8), second.decode(second.sample(1, 0), 8))


@pytest.mark.parametrize("slots", [1, 6], ids=["W", "W+"])
def test_gradients_are_those_of_finite_differences(slots: int) -> None:
    synthesis = StyleGAN2Synthesis(STATE).double()
    weights = torch.from_numpy(stream(0, "weights").standard_normal((3, 16, 16)))
    at = torch.from_numpy(stream(5, "at").standard_normal((2, slots, 10)))
    assert relative_error(lambda w: (synthesis(w.expand(-1, 6, -1), 16) * weights).sum(), at) < 1e-6


@pytest.mark.parametrize(
    "gone",
    [
        "mapping.w_avg",
        "mapping.fc0.weight",
        "synthesis.b4.const",
        "synthesis.b8.conv0.affine.bias",
        "synthesis.b4.torgb.weight",
    ],
)
def test_a_checkpoint_that_lacks_something_is_refused_by_its_name(path: Path, gone: str) -> None:
    save_file({name: value for name, value in STATE.items() if name != gone}, path)
    with refused("prior", "tiny.safetensors", repr(gone)):
        load_prior(str(path))


@pytest.mark.parametrize(
    "bent",
    [
        "mapping.fc1.weight",
        "mapping.fc0.bias",
        "mapping.w_avg",
        "synthesis.b4.conv1.bias",
        "synthesis.b4.const",
        "synthesis.b8.conv0.weight",
        "synthesis.b8.conv1.affine.weight",
        "synthesis.b16.torgb.weight",
        "synthesis.b16.conv1.noise_const",
        "synthesis.b16.resample_filter",
    ],
)
def test_weights_of_another_shape_are_refused_when_they_are_loaded(path: Path, bent: str) -> None:
    cut = torch.tensor(1.0) if STATE[bent].ndim < 2 and bent != "mapping.w_avg" else STATE[bent][:-1].clone()
    save_file(STATE | {bent: cut}, path)
    with refused("prior", "tiny.safetensors", "of StyleGAN2-ADA", "weights"):
        load_prior(str(path))


def test_weights_of_something_else_are_refused(tmp_path: Path) -> None:
    torch.save({"features.0.weight": torch.zeros(3)}, tmp_path / "other.pth")
    with refused("prior", "other.pth", "'mapping.fc0.weight'"):
        load_prior(str(tmp_path / "other.pth"))
    (tmp_path / "text.safetensors").write_text("nothing")
    with refused("prior", "text.safetensors"):
        load_prior(str(tmp_path / "text.safetensors"))


def test_a_generator_of_classes_is_refused(path: Path) -> None:
    save_file(STATE | {"mapping.embed.weight": torch.zeros(10, 4)}, path)
    with refused("prior", "tiny.safetensors", "generates"):
        load_prior(str(path))


class Trap:
    """Unpickled, it would write a file."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.witness,)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"mapping.w_avg": Trap(tmp_path / "ran")}, tmp_path / "trap.pt")
    with refused("prior", "trap.pt"):
        load_prior(str(tmp_path / "trap.pt"))
    assert not (tmp_path / "ran").exists()


def number(name: str) -> Array:
    return np.asarray(STATE[name].numpy(), dtype=np.float64)


def leaky(x: Array) -> Array:
    made: Array = np.where(x < 0, 0.2 * x, x) * np.sqrt(2)
    return made


def steer(name: str, w: Array) -> Array:
    made: Array = number(f"{name}.affine.weight") @ w / np.sqrt(len(w)) + number(f"{name}.affine.bias")
    return made


def doubled(x: Array) -> Array:
    """Zeros in between, then the blur with four times its weight."""
    apart = np.zeros((len(x), 2 * x.shape[1], 2 * x.shape[2]))
    apart[:, ::2, ::2] = x
    return np.stack([convolve2d(np.pad(channel, (2, 1)), 4 * BLUR, mode="valid") for channel in apart])


def convolved(name: str, x: Array, w: Array, up: bool) -> Array:
    kernels = number(f"{name}.weight") * steer(name, w)[None, :, None, None]
    kernels /= np.sqrt((kernels**2).sum(axis=(1, 2, 3), keepdims=True) + 1e-8)
    if up:
        # The layout's growing convolutions are convolutions, its others correlations; the blur sees the edge's padding.
        apart = np.zeros((len(x), 2 * x.shape[1], 2 * x.shape[2]))
        apart[:, ::2, ::2] = x
        blurred = [convolve2d(np.pad(channel, (3, 2)), 4 * BLUR, mode="valid") for channel in apart]
        made = [sum(convolve2d(b, k, mode="valid") for b, k in zip(blurred, kernel, strict=True)) for kernel in kernels]
    else:
        made = [sum(correlate2d(c, k, mode="same") for c, k in zip(x, kernel, strict=True)) for kernel in kernels]
    noise = number(f"{name}.noise_const") * number(f"{name}.noise_strength")
    return leaky(np.stack(made) + noise + number(f"{name}.bias")[:, None, None])


def coloured(name: str, x: Array, w: Array) -> Array:
    weight = number(f"{name}.weight")[:, :, 0, 0]
    steered = weight * steer(name, w) / np.sqrt(weight.shape[1])
    made: Array = np.einsum("oi,ihw->ohw", steered, x) + number(f"{name}.bias")[:, None, None]
    return made


def defined(w: Array) -> Array:
    x = convolved("synthesis.b4.conv1", number("synthesis.b4.const"), w[0], up=False)
    picture = coloured("synthesis.b4.torgb", x, w[1])
    for side, first in ((8, 1), (16, 3)):
        x = convolved(f"synthesis.b{side}.conv0", x, w[first], up=True)
        x = convolved(f"synthesis.b{side}.conv1", x, w[first + 1], up=False)
        picture = doubled(picture) + coloured(f"synthesis.b{side}.torgb", x, w[first + 2])
    return picture


def test_colours_with_a_dimension_too_many_are_refused_before_a_picture_is_made(tmp_path: Path) -> None:
    state = stylegan2_state()
    state["synthesis.b8.torgb.weight"] = state["synthesis.b8.torgb.weight"][..., None].contiguous()
    save_file(state, tmp_path / "mine.safetensors")
    with refused("prior", "mine.safetensors"):
        load_prior(str(tmp_path / "mine.safetensors"))
