"""If these fail, the diffusion prior decodes noise to other pictures than its checkpoint's, or its gradients lie."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.prior.gradients import relative_error
from tests.prior.tiny_unet import CONFIG, diffusers_folder, lively_unet
from tests.refusals.table import refused
from unface.prior.diffusion import DiffusionPrior, Schedule, load_diffusion, save_diffusion
from unface.prior.unet import UNet, UNetConfig
from unface.seeds import stream


def golden_noise() -> Tensor:
    return torch.from_numpy(stream(0, "golden").standard_normal((2, 3, 8, 8))).float()


# What diffusers 0.42.1 gives for the same weights, noise and scheduler: pixel (2, 3) of the first picture, −1 to 1.
PEER = [
    ({}, 5, (0.366992, 1.0, -0.358695)),
    (
        {
            "beta_schedule": "squaredcos_cap_v2",
            "prediction_type": "v_prediction",
            "timestep_spacing": "trailing",
        },
        7,
        (0.281691, 0.994161, -0.610568),
    ),
    (
        {
            "beta_schedule": "scaled_linear",
            "beta_start": 0.0015,
            "beta_end": 0.0195,
            "prediction_type": "sample",
            "clip_sample": False,
            "set_alpha_to_one": False,
            "steps_offset": 1,
        },
        7,
        (-0.527312, -0.935805, -0.160090),
    ),
]


@pytest.mark.parametrize(("scheduler", "steps", "expected"), PEER, ids=["epsilon", "v", "sample"])
def test_a_checkpoint_of_diffusers_decodes_as_it_does_there(
    tmp_path: Path, scheduler: dict[str, object], steps: int, expected: tuple[float, ...]
) -> None:
    prior = load_diffusion(diffusers_folder(tmp_path / "ddpm", **scheduler), steps=steps)
    with torch.no_grad():
        found = prior.decode(golden_noise())[0, :, 2, 3] * 2 - 1
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4)


def test_attention_by_its_older_names_is_the_same_network(tmp_path: Path) -> None:
    new, old = (diffusers_folder(tmp_path / name) for name in ("new", "old"))
    weights = old / "unet" / "diffusion_pytorch_model.safetensors"
    older = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    state = load_file(weights)
    for now, before in older.items():
        state = {name.replace(f".{now}.", f".{before}."): value for name, value in state.items()}
    assert any(".proj_attn." in name for name in state)
    save_file(state, weights)
    noise = golden_noise()
    assert torch.equal(load_diffusion(new).decode(noise), load_diffusion(old).decode(noise))


def test_what_is_saved_is_read_back_as_the_same_prior(tmp_path: Path) -> None:
    unet = lively_unet().half().float()
    save_diffusion(tmp_path / "mine", CONFIG, Schedule(), unet.state_dict())
    read, noise = load_diffusion(tmp_path / "mine"), golden_noise()
    assert read.schedule == Schedule()
    assert torch.equal(read.decode(noise), DiffusionPrior("mine", unet, Schedule()).decode(noise))


def test_the_same_noise_gives_the_same_picture_and_each_noise_has_its_number() -> None:
    prior = DiffusionPrior("tiny", lively_unet(), Schedule())
    noise = prior.sample(5, seed=3)
    assert torch.equal(prior.sample(2, seed=3, start=3), noise[3:])
    assert not torch.equal(prior.sample(5, seed=4), noise)
    assert torch.equal(prior.decode(noise), prior.decode(noise.clone(), 8))


def test_the_true_gradient_is_the_one_of_finite_differences() -> None:
    prior = DiffusionPrior("tiny", lively_unet().double(), Schedule(clip=None), steps=3)
    noise = 0.3 * prior.sample(1, seed=0).double()
    target = torch.from_numpy(stream(1, "target").standard_normal((1, 3, 8, 8)))
    pictures = prior.decode(noise)
    assert float(((pictures == 0) | (pictures == 1)).double().mean()) < 0.5
    assert relative_error(lambda at: (prior.decode(at) * target).sum(), noise) < 1e-5


class ForGaussians(UNet):
    """The best prediction of v there can be for pictures that are normal around ``mean`` with one ``spread``."""

    def __init__(self, mean: float, spread: float) -> None:
        super().__init__(CONFIG)
        self.mean, self.spread, self.kept = mean, spread, Schedule().kept()

    def forward(self, x: Tensor, timesteps: Tensor) -> Tensor:
        kept = self.kept[timesteps].to(x.dtype)[:, None, None, None]
        centred = x - kept.sqrt() * self.mean
        variance = kept * self.spread**2 + 1 - kept
        picture = self.mean + kept.sqrt() * self.spread**2 / variance * centred
        noise = (1 - kept).sqrt() / variance * centred
        return kept.sqrt() * noise - (1 - kept).sqrt() * picture


def test_where_pixels_are_independent_straight_through_points_where_the_true_gradient_does() -> None:
    """DDIM then only scales the noise, to the spread of the pictures; for anything else the two differ."""
    spread = 0.1
    prior = DiffusionPrior("gauss", ForGaussians(0.1, spread), Schedule(clip=None), steps=200)
    noise = prior.sample(2, seed=0).double().requires_grad_()
    pull = torch.from_numpy(stream(0, "pull").standard_normal((2, 3, 8, 8)))
    (true,) = torch.autograd.grad((prior.decode(noise) * pull).sum(), noise)
    (through,) = torch.autograd.grad((prior.decode(noise, gradient="straight-through") * pull).sum(), noise)
    assert torch.allclose(through, 0.5 * pull)
    assert torch.nn.functional.cosine_similarity(true.flatten(), through.flatten(), dim=0) > 1 - 1e-9
    # The known map: mean + spread · noise, as the steps grow many.
    np.testing.assert_allclose((true / through).detach().numpy(), spread, rtol=0.05)

    lively = DiffusionPrior("tiny", lively_unet().double(), Schedule(clip=None), steps=3)
    small = (0.3 * lively.sample(1, seed=0).double()).requires_grad_()
    (true,) = torch.autograd.grad((lively.decode(small) * pull[:1]).sum(), small)
    (through,) = torch.autograd.grad((lively.decode(small, gradient="straight-through") * pull[:1]).sum(), small)
    assert torch.nn.functional.cosine_similarity(true.flatten(), through.flatten(), dim=0) < 0.9


def test_straight_through_gives_the_same_pictures() -> None:
    prior = DiffusionPrior("tiny", lively_unet(), Schedule())
    noise = prior.sample(2, seed=0)
    assert torch.allclose(prior.decode(noise), prior.decode(noise, gradient="straight-through"), atol=1e-6)


def test_the_recipe_has_20_to_30_million_weights() -> None:
    with torch.device("meta"):
        count = sum(weight.numel() for weight in UNet(UNetConfig()).parameters())
    assert count == 23_066_627


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("unet/config.json", {"_class_name": "UNet2DConditionModel"}, "unconditional UNet2DModel"),
        ("unet/config.json", {"act_fn": "gelu"}, "'gelu'"),
        ("unet/config.json", {"down_block_types": ["DownBlock2D", "SkipDownBlock2D"]}, "expected"),
        ("unet/config.json", {"block_out_channels": [8, 32]}, "weights"),
        ("unet/config.json", {"sample_size": 9}, "is 9"),
        ("unet/config.json", {"sample_size": 2**31}, "is 2147483648"),
        ("unet/config.json", {"layers_per_block": 2**31}, "is 2147483648"),
        ("unet/config.json", {"layers_per_block": None}, "None"),
        ("unet/config.json", {"attention_head_dim": 32}, "weights"),
        ("unet/config.json", {"block_out_channels": 8}, "is 8"),
        ("unet/config.json", {"block_out_channels": [8, 2**17]}, "weights"),
        ("unet/config.json", {"down_block_types": 3}, "down"),
        ("unet/config.json", {"norm_eps": "x"}, "norm"),
        ("scheduler/scheduler_config.json", {"num_train_timesteps": 2**40}, "is 1099511627776"),
        ("scheduler/scheduler_config.json", {"beta_end": 3.0}, "is 3.0"),
        ("scheduler/scheduler_config.json", {"steps_offset": 10_000}, "is 10000"),
        ("scheduler/scheduler_config.json", {"clip_sample_range": "x"}, "clip"),
        ("scheduler/scheduler_config.json", {"beta_schedule": []}, "beta"),
        ("scheduler/scheduler_config.json", {"_class_name": "PNDMScheduler"}, "DDPM"),
        ("scheduler/scheduler_config.json", {"thresholding": True}, "thresholding"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_named(
    tmp_path: Path, file: str, change: dict[str, object], message: str
) -> None:
    folder = diffusers_folder(tmp_path / "ddpm")
    (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), **change}))
    with refused("prior", "ddpm", message):
        load_diffusion(folder)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    folder = diffusers_folder(tmp_path / "ddpm")
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"no weights")
    with refused("prior", "ddpm", "safetensors"):
        load_diffusion(folder)
    (folder / "scheduler" / "scheduler_config.json").write_text("[" * 100_000)
    with refused("prior", "scheduler/scheduler_config.json"):
        load_diffusion(folder)
    (folder / "scheduler" / "scheduler_config.json").unlink()
    with refused("prior", "ddpm", "scheduler_config.json", "has no"):
        load_diffusion(folder)
    prior = DiffusionPrior("tiny", lively_unet(), Schedule())
    with refused("prior", "tiny", "1", "3", "9", "8"):
        prior.decode(torch.zeros(1, 3, 9, 8))
    with refused("prior", "tiny", "give 16", "expected 8"):
        prior.decode(prior.sample(1, 0), 16)
    with refused("prior", None, "0"):
        DiffusionPrior("tiny", lively_unet(), Schedule(), steps=0).decode(prior.sample(1, 0))
