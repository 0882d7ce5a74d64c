"""If these fail, diffmi leaves its ball, tests noise otherwise than scipy, or does not find what is there."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import normaltest
from torch import Tensor

from tests.encode.tiny import SIZE
from tests.invert.toy import ToyEncoder, ToyPrior, toy_case
from tests.prior.gradients import relative_error
from tests.prior.tiny_unet import lively_unet
from tests.refusals.table import refused
from unface.invert import Ledger, Targets, Threat, load_attack
from unface.invert.diffmi import DiffMI, apgd, checkpoints_of, normal_noises, normality, read_preset
from unface.invert.run import run_cell
from unface.invert.view import View
from unface.prior.diffusion import DiffusionPrior, Gradient, Schedule
from unface.seeds import stream


def test_the_normality_test_is_scipys() -> None:
    draw = stream(0, "K2")
    noises = np.stack(
        [draw.standard_normal(3 * 64), draw.standard_t(4, 3 * 64), draw.exponential(size=192), draw.uniform(size=192)]
    )
    expected = normaltest(noises, axis=1).pvalue
    np.testing.assert_allclose(normality(torch.from_numpy(noises).reshape(4, 3, 8, 8)).numpy(), expected, rtol=1e-9)


class Blank:
    """A prior that shows the noise itself, a little of it: straight-through is then the true gradient."""

    def __init__(self, scale: float = 0.1) -> None:
        self.name, self.size, self.steps, self.scale = "blank", SIZE, 1, scale
        self.sizes: tuple[int, ...] = (SIZE,)
        self.device = torch.device("cpu")
        self.asked: list[Gradient] = []

    def sample(self, count: int, seed: int) -> Tensor:
        drawn = stream(seed, "blank").standard_normal((count, 3, SIZE, SIZE))
        return torch.from_numpy(drawn).float()

    def decode(self, noise: Tensor, size: int | None = None, gradient: Gradient = "true") -> Tensor:
        if noise.requires_grad:
            self.asked.append(gradient)
        return (0.5 + self.scale * noise).clamp(0, 1)


def test_noises_of_the_pool_pass_the_test_by_scipy() -> None:
    found = normal_noises(Blank(), 5, 0.99, seed=0)
    assert (normaltest(found.flatten(1).double().numpy(), axis=1).pvalue >= 0.99).all()
    assert torch.equal(found, normal_noises(Blank(), 5, 0.99, seed=0))
    assert not torch.equal(found, normal_noises(Blank(), 5, 0.99, seed=0, round_=1))


def test_the_walk_stays_in_its_ball_and_ends_where_a_linear_objective_is_largest() -> None:
    starts = torch.from_numpy(stream(0, "apgd").standard_normal((4, 3, 5, 5)))
    pull = torch.from_numpy(stream(1, "apgd").standard_normal((4, 3, 5, 5)))
    far = []

    def objective(x: Tensor) -> Tensor:
        far.append(float((x - starts).detach().flatten(1).norm(dim=1).max()))
        return (x * pull).flatten(1).sum(dim=1)

    found = apgd(objective, starts, 2.5, 30)
    assert max(far) <= 2.5 * (1 + 1e-5)
    best = starts + 2.5 * pull / pull.flatten(1).norm(dim=1)[:, None, None, None]
    assert torch.allclose(found.points, best, atol=1e-5)
    assert found.forward == found.backward == 4 * 31


def test_the_walk_finds_an_optimum_inside_its_ball() -> None:
    starts = torch.zeros(2, 6, dtype=torch.float64)
    summit = torch.tensor([[0.3, 0, 0, 0.1, 0, 0], [0, 0.9, -0.2, 0, 0, 0.4]], dtype=torch.float64)
    stretch = torch.tensor([1.0, 2, 4, 8, 3, 1], dtype=torch.float64)
    found = apgd(lambda x: -(stretch * (x - summit) ** 2).sum(dim=1), starts, 2.0, 200)
    assert torch.allclose(found.points, summit, atol=1e-2)
    assert (found.values > -1e-3).all()


def test_a_row_that_is_good_enough_rests() -> None:
    pull = torch.ones(2, 4)
    found = apgd(lambda x: (x * pull).sum(dim=1), torch.tensor([[0.0] * 4, [5.0] * 4]), 1.0, 50, stop=1.5)
    assert torch.equal(found.points[1], torch.full((4,), 5.0))
    assert found.values[0] > 1.5
    assert found.forward < 2 * 51


def test_checkpoints_are_those_of_the_paper() -> None:
    assert sorted(checkpoints_of(100))[:5] == [22, 41, 57, 70, 80]


@pytest.mark.parametrize("preset", ["straight-through", "true"])
def test_on_a_prior_that_shows_its_noise_the_target_is_found(preset: str) -> None:
    prior, view = Blank(), View(ToyEncoder())
    detect_all = DiffMI(f"{preset},pool=40,p=0.5,steps=60", detect=lambda made: np.ones(len(made), bool))
    targets = view(prior.decode(prior.sample(6, seed=9))).numpy()
    ledger = Ledger()
    invert = detect_all.prepare(Threat("raw", "tiny", view, prior), ledger)
    assert ledger.passes["prior forward"] == 40
    made = invert(Targets(targets, np.arange(6)), ledger)
    assert set(prior.asked) == {preset}
    assert made.reached.min() > 0.99
    assert made.pictures is not None
    with torch.inference_mode():
        again = view(torch.from_numpy(made.pictures).permute(0, 3, 1, 2) / 255).numpy()
    np.testing.assert_allclose((again * targets).sum(axis=1), made.reached, atol=0.01)
    assert (ledger.passes["prior backward"] > 0) == (preset == "true")
    assert ledger.passes["encoder backward"] > 0


def test_noises_without_a_face_do_not_join_the_pool() -> None:
    prior, view, seen = Blank(), View(ToyEncoder()), []

    def bright(made: NDArray[np.uint8]) -> NDArray[np.bool_]:
        shown: NDArray[np.bool_] = made.mean(axis=(1, 2, 3)) > 127.5
        seen.append(shown.mean())
        return shown

    threat = Threat("raw", "tiny", view, prior)
    DiffMI("pool=30,p=0", detect=bright).prepare(threat, Ledger())
    (pool,) = threat.pools.values()
    assert 0 < np.mean(seen) < 1
    assert len(pool.latents) == len(pool.vectors) == 30
    assert (prior.decode(pool.latents).mean(dim=(1, 2, 3)) > 0.499).all()
    with refused("inversion", "diffmi", "prior"):
        DiffMI("pool=2,p=0", detect=lambda made: np.zeros(len(made), bool)).prepare(
            Threat("raw", "tiny", view, prior), Ledger()
        )


def test_gradients_through_unet_and_encoder_are_those_of_finite_differences() -> None:
    prior = DiffusionPrior("tiny", lively_unet().double(), Schedule(clip=None), steps=2)
    view = View(ToyEncoder(size=8)).double()
    view.dtype = torch.float64
    view.network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8).double().requires_grad_(False))
    target = torch.nn.functional.normalize(torch.arange(8.0, dtype=torch.float64), dim=0)
    noise = 0.3 * prior.sample(1, seed=0).double()
    assert relative_error(lambda at: (view(prior.decode(at)) * target).sum(), noise) < 1e-5


def test_a_whole_cell_runs_with_a_small_unet() -> None:
    case = toy_case(people=3)
    unet = lively_unet()
    prior = DiffusionPrior("tiny", unet, Schedule(), steps=2)
    prior.size, prior.sizes = 8, (8,)
    attack = DiffMI("pool=6,p=0,steps=5", detect=lambda made: np.ones(len(made), bool))
    threat = Threat("raw", "tiny", case.view, prior)

    def embed(made: NDArray[np.uint8]) -> dict[str, NDArray[np.float32]]:
        assert made.shape[1:] == (8, 8, 3)
        return {"judge": np.zeros((len(made), 12), np.float32)}

    cell = run_cell(attack, threat, replace(case, embed=embed), None, None).cell
    assert cell.attack == "diffmi:pool=6,p=0,steps=5"
    assert cell.settings["gradient"] == "straight-through"
    assert cell.each.prior_forward > 0


def test_other_priors_and_unknown_settings_are_refused() -> None:
    threat = Threat("raw", "tiny", View(ToyEncoder()), ToyPrior())
    with refused("inversion"):
        load_attack("diffmi").prepare(threat, Ledger())
    with refused("inversion", "diffmi", "'speed=3'"):
        read_preset("speed=3")
    with refused("inversion", "diffmi", "below 1"):
        read_preset("p=1")
