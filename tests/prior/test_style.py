"""If these fail, a prior draws other people than it says, or a prior's head shows other people than its network."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from tests.kit.thorough import only_thorough
from tests.models.served import Index, serving, wheel
from tests.prior.identity import likeness
from tests.prior.tiny import LATENT, mapping, mobile_constants
from tests.real import weights_here
from tests.refusals.table import refused
from unface.models import card
from unface.prior import load_prior
from unface.prior.low_resolution import LowResolution, fitted, low_resolution
from unface.prior.mobilestylegan import MobileSynthesis
from unface.prior.style import Mapping, StylePrior, Synthesis
from unface.progress import Silent
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("UNFACE_OFFLINE", raising=False)
    return tmp_path


def test_the_licence_has_to_be_accepted(cache: Path) -> None:
    with refused("weights", "mobilestylegan-mapping", "is Apache-2.0"):
        load_prior()
    assert not list(cache.rglob("*.bin"))


def test_weights_with_another_hash_are_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = card("mobilestylegan-mapping")
    members = {f"random_face/data/{part.file}": bytes(part.bytes) for part in wanted.parts}
    with serving(Index({"random_face-2021.7.21.1-py3-none-any.whl": wheel(members)})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.address}/index/")
        with refused("weights", "mobilestylegan-mapping", "has sha256", "212d"):
            load_prior(accept_licence=True)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_graph_changed_in_the_cache_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_OFFLINE", "1")
    wanted = card("mobilestylegan-mapping")
    folder = cache / "models" / wanted.name
    folder.mkdir(parents=True)
    for part in wanted.parts:
        (folder / part.file).write_bytes(bytes(part.bytes))
    with refused("weights", "mobilestylegan-mapping", "damaged"):
        load_prior(accept_licence=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with refused("prior", "device 'cuda'", "'cpu'"):
        load_prior(device="cuda")


def test_a_gpu_of_another_number_is_told_with_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with refused("prior", "device 'cuda:2'", "are 2", "from 0"):
        load_prior(device="cuda:2")


def test_the_real_prior_keeps_the_port() -> None:
    weights_here("mobilestylegan-mapping")
    weights_here("mobilestylegan-synthesis")
    prior = load_prior(accept_licence=True)
    assert (prior.name, prior.slots, prior.latent_dim) == ("mobilestylegan", 23, 512)
    assert prior.sizes == (128, 256, 512, 1024)
    assert prior.device == torch.device("cpu")
    w = prior.sample(400, 0, 1.0)
    assert (w.dtype, tuple(w.shape), w.requires_grad) == (torch.float32, (400, 512), False)
    distance = (w.mean(dim=0) - prior.mean_latent()).norm() / w.std(dim=0).norm()
    assert distance < 2 * (1 / 400 + 1 / 4096) ** 0.5


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
