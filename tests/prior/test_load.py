"""If this fails, a prior is loaded without its licence accepted, or from files that are not the ones its card pins."""

from pathlib import Path

import pytest
import torch

from tests.models.served import Index, serving, wheel
from tests.real import weights_here
from tests.refusals.table import refused
from unface.models import card
from unface.prior import load_prior


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
