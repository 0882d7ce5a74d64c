"""If this fails, a seed no longer gives the same people everywhere, or bad latents go in unnoticed."""

import numpy as np
import pytest
import torch

from tests.prior.tiny import mapping
from tests.refusals.table import refused
from unface.prior.style import Mapping, StylePrior, Synthesis
from unface.seeds import stream


class Flat(Synthesis):
    """A picture of one colour: the means of the first slot's, the second slot's and all latents."""

    slots, latent_dim, sizes = 3, 8, (2, 4)

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, latents: torch.Tensor, size: int) -> torch.Tensor:
        means = torch.stack((latents[:, 0].mean(dim=1), latents[:, 1].mean(dim=1), latents.mean(dim=(1, 2))), dim=1)
        return (self.weight * means)[:, :, None, None].expand(-1, -1, size, size)


FLAT = StylePrior("flat", mapping(8), Flat())


@pytest.fixture
def prior() -> StylePrior:
    return FLAT


def test_a_mapping_worked_by_hand() -> None:
    layers = Mapping([torch.tensor([[1.0, 1.0], [0.0, -1.0]])], [torch.tensor([0.0, 0.2])])
    # (3, 4) has mean square 12.5; divided by its root it is (0.8485, 1.1314).
    w = layers(torch.tensor([[3.0, 4.0]]))
    expected = np.sqrt(2) * np.array([[7 / 12.5**0.5, 0.2 * (0.2 - 4 / 12.5**0.5)]])
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-6)


def test_seeds_differ_and_the_normal_numbers_are_numpys(prior: StylePrior) -> None:
    assert not torch.equal(prior.sample(4, 0), prior.sample(4, 1))
    z = stream(0, "prior", "sample").standard_normal((4, 8)).astype(np.float32)
    torch.testing.assert_close(prior.sample(4, 0, 1.0), mapping(8)(torch.from_numpy(z)).detach())


def test_the_mean_is_that_of_many_samples_and_fixed(prior: StylePrior) -> None:
    mean = prior.mean_latent()
    assert (mean.shape, mean.dtype) == ((8,), torch.float32)
    assert torch.equal(mean, StylePrior("flat", mapping(8), Flat()).mean_latent())
    others = prior.sample(20_000, 5, 1.0)
    error = others.std(dim=0) * (1 / 4096 + 1 / 20_000) ** 0.5
    assert ((others.mean(dim=0) - mean).abs() < 5 * error).all()


def test_pictures_run_from_0_to_1_and_gradients_reach_the_latents(prior: StylePrior) -> None:
    w = torch.stack([torch.full((8,), value) for value in (-3.0, -1.0, 0.0, 0.5, 1.0, 3.0)]).requires_grad_()
    pictures = prior.decode(w, 2)
    assert pictures.shape == (6, 3, 2, 2)
    np.testing.assert_allclose(pictures[:, 0, 0, 0].detach().numpy(), [0, 0, 0.5, 0.75, 1, 1], atol=1e-6)
    (gradient,) = torch.autograd.grad(pictures[3, 0, 0, 0], w)
    np.testing.assert_allclose(gradient[3].numpy(), np.full(8, 0.5 / 8), rtol=1e-6)
    assert not [weight for weight in prior._synthesis.parameters() if weight.requires_grad]


@pytest.mark.parametrize("truncation", [0.0, -0.5, 1.51, float("nan"), float("inf")])
def test_a_truncation_out_of_range_is_refused(prior: StylePrior, truncation: float) -> None:
    with refused("prior", "flat", "above 0", "most 1.5"):
        prior.sample(1, 0, truncation)


@pytest.mark.parametrize("count", [0, -3])
def test_nothing_cannot_be_sampled(prior: StylePrior, count: int) -> None:
    with refused("prior", "flat", "were"):
        prior.sample(count, 0)


@pytest.mark.parametrize("shape", [(8,), (1, 7), (1, 2, 8), (1, 4, 8), (1, 1, 3, 8), (0,)])
def test_latents_of_another_shape_are_refused_with_both_shapes(prior: StylePrior, shape: tuple[int, ...]) -> None:
    with refused("prior", "flat", f"{shape}", "(n, 8) or (n, 3, 8)"):
        prior.decode(torch.zeros(shape), 4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_latents_that_are_no_numbers_are_refused(prior: StylePrior, bad: float) -> None:
    w = torch.zeros(2, 8)
    w[1, 3] = bad
    with refused("prior", "flat", "infinite"):
        prior.decode(w, 4)


def test_latents_of_another_type_are_not_changed_silently(prior: StylePrior) -> None:
    with refused("prior", "flat", "are torch.float64", "expected torch.float32"):
        prior.decode(torch.zeros(1, 8, dtype=torch.float64), 4)


@pytest.mark.parametrize("size", [0, 3, 8])
def test_a_size_that_it_cannot_give_is_refused(prior: StylePrior, size: int) -> None:
    with refused("prior", "flat", "of 2", "4"):
        prior.decode(torch.zeros(1, 8), size)


def test_a_network_in_another_precision_is_made_once_and_gives_nearly_the_same(prior: StylePrior) -> None:
    coarse, w = prior.tuned(torch.bfloat16), prior.sample(2, 0)
    assert prior.tuned(torch.bfloat16) is coarse, "each search would copy the network again"
    assert prior.tuned(torch.float32) is not coarse
    seen = coarse.decode(w.to(torch.bfloat16), 4)
    assert seen.dtype == torch.bfloat16
    torch.testing.assert_close(seen.float(), prior.decode(w, 4), atol=0.01, rtol=0)
