"""If this fails, a trait network does not learn, or what is registered is another network than was trained."""

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from studies.trait_networks import Recipe, changed, export, train
from studies.trait_vectors import Network, named

from tests.kit.command import unface as run
from unface import load_encoder
from unface.encode import tensor_of
from unface.seeds import stream

torch = pytest.importorskip("torch")
TOY = Recipe(size=32, patch=8, width=32, depth=2, heads=2, out=16, epochs=12, batch=16, learning_rate=0.1)
PEOPLE, IMAGES = 6, 8


def faces() -> tuple[np.ndarray, np.ndarray]:
    """Coloured patterns, one for each person, with noise; always the same left and right, as eyes nearly are."""
    rng = stream(0, "toy traits")
    half = rng.integers(0, 256, (PEOPLE, 4, 2, 3))
    pattern = np.concatenate([half, half[:, :, ::-1]], axis=2).repeat(8, axis=1).repeat(8, axis=2)
    noise = rng.normal(0, 20, (PEOPLE, IMAGES, 32, 32, 3))
    frames = np.clip(pattern[:, None] + noise, 0, 255).astype(np.uint8).reshape(-1, 32, 32, 3)
    return frames, np.repeat(np.arange(PEOPLE), IMAGES)


def test_cross_entropy_learns_people_and_the_file_is_an_encoder_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames, people = faces()
    network, losses = train(frames, people, TOY)
    assert losses[-1] < 0.5 * losses[0]
    export(network, TOY, tmp_path / "eyes.onnx")
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    added = run(
        "models", "add", tmp_path / "eyes.onnx", "--name", "eyes-vit", "--mean", 127.5, "--std", 127.5,
        "--resize", "letterbox",
    )  # fmt: skip
    assert (added.code, added.err) == (0, "")
    encoder = load_encoder("eyes-vit", threads=1)
    assert encoder.card.input == TOY.input
    vectors = encoder.encode(list(frames))
    with torch.inference_mode():
        expected = network(torch.from_numpy(tensor_of(list(frames), TOY.input))).numpy()
    np.testing.assert_allclose(vectors, expected, rtol=1e-3, atol=1e-4)


def test_a_student_comes_nearer_to_its_teacher_on_faces_it_has_not_seen() -> None:
    frames, people = faces()
    teacher = stream(1, "teacher").normal(size=(PEOPLE, TOY.out)).astype(np.float32)[people]
    seen = np.arange(len(people)) % IMAGES < 6
    network, losses = train(frames[seen], teacher[seen], TOY)
    with torch.inference_mode():
        said = network(torch.from_numpy(tensor_of(list(frames[~seen]), TOY.input))).numpy()
    cosine = (said * teacher[~seen]).sum(1) / np.linalg.norm(said, axis=1) / np.linalg.norm(teacher[~seen], axis=1)
    assert losses[0] > 0.6  # strangers to each other at first
    assert cosine.mean() > 0.6


def test_training_is_the_same_each_time_and_sees_changed_pictures() -> None:
    frames, people = faces()
    once = Recipe(**{**TOY.__dict__, "epochs": 1})
    assert train(frames, people, once)[1] == train(frames, people, once)[1]
    pictures = torch.from_numpy(frames[:4])
    assert not torch.equal(changed(pictures, TOY, 0, 0), changed(pictures, TOY, 1, 0))
    assert changed(pictures, TOY, 0, 0).shape == (4, 3, 32, 32)


def test_frames_kept_small_are_enlarged_and_the_clock_ends_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """``studies.trait_vectors`` keeps crops at half the size and gives each network some seconds."""
    frames, people = faces()
    small = Recipe(**{**TOY.__dict__, "adam": True, "learning_rate": 3e-3, "epochs": 10})
    losses = train(np.ascontiguousarray(frames[:, ::2, ::2]), people, small)[1]
    assert losses[-1] < 0.7 * losses[0]
    ticks = itertools.count()
    monkeypatch.setattr("studies.trait_networks.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    assert len(train(frames, people, small, seconds=5.0)[1]) == 2, "four steps: an epoch of three, and part of another"


def test_naming_known_people_worked_by_hand() -> None:
    """Three people on axes; one unlearned picture ranks its own person first, the other one second: (1 + 1/2) / 2."""
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.9, 0.1, 0], [0.6, 0.5, 0]], np.float16)
    people = np.array([0, 1, 2, 0, 1])
    known = np.array([True, True, True, False, False])
    assert named(vectors, people, known) == 0.75


def test_a_network_is_learned_once_and_all_but_the_last_picture_of_those_who_are_not_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.trait_vectors.PEOPLE", 2)
    frames, people = faces()
    network = Network(tmp_path / "people_eyes", replace(TOY, adam=True, learning_rate=3e-3), "cpu")
    network.learn(frames[:, None], people, 0, np.inf)
    assert (network.facts["pictures"], network.facts["people"]) == (PEOPLE * IMAGES - (PEOPLE - 2), PEOPLE)
    assert network.facts["names"] == 1.0
    again = Network(tmp_path / "people_eyes", network.recipe, "cpu")
    again.learn(frames[:0, None], people[:0], 0, 0.0)
    np.testing.assert_array_equal(again.vectors(frames), network.vectors(frames))
    assert again.facts == network.facts
