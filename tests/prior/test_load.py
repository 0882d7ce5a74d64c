"""If this fails, a prior is loaded without its licence accepted, or from files that are not the ones its card pins."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models.served import Index, serving, wheel
from tests.real import weights_here
from unface.errors import UnfaceError
from unface.models import card
from unface.prior import load_prior


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("UNFACE_OFFLINE", raising=False)
    return tmp_path


def test_the_licence_has_to_be_accepted(cache: Path) -> None:
    with pytest.raises(
        UnfaceError, match=r"^mobilestylegan-mapping: its licence is Apache-2\.0, likely NVIDIA's non-com"
    ):
        load_prior()
    assert not list(cache.rglob("*.bin"))


def test_weights_with_another_hash_are_refused_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = card("mobilestylegan-mapping")
    members = {f"random_face/data/{part.file}": bytes(part.bytes) for part in wanted.parts}
    with serving(Index({"random_face-2021.7.21.1-py3-none-any.whl": wheel(members)})) as index:
        monkeypatch.setenv("PIP_INDEX" + "_URL", f"{index.address}/index/")
        with pytest.raises(
            UnfaceError, match=r"^mobilestylegan-mapping: refused, MappingNetwork\.\w+ has sha256 .* 212d|73e2"
        ):
            load_prior(accept_licence=True)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_graph_changed_in_the_cache_is_not_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_OFFLINE", "1")
    wanted = card("mobilestylegan-mapping")
    folder = cache / "models" / wanted.name
    folder.mkdir(parents=True)
    for part in wanted.parts:
        (folder / part.file).write_bytes(bytes(part.bytes))
    with pytest.raises(UnfaceError, match=r"^mobilestylegan-mapping: damaged in the cache"):
        load_prior(accept_licence=True)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "stylegan9",
            {},
            "stylegan9: no prior of that name, and no file; expected mobilestylegan, mobilestylegan-128 or a StyleGAN2 "
            "file",
        ),
        ("x.safetensors", {"head": True}, "x.safetensors: has no low-resolution head; only mobilestylegan has one"),
        ("mobilestylegan", {"device": "abacus"}, "device 'abacus' is not known; use 'cpu' or 'cuda'"),
        ("mobilestylegan", {"device": "cpu:x"}, "device 'cpu:x' is not known; use 'cpu' or 'cuda'"),
        ("mobilestylegan", {"device": "cpu:1"}, "device 'cpu:1': there are 1 of that kind here, counted from 0"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_a_sentence(name: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnfaceError) as told:
        load_prior(name, **settings)
    assert str(told.value) == sentence


MODULE = """
import torch

class Grey:
    name, slots, latent_dim, sizes = "grey", 2, 3, (8,)

    def __init__(self, device):
        self.device = torch.device(device)

    def mean_latent(self):
        return torch.zeros(3, device=self.device)

    def sample(self, count, seed, truncation=0.7):
        return truncation * torch.ones(count, 3, device=self.device)

    def decode(self, latents, size):
        return latents.flatten(1).mean(dim=1).view(-1, 1, 1, 1).expand(-1, 3, size, size)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip would leave it, with one entry point."""
    (tmp_path / "somebodys_prior.py").write_text(MODULE)
    info = tmp_path / "somebodys_prior-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-prior\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[unface.priors]\ngrey = somebodys_prior:Grey\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_a_registered_prior_is_loaded_by_its_name_on_the_device_asked_for() -> None:
    prior = load_prior("grey", device="cpu:0")
    assert (prior.name, prior.device) == ("grey", torch.device("cpu:0"))
    assert torch.equal(prior.decode(prior.sample(2, 0, 0.5), 8), torch.full((2, 3, 8, 8), 0.5))
    with pytest.raises(UnfaceError, match=r"^grey: has no low-resolution head"):
        load_prior("grey", head=True)
    with pytest.raises(UnfaceError, match=r"^device 'abacus' is not known"):
        load_prior("grey", device="abacus")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(UnfaceError, match=r"^device 'cuda': PyTorch finds no GPU here; use 'cpu'$"):
        load_prior(device="cuda")


def test_a_gpu_of_another_number_is_told_with_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UnfaceError, match=r"^device 'cuda:2': there are 2 of that kind here, counted from 0$"):
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
