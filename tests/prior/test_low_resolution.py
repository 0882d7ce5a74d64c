"""If this fails, the cheap pictures are no longer the best that their features allow, or show somebody else."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from tests.kit.thorough import only_thorough
from tests.prior.identity import likeness
from tests.prior.tiny import LATENT, mapping, mobile_constants
from tests.real import weights_here
from unface.prior.low_resolution import LowResolution, fitted, low_resolution
from unface.prior.mobilestylegan import MobileSynthesis
from unface.prior.style import StylePrior
from unface.progress import Silent
from unface.seeds import stream

CHANNELS = 16  # of the features that the tiny network's head takes


class Exact(MobileSynthesis):
    """A network whose small pictures are linear in the features, so that the right head is known."""

    head = torch.from_numpy(stream(0, "head").standard_normal((CHANNELS + 1, 3)).astype(np.float32))

    def forward(self, latents: Tensor, size: int) -> Tensor:
        assert size == self.sizes[0]
        features = self.features(latents, self.blocks - 2)
        return torch.einsum("cr,nchw->nrhw", self.head[:-1], features) + self.head[-1][:, None, None]


class Counting(Silent):
    def __init__(self) -> None:
        self.steps = 0

    def advance(self, task: str, steps: int = 1) -> None:
        self.steps += steps


def prior_of(whole: MobileSynthesis) -> StylePrior:
    return StylePrior("tiny", mapping(), whole)


def test_a_network_linear_in_its_features_is_found_again() -> None:
    whole = Exact(mobile_constants())
    head = fitted(prior_of(whole), whole, Silent())
    torch.testing.assert_close(head, whole.head, rtol=0, atol=1e-4)
    low = StylePrior("low", mapping(), LowResolution(whole, head))
    w = low.sample(2, 9)
    assert (low.sizes, low.slots, low.latent_dim) == ((8,), 11, LATENT)
    torch.testing.assert_close(low.decode(w, 8), prior_of(whole).decode(w, 8), rtol=0, atol=1e-3)


def test_no_other_head_is_nearer_on_the_pictures_it_was_fitted_to() -> None:
    whole = MobileSynthesis(mobile_constants())
    prior = prior_of(whole)
    head = fitted(prior, whole, Silent())
    w = torch.cat([prior.sample(12, 0, 0.7), prior.sample(12, 1, 1.0)])[:, None].expand(-1, 11, -1)

    def error(tried: Tensor) -> float:
        return float((LowResolution(whole, tried)(w, 8) - whole(w, 8)).double().square().sum())

    draw = stream(0, "other heads")
    for _ in range(20):
        step = torch.from_numpy(draw.standard_normal(tuple(head.shape)).astype(np.float32))
        assert error(head) < error(head + 0.01 * step)


def test_a_head_is_fitted_once_and_kept(tmp_path: Path) -> None:
    whole = MobileSynthesis(mobile_constants())
    first, second, third = Counting(), Counting(), Counting()
    made = low_resolution(prior_of(whole), whole, tmp_path, first)
    kept = low_resolution(prior_of(whole), whole, tmp_path, second)
    assert (first.steps, second.steps) == (24, 0)
    assert torch.equal(made.weight, kept.weight)
    assert torch.equal(made.bias, kept.bias)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:40])
    again = low_resolution(prior_of(whole), whole, tmp_path, third)
    assert third.steps == 24
    assert torch.equal(again.weight, made.weight)


@pytest.mark.parametrize("spoilt", ["other head", "other network", "no words"])
def test_a_head_that_is_not_this_networks_own_is_made_again(tmp_path: Path, spoilt: str) -> None:
    whole = MobileSynthesis(mobile_constants())
    made = low_resolution(prior_of(whole), whole, tmp_path, Silent())
    (file,) = tmp_path.iterdir()
    with safe_open(file, framework="pt") as kept:
        head, words = kept.get_tensor("head"), dict(kept.metadata())
    if spoilt == "other network":
        words["network"] = "0" * 64
    file.write_bytes(save({"head": head + (spoilt == "other head")}, None if spoilt == "no words" else words))
    again = Counting()
    assert torch.equal(low_resolution(prior_of(whole), whole, tmp_path, again).weight, made.weight)
    assert again.steps == 24


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    whole = MobileSynthesis(mobile_constants())
    low = low_resolution(prior_of(whole), whole, tmp_path / "absent", Silent())
    assert low.weight.shape == (3, CHANNELS, 1, 1)


@only_thorough
@pytest.mark.slow
def test_the_head_shows_the_same_people() -> None:
    for name in ("mobilestylegan-mapping", "mobilestylegan-synthesis", "yunet", "sface"):
        weights_here(name)
    found = likeness(people=5, seed=11)
    assert len(found.mated) >= 5
    assert found.mated.min() > found.impostor.max() + 0.1
