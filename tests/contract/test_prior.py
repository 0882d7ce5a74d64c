"""If these fail, a prior of faces gives other people to the same seed, or pictures that no search can climb."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real import weights_here
from unface.errors import UnfaceError
from unface.invert.ports import Generator
from unface.prior import Prior, load_prior
from unface.seeds import stream

if TYPE_CHECKING:
    import torch

pytest.importorskip("torch")
PACKAGED = ["mobilestylegan", "mobilestylegan-128"]
"""Their weights are large; a network of the same layout with random ones is ``mobile``."""
OF_STYLE = ["stylegan2", "mobile", "toy", *PACKAGED]
NAMES = [*OF_STYLE, "diffusion"]

each = pytest.mark.parametrize("name", NAMES)
of_style = pytest.mark.parametrize("name", OF_STYLE)


class Grey:
    """A prior as another package would bring it: pictures of one grey."""

    name, slots, latent_dim, sizes = "toy", 2, 3, (4, 8)

    def __init__(self, device: str) -> None:
        import torch

        self.device = torch.device(device)

    def mean_latent(self) -> "torch.Tensor":
        import torch

        return torch.zeros(self.latent_dim, device=self.device)

    def sample(self, count: int, seed: int, truncation: float = 0.7) -> "torch.Tensor":
        import torch

        drawn = stream(seed, "grey").standard_normal((count, self.latent_dim))
        return truncation * torch.tensor(drawn, dtype=torch.float32, device=self.device)

    def decode(self, latents: "torch.Tensor", size: int) -> "torch.Tensor":
        if size not in self.sizes:
            raise UnfaceError(f"toy: cannot give {size} px")
        return latents.flatten(1).mean(dim=1).sigmoid().view(-1, 1, 1, 1).expand(-1, 3, size, size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("priors")


@cache
def loaded(name: str, folder: Path) -> Prior:
    if name == "stylegan2":
        import torch

        from tests.prior.tiny import stylegan2_state

        torch.save(stylegan2_state(), folder / "stylegan2")
        return load_prior(str(folder / "stylegan2"))
    if name == "mobile":
        from tests.prior.tiny import mapping, mobile_constants
        from unface.prior.mobilestylegan import MobileSynthesis
        from unface.prior.style import StylePrior

        return StylePrior("mobile", mapping(), MobileSynthesis(mobile_constants()))
    if name in PACKAGED:
        weights_here("mobilestylegan-mapping")
        weights_here("mobilestylegan-synthesis")
        return load_prior(name, accept_licence=True, threads=1)
    return load_prior(name)


def generator(name: str, folder: Path) -> Generator:
    if name == "diffusion":
        from tests.prior.tiny_unet import diffusers_folder
        from unface.prior.diffusion import load_diffusion

        place = folder / "diffusion"
        return load_diffusion(place if place.exists() else diffusers_folder(place), steps=2)
    return loaded(name, folder)


@each
def test_it_goes_by_its_name_and_says_what_pictures_it_gives(name: str, folder: Path) -> None:
    prior = generator(name, folder)
    assert prior.name == name
    assert prior.sizes
    assert list(prior.sizes) == sorted(set(prior.sizes))
    assert prior.device.type == "cpu"


@each
def test_a_seed_is_people_and_more_of_them_begin_with_the_fewer(name: str, folder: Path) -> None:
    import torch

    prior = generator(name, folder)
    few = prior.sample(3, 1)
    assert (few.dtype, few.device, few.requires_grad) == (torch.float32, prior.device, False)
    assert few.isfinite().all()
    many = prior.sample(130, 1)
    for count in (1, 3, 64, 65):
        assert torch.equal(prior.sample(count, 1), many[:count])
    assert len(torch.unique(few, dim=0)) == 3
    assert not torch.equal(prior.sample(3, 2), few)


@each
def test_pictures_have_the_size_asked_for_run_from_0_to_1_and_depend_on_their_own_latent(
    name: str, folder: Path
) -> None:
    import torch

    prior = generator(name, folder)
    latents = prior.sample(2, 0)
    before = latents.clone()
    with torch.inference_mode():
        for size in prior.sizes[:2]:
            pictures = prior.decode(latents, size)
            assert pictures.shape == (2, 3, size, size)
            assert 0 <= pictures.min() < pictures.max() <= 1
            assert torch.equal(prior.decode(latents, size), pictures)
            torch.testing.assert_close(prior.decode(latents[1:], size)[0], pictures[1], atol=1e-4, rtol=0)
        assert torch.equal(latents, before)
        far = prior.decode(30 * latents, prior.sizes[0])
        assert 0 <= far.min() <= far.max() <= 1, "latents far out"
        with pytest.raises(UnfaceError):
            prior.decode(latents, prior.sizes[-1] + 1)


@each
def test_a_search_can_climb_each_picture_by_its_own_latent(name: str, folder: Path) -> None:
    """A small step along the gradient makes the picture brighter, and no other latent has a part in it."""
    import torch

    prior = generator(name, folder)
    size = max((size for size in prior.sizes if size <= 64), default=prior.sizes[0])
    latents = prior.sample(2, 0).requires_grad_()

    def brightness(at: "torch.Tensor") -> "torch.Tensor":
        return prior.decode(at, size)[0].mean()

    start = brightness(latents)
    (gradient,) = torch.autograd.grad(start, latents)
    assert gradient[0].any()
    assert not gradient[1].any()
    with torch.no_grad():
        assert brightness(latents + 0.01 * gradient / gradient.norm()) > start


@of_style
def test_truncation_draws_towards_the_mean(name: str, folder: Path) -> None:
    import torch

    prior = loaded(name, folder)
    mean, whole = prior.mean_latent(), prior.sample(4, 3, 1.0)
    assert mean.shape == whole.shape[1:] == (prior.latent_dim,)
    for truncation in (0.2, 0.7):
        wanted = mean + truncation * (whole - mean)
        torch.testing.assert_close(prior.sample(4, 3, truncation), wanted, rtol=1e-5, atol=1e-5)


@of_style
def test_one_latent_for_all_slots_is_the_same_in_each(name: str, folder: Path) -> None:
    import torch

    prior = loaded(name, folder)
    latents, size = prior.sample(2, 0), prior.sizes[0]
    with torch.inference_mode():
        each = prior.decode(latents[:, None].expand(-1, prior.slots, -1), size)
        torch.testing.assert_close(prior.decode(latents, size), each)


def test_one_of_another_package_is_put_on_the_device_asked_for_and_has_no_head_of_ours() -> None:
    assert str(load_prior("toy", device="cpu:0").device) == "cpu:0"
    with pytest.raises(UnfaceError, match="head"):
        load_prior("toy", head=True)


@of_style
def test_a_device_that_is_not_known_is_refused_before_anything_is_loaded(name: str) -> None:
    with pytest.raises(UnfaceError, match="abacus"):
        load_prior(name, device="abacus")
