"""Map²V on many people at once is the search of unface.validate, and its servers are those of unface.protect."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")

from studies.ppfr_climb import Cell, Climb, Ledger, Reconstructing, best_mean, claim, ready, there  # noqa: E402
from torch import Tensor  # noqa: E402

from tests.encode.tiny import card  # noqa: E402
from unface.data import Space  # noqa: E402
from unface.protect.frequency import scheme  # noqa: E402
from unface.protect.server import ReconstructingServer  # noqa: E402
from unface.seeds import stream  # noqa: E402
from unface.validate.map2v import IMPROVED, PUBLISHED, Map2V, Pool, Search  # noqa: E402
from unface.validate.ports import Knowledge, Picture  # noqa: E402
from unface.validate.scores import Regressions  # noqa: E402

SLOTS, DIM = 3, 6


class Toy:
    """Pictures are latents; a person's score is minus the squared distance of the mean slot to the truth."""

    name, decisions_only, left = "toy", False, 10**9

    def __init__(self, truth: NDArray[np.float64]) -> None:
        self.truth, self.asked = truth, 0

    def sample(self, count: int, seed: int) -> NDArray[np.float64]:
        drawn = stream(seed, "toy").standard_normal((count, 1, DIM)) * np.arange(1, DIM + 1)
        return np.repeat(drawn, SLOTS, axis=1)

    def pictures(self, latents: NDArray[np.float64]) -> tuple[Picture, ...]:
        return tuple(Picture(str(at), np.asarray(one, np.float64).tobytes()) for at, one in enumerate(latents))

    def embed(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        seen = np.stack([np.frombuffer(one.content).reshape(SLOTS, DIM) for one in pictures]).mean(axis=1)
        return np.asarray(seen / np.linalg.norm(seen, axis=1, keepdims=True), np.float32)

    def ask(self, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        self.asked += len(pictures)
        seen = np.stack([np.frombuffer(one.content).reshape(SLOTS, DIM) for one in pictures]).mean(axis=1)
        return -np.asarray(((seen - self.truth) ** 2).sum(axis=1))


@pytest.mark.parametrize(
    "search",
    [
        replace(PUBLISHED, pool=20, steps=30, slower_from=10),
        replace(PUBLISHED, pool=20, steps=30, space="w", ensemble=1),
        replace(IMPROVED, pool=20, steps=30, from_scores=12, components=4),
    ],
)
def test_all_people_at_once_find_what_the_search_finds_one_by_one(search: Search) -> None:
    truths = stream(3, "truths").standard_normal((2, DIM))
    toys = [Toy(truth) for truth in truths]
    faces = toys[0].pictures(toys[0].sample(40, 99))
    knowledge = Knowledge(faces, toys[0].embed(faces), "own", 0, toys[0], toys[0].embed)
    budget = search.questions
    expected = [Map2V(search).run(toy, knowledge, (budget,)).pictures[0][0] for toy in toys]

    latents = toys[0].sample(20, 0)
    if search.from_scores:
        own = replace(knowledge, pictures=faces, vectors=knowledge.vectors)
        pool = Pool(own, search, None, latents, (), toys[0].embed(toys[0].pictures(latents)), Regressions(own))
        ranks = np.stack([pool.nearness(toy.ask(faces[: search.from_scores])) for toy in toys])
        axes = torch.from_numpy(pool.chart(pool.mean).axes)
    else:
        ranks, axes = np.stack([toy.ask(toy.pictures(latents)) for toy in toys]), None
    asked = 0

    def score(points: Tensor) -> Tensor:
        nonlocal asked
        asked += points.shape[1]
        distances: Tensor = ((points.mean(dim=2) - torch.from_numpy(truths)[:, None]) ** 2).sum(dim=2)
        return -distances

    climb = Climb(search, best_mean(ranks, torch.from_numpy(latents), search.ensemble), axes)
    first = search.from_scores or search.pool
    count, found = climb.run(score, first, budget, lambda n, latents: False)
    assert count == first + asked == budget == toys[0].asked - first
    for one, picture in zip(found.numpy(), expected, strict=True):
        assert picture is not None
        assert np.abs(one.ravel() - np.frombuffer(picture.content)).max() < 1e-9


def test_the_white_box_follows_the_gradient_and_counts_its_steps() -> None:
    truth = torch.from_numpy(stream(3, "truths").standard_normal((2, DIM)))
    start = torch.zeros(2, SLOTS, DIM, dtype=torch.float64)
    climb = Climb(replace(PUBLISHED, steps=300, slower_from=None, decay=0.0, truncation=1.0), start, white_box=True)

    def score(points: Tensor) -> Tensor:
        distances: Tensor = ((points.mean(dim=2) - truth[:, None]) ** 2).sum(dim=2)
        return -distances

    count, found = climb.run(score, 500, 800, lambda n, latents: False)
    assert count == 800
    assert float((found.mean(dim=1) - truth).abs().max()) < 1e-3
    stopped, _ = climb.run(score, 500, 800, lambda n, latents: n >= 510)
    assert stopped == 510


class Flat:
    """A recogniser that gives back the picture."""

    name, wanted, space = "flat", replace(card().input, size=16, alignment="arcface112"), Space("flat", None, 768, True)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.stack(frames).reshape(len(frames), -1).astype(np.float32)


@pytest.mark.parametrize("laplace", [None, 1e-3])
def test_the_torch_server_reconstructs_what_the_room_does(laplace: float | None) -> None:
    chosen = replace(scheme("dctdp"), laplace=laplace)
    smooth = stream(0, "smooth").uniform(40, 200, (2, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
    pictures = np.rint(smooth + stream(1, "smooth").uniform(-9, 9, smooth.shape)).astype(np.uint8)
    expected = ReconstructingServer(chosen, Flat()).reconstructed(pictures)
    given = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()
    found = Reconstructing(chosen, torch.nn.Flatten(), "cpu", 16).reconstructed(given)
    assert np.abs(found.permute(0, 2, 3, 1).numpy() - expected).max() <= 1
    assert np.abs(expected.astype(int) - pictures).max() > 3  # its own mean is what a picture loses


def test_a_batch_is_in_the_ledger_before_it_is_asked(tmp_path: Path) -> None:
    with (tmp_path / "ledger").open("w", encoding="utf-8") as file:
        ledger = Ledger(file, {"search": "toy"})
        ledger.count(500)
        ledger.count(17)
        assert (tmp_path / "ledger").read_text(encoding="utf-8").splitlines()[-1] == '{"search": "toy", "asked": 517}'
        assert ledger.asked == 517


def test_two_processes_share_cells_and_wait_for_a_server_that_is_still_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = Namespace(out=tmp_path, system=["dctdp/published/arcface-mbf", "dctdp/published/distilled"])
    cell, later = Cell.of("0:published:20"), Cell.of("1:best of generated:0")
    assert [claim(asked, cell), claim(asked, cell)] == [True, False]
    assert [there(asked, cell), there(asked, later)] == [True, False]
    (tmp_path / "distilled").mkdir()
    assert not ready(asked, later), "a folder is not a server"
    (tmp_path / "distilled" / "server.safetensors").touch()
    assert ready(asked, later)
    (tmp_path / "climb").mkdir()
    (tmp_path / "climb" / "dctdp_published_distilled__best-of-generated__0.npz").touch()
    assert not ready(asked, later)
