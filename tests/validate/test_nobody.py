"""If these fail, people who do not exist are drawn otherwise than said, or enrolled people are asked with."""

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from tests.probe.small import Told
from tests.refusals.table import refused
from unface.validate.nobody import Drawing, GeneratedFaces

torch = pytest.importorskip("torch")


class ToyPrior:
    """Latents of two numbers; a picture is as red as the first slot's first and as blue as the last slot's second."""

    name, slots, device = "toy", 3, torch.device("cpu")

    def __init__(self, sizes: tuple[int, ...] = (64, 128)) -> None:
        self.sizes, self.sampled, self.decoded = sizes, list[tuple[int, int, float]](), list[tuple[int, int]]()

    def sample(self, count: int, seed: int, truncation: float) -> Any:
        self.sampled.append((count, seed, truncation))
        return torch.stack([torch.arange(count) / 100, 1 - torch.arange(count) / 100], dim=1)

    def decode(self, latents: Any, size: int) -> Any:
        assert latents.dtype == torch.float32
        self.decoded.append((len(latents), size))
        made = torch.zeros(len(latents), 3, size, size)
        made[:, 0], made[:, 2] = latents[:, 0, 0, None, None], latents[:, -1, 1, None, None]
        made[:, 1] = 1.7  # beyond white
        return made


def pixels(content: bytes) -> Any:
    return np.asarray(Image.open(BytesIO(content)))


def test_generated_faces_are_one_latent_in_all_slots_and_pictures_without_loss() -> None:
    prior = ToyPrior()
    faces = GeneratedFaces(cast(Any, prior))
    assert faces.name == "toy"
    latents = faces.sample(20, seed=7)
    assert prior.sampled == [(20, 7, 0.8)]
    assert latents.shape == (20, 3, 2)
    assert latents.dtype == np.float64
    np.testing.assert_array_equal(latents[:, 0], latents[:, 2])
    made = faces.pictures(latents)
    assert prior.decoded == [(16, 128), (4, 128)], "at the prior's own size, which is below 256"
    for number in (0, 15, 16, 19):
        assert pixels(made[number].content)[0, 0].tolist() == [round(2.55 * number), 255, round(255 - 2.55 * number)]
        assert made[number].content.startswith(b"\x89PNG")
        assert made[number].sha256.startswith(made[number].name)
        assert len(made[number].name) == 16
    assert GeneratedFaces(cast(Any, prior), 0.5).sample(1, 2).shape == (1, 3, 2)
    assert prior.sampled[-1] == (1, 2, 0.5)
    large = ToyPrior((256, 512))
    GeneratedFaces(cast(Any, large)).drawn(latents[:1])
    assert large.decoded == [(1, 256)]


def drawing(progress: Told | None = None, device: str = "cpu") -> Drawing:
    return Drawing(5, device, True, 2, progress or Told())


def test_faces_to_ask_with_have_a_seed_of_their_own_and_those_that_are_there_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, loaded, progress = ToyPrior(), list[dict[str, object]](), Told()

    def load(**given: object) -> ToyPrior:
        loaded.append(given)
        return prior

    monkeypatch.setattr("unface.prior.load_prior", load)
    kept = tmp_path / "q00003" / "0.jpg"
    kept.parent.mkdir()
    kept.write_bytes(b"mine")
    assert drawing(progress).queries(20, tmp_path) == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"q{number:05d}" for number in range(20)]
    assert kept.read_bytes() == b"mine"
    assert prior.sampled == [(20, 5 + 1_000_003, 0.8)], "other people than the enrolled ones, who have the seed itself"
    assert [count for count, _ in prior.decoded] == [8, 8, 3], "nineteen were missing"
    for number in (0, 4, 19):
        content = (tmp_path / f"q{number:05d}" / "0.jpg").read_bytes()
        assert content.startswith(b"\xff\xd8\xff")
        wanted = [round(2.55 * number), 255, round(255 - 2.55 * number)]
        assert np.abs(pixels(content)[9, 9].astype(int) - wanted).max() <= 3
    assert progress.started == [("drawing faces to ask with", 20)]
    assert progress.advanced == {"drawing faces to ask with": 20}, "the one that was there included"
    assert loaded == [{"device": "cpu", "accept_licence": True, "threads": 2, "progress": progress, "head": True}]
    assert drawing().queries(20, tmp_path) == tmp_path
    assert len(loaded) == 1, "nothing was missing"
    drawing(device="cuda").generator()
    assert loaded[-1]["head"] is False, "a GPU draws whole pictures"


def test_enrolled_people_come_from_synth_by_the_seed_itself_and_a_finished_folder_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, loaded = list[tuple[Any, ...]](), list[tuple[Sequence[str], dict[str, object]]]()
    prior = ToyPrior()

    def load_panel(names: Sequence[str], **given: object) -> str:
        loaded.append((names, given))
        return "panel"

    heads: list[object] = []

    def load_prior(**given: object) -> ToyPrior:
        heads.append(given["head"])
        return prior

    def load_detector(*, accept_licence: bool) -> str:
        return f"detector {accept_licence}"

    def synthesise(*given: object, threads: int, progress: object) -> None:
        made.append((*given, threads))

    monkeypatch.setattr("unface.prior.load_prior", load_prior)
    monkeypatch.setattr("unface.judge.load_panel", load_panel)
    monkeypatch.setattr("unface.faces.load_detector", load_detector)
    monkeypatch.setattr("unface.synth.synthesise", synthesise)
    progress = Told()
    assert drawing(progress).enrolled(30, tmp_path) == tmp_path
    ((recipe, *rest),) = made
    assert rest == [prior, "panel", "detector True", tmp_path, 2]
    assert heads == [False], "synth draws whole pictures"
    assert (recipe.identities, recipe.images, recipe.size, recipe.seed, recipe.truncation) == (30, 4, 256, 5, 0.8)
    ((names, how),) = loaded
    assert tuple(names) == ("arcface-mbf", "sface")
    assert how == {"device": "cpu", "accept_licence": True, "threads": 2, "progress": progress}
    (tmp_path / "synth.json").write_text("{}")
    assert drawing().enrolled(30, tmp_path) == tmp_path
    assert len(made) == 1


def test_without_torch_nobody_can_be_drawn_and_a_folder_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unface.validate.nobody.find_spec", lambda name: None if name == "torch" else sys)
    with refused("validation", "nobody", "unface[torch]"):
        drawing().generator()
