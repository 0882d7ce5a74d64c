"""If these fail, the recogniser that says what a release is good for learns another loss, or nothing."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from tests.prior.gradients import relative_error
from tests.real import nobody_pictures
from tests.refusals.table import refused
from unface.data import read_images
from unface.protect.facemae_frames import read_faces
from unface.protect.recogniser import (
    RECOGNISERS,
    MobileFaceNet,
    RecogniserRecipe,
    arcface_loss,
    load_trained,
    train_recogniser,
)
from unface.seeds import stream

QUICK = RecogniserRecipe(size=32, width=0.25, dim=32, epochs=6, batch=32)


def test_arcface_is_the_cross_entropy_of_the_closed_form() -> None:
    """Own angles of 60° and 90°, margin 0.3: cosines cos(π/3 + 0.3) and cos(π/2 + 0.3), the others as they are."""
    cosines = torch.tensor([[0.5, 0.2], [0.1, 0.0]], dtype=torch.float64)
    found = arcface_loss(cosines, torch.tensor([0, 1]), 10.0, 0.3)
    first, second = 10 * math.cos(math.pi / 3 + 0.3), 10 * math.cos(math.pi / 2 + 0.3)
    expected = (math.log1p(math.exp(2.0 - first)) + math.log1p(math.exp(1.0 - second))) / 2
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_without_a_margin_arcface_is_plain_cross_entropy() -> None:
    cosines = torch.from_numpy(stream(0, "cosines").uniform(-1, 1, (5, 7)))
    people = torch.tensor([0, 3, 6, 2, 2])
    torch.testing.assert_close(arcface_loss(cosines, people, 16.0, 0.0), functional.cross_entropy(16 * cosines, people))


def test_the_loss_has_the_gradient_of_finite_differences() -> None:
    vectors = torch.from_numpy(stream(0, "vectors").standard_normal((4, 6)))
    head = functional.normalize(torch.from_numpy(stream(0, "head").standard_normal((5, 6))), dim=1)
    people = torch.tensor([4, 0, 1, 1])

    def loss(x: torch.Tensor) -> torch.Tensor:
        return arcface_loss(functional.normalize(x, dim=1) @ head.T, people, 8.0, 0.5)

    assert relative_error(loss, vectors) < 1e-7


def test_a_larger_angle_never_costs_less() -> None:
    """Also beyond 180° − margin, where cos(θ + margin) would turn back."""
    angles = torch.linspace(0.01, math.pi - 0.01, 400, dtype=torch.float64)
    losses = [float(arcface_loss(torch.tensor([[math.cos(one), 0.1]]), torch.tensor([0]), 8.0, 0.5)) for one in angles]
    assert (np.diff(losses) > 0).all()


def test_mobilefacenet_has_its_published_size() -> None:
    """0.99 million weights at 112², with 128 numbers (Chen et al. 2018, table 2); vectors as wide as asked for."""
    count = sum(weight.numel() for weight in MobileFaceNet(RecogniserRecipe()).parameters())
    assert 0.9e6 < count < 1.25e6
    network = MobileFaceNet(RECOGNISERS["tiny"]).eval()
    assert network(torch.zeros(2, 3, 64, 64)).shape == (2, 128)
    with refused("protection", None, "is 100", "of 16"):
        RecogniserRecipe(size=100)


def test_it_learns_people_and_carries_over_to_others(tmp_path: Path) -> None:
    """Pictures of nobody: of 24 people 18 are learned; pictures of the other six are separated better than before."""
    faces = read_faces(read_images(nobody_pictures()), 32, None)
    people = np.unique(faces.identities, return_inverse=True)[1].astype(np.int64)
    known = people < 18
    learned = train_recogniser(faces.frames[known], people[known], QUICK)
    untrained = train_recogniser(faces.frames[known], people[known], replace(QUICK, epochs=1, learning_rate=0.0))
    assert _gap(learned.embed(faces.frames[~known]), people[~known]) > 1.5 * _gap(
        untrained.embed(faces.frames[~known]), people[~known]
    )
    learned.save(tmp_path / "r.safetensors")
    again = load_trained(tmp_path / "r.safetensors")
    np.testing.assert_array_equal(again.embed(faces.frames[:5]), learned.embed(faces.frames[:5]))
    assert again.recipe == QUICK
    (tmp_path / "bad.safetensors").write_bytes(b"cut")
    with refused("protection", "bad.safetensors"):
        load_trained(tmp_path / "bad.safetensors")
    whole = (tmp_path / "r.safetensors").read_bytes()
    (tmp_path / "bad.safetensors").write_bytes(whole.replace(b"seconds", b"minutes"))
    with refused("protection", "bad.safetensors"):
        load_trained(tmp_path / "bad.safetensors")


def _gap(vectors: NDArray[np.float32], people: NDArray[np.int64]) -> float:
    """Mean cosine within people less that between them, in standard deviations of the latter."""
    scores, same = vectors @ vectors.T, people[:, None] == people
    upper = np.triu(np.ones_like(same), 1)
    own, others = scores[same & upper], scores[~same & upper]
    return float((own.mean() - others.mean()) / others.std())


def test_the_same_seed_gives_the_same_recogniser_and_one_person_is_refused() -> None:
    frames = stream(0, "frames").integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    people = np.arange(24) % 4
    one, two = (train_recogniser(frames, people, replace(QUICK, epochs=1, batch=12)) for _ in range(2))
    np.testing.assert_array_equal(one.embed(frames), two.embed(frames))
    other = train_recogniser(frames, people, replace(QUICK, epochs=1, batch=12, seed=1))
    assert not np.array_equal(one.embed(frames), other.embed(frames))
    with refused("protection", None, "least"):
        train_recogniser(frames, np.zeros(24, np.int64), QUICK)
