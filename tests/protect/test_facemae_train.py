"""If these fail, a FaceMAE is not what its recipe says, learns nothing, or goes on as another one after a stop."""

import errno
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.invert.toy import ToyEncoder
from tests.real import nobody_pictures
from tests.refusals.table import refused
from unface.data import read_images
from unface.protect import facemae
from unface.protect.facemae import PRESETS, Features, Masking, Visible, reconstruct
from unface.protect.facemae_deploy import read_manifest
from unface.protect.facemae_frames import Faces, read_faces
from unface.protect.facemae_train import Recipe, Training, load_facemae, train
from unface.seeds import stream

TOY = replace(
    PRESETS["tiny"],
    size=16,
    patch=4,
    dim=16,
    depth=1,
    heads=2,
    decoder_dim=16,
    decoder_depth=1,
    decoder_heads=2,
    batch=4,
)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Faces:
    """Twelve pictures of six people, and a preset that learns them in no time."""
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)
    frames = stream(0, "faces").integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    return Faces(frames, tuple(f"p{number % 6}" for number in range(12)), Counter({"no face": 1}))


def training(faces: Faces, **changes: object) -> Training:
    recipe = Recipe(preset="tiny", masking=Masking(0.5), epochs=20)
    return Training(replace(recipe, **changes), faces, Features(ToyEncoder()))  # type: ignore[arg-type]


def test_the_tiny_preset_learns_faces_of_people_it_has_not_seen() -> None:
    faces = read_faces(read_images(nobody_pictures()), 64, None)
    owners = np.array(faces.identities)
    unseen = np.isin(owners, sorted(set(owners))[-4:])
    known = Faces(faces.frames[~unseen], tuple(owners[~unseen]), Counter())
    learning = Training(Recipe(preset="tiny", loss="mse", epochs=30), known, None)
    begun = _error(learning, faces.frames[unseen])
    assert learning.run(learning.steps)
    ended = _error(learning, faces.frames[unseen])
    mean_face = float(((faces.frames[unseen] - faces.frames[~unseen].mean(axis=0)) ** 2).mean())
    assert ended < 0.5 * begun
    assert ended < 0.65 * mean_face
    assert learning.losses[-1] < 0.5 * learning.losses[0]


def _error(learning: Training, frames: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> float:
    preset = learning.preset
    shown = [
        Visible.of(frame, Masking().positions(preset, bytes(32), bytes([number])), preset)
        for number, frame in enumerate(frames)
    ]
    made = reconstruct(learning.model, Visible.stacked(shown)).astype(float)
    return float(((made - frames) ** 2).mean())


@pytest.mark.parametrize("loss", ["mse", "im", "rm", "irm"])
def test_every_loss_falls_after_the_warm_up(toy: Faces, loss: str) -> None:
    colours = stream(0, "colours").integers(0, 256, (12, 1, 1, 3), dtype=np.uint8)
    plain = replace(toy, frames=np.broadcast_to(colours, toy.frames.shape).copy())
    learning = training(plain, loss=loss, epochs=60)
    learning.run(learning.steps)
    assert (learning.steps, learning.warm_up, len(learning.losses)) == (180, 36, 9)
    assert learning.losses[-1] < 0.8 * learning.losses[2]
    pixels, after = learning.staged_losses()
    begun = 0 if loss == "mse" else 2  # 36 steps on pixels end in the second block of 20
    assert (len(pixels), pixels + after) == (begun, learning.losses)


def test_a_run_can_start_from_a_model_of_the_same_pictures(toy: Faces, tmp_path: Path) -> None:
    pixels = training(toy, loss="mse")
    assert train(pixels, tmp_path / "pixels")
    start = load_facemae(tmp_path / "pixels")
    begun = Training(Recipe(preset="tiny", masking=Masking(0.5), epochs=20), toy, Features(ToyEncoder()), start=start)
    assert begun.model.pixels.weight.equal(pixels.model.pixels.weight)
    assert begun.summary()["started_from"] == start.sha256
    assert train(begun, tmp_path / "both")
    with refused("prior", "both"):
        training(toy).resume(tmp_path / "both")
    others = replace(toy, frames=255 - toy.frames)
    with refused("protection", None, "trained"):
        Training(Recipe(preset="tiny", masking=Masking(0.5)), others, Features(ToyEncoder()), start=start)


def test_a_stopped_run_goes_on_to_the_same_bits(toy: Faces, tmp_path: Path) -> None:
    whole = training(toy)
    assert train(whole, tmp_path / "whole")
    first = training(toy)
    looks = iter([False] * 27 + [True])  # in the middle of a block of the curve
    assert not first.run(first.steps, stop=lambda: next(looks))
    assert (first.step, first.steps) == (27, 60)
    first.save(tmp_path / "parts")
    with refused("protection", "parts", "27", "of 60"):
        load_facemae(tmp_path / "parts")
    second = training(toy)
    assert train(second, tmp_path / "parts")
    assert second.losses == whole.losses
    for one, other in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    curves = [json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "parts")]
    assert curves[0]["losses"] == curves[1]["losses"]
    assert curves[0]["mse_until_step"] == 12
    assert load_facemae(tmp_path / "parts").model.pixels.weight.equal(whole.model.pixels.weight)


def test_a_budget_of_no_time_saves_and_goes_on_later(toy: Faces, tmp_path: Path) -> None:
    assert not train(training(toy), tmp_path / "out", seconds=0)
    assert train(training(toy), tmp_path / "out")
    done = training(toy)
    assert train(done, tmp_path / "out")  # finished: nothing is trained again
    assert done.step == done.steps == 60


def test_checkpoints_show_samples_of_generated_people(toy: Faces, tmp_path: Path) -> None:
    """Three rows: the pictures, what the mask shows of them, and what the model makes of that."""
    training_ = training(toy)
    train(training_, tmp_path / "out", samples=toy.frames[:5])
    shown = np.asarray(Image.open(tmp_path / "out" / "samples.png"))
    assert shown.shape == (3 * 16, 5 * 16, 3)
    np.testing.assert_array_equal(shown[:16, :16], toy.frames[0])
    masked = shown[16:32, :16]
    assert (masked.any(axis=2) <= (masked == toy.frames[0]).all(axis=2)).all()
    assert not np.array_equal(shown[32:, :16], toy.frames[0])


def test_a_kill_before_the_state_is_written_costs_steps_and_nothing_else(
    toy: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds the state of the last step writes nothing again, so that all else must be there before it."""

    class Killed(Exception): ...

    def killed(self: Training, folder: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Training, "save_state", killed)
        with pytest.raises(Killed):
            train(training(toy, loss="mse", epochs=1), tmp_path, samples=toy.frames[:2])
    there = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert {"model.safetensors", "training.json", "samples.png"} <= there


def test_a_full_disk_is_one_line_and_keeps_the_last_checkpoint(
    toy: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training(toy).save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("unface.output.write.sync", full)
    with refused("output", ..., "o space left"):
        train(training(toy), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before


def test_a_checkpoint_says_what_it_is_and_names_nobody(toy: Faces, tmp_path: Path) -> None:
    train(training(toy), tmp_path / "out")
    loaded = load_facemae(tmp_path / "out")
    assert loaded.masking == Masking(0.5)
    assert loaded.header["data"]["people"] == 6
    assert loaded.header["data"]["left_out"] == {"no face": 1}
    assert loaded.trained_on.matches([f"p{number}" for number in range(6)]).all()
    for file in ("model.safetensors", "training.json"):
        assert b"p1" not in (tmp_path / "out" / file).read_bytes()[:20_000].split(b"}}")[0]


def test_another_preset_recipe_or_set_is_not_resumed(
    toy: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training(toy).save(tmp_path)
    with refused("prior", "test_another_preset_recipe_or_0"):
        training(toy, beta=0.5).resume(tmp_path)
    with refused("prior", "test_another_preset_recipe_or_0"):
        training(replace(toy, frames=toy.frames[::-1].copy())).resume(tmp_path)
    monkeypatch.setitem(facemae.PRESETS, "small", TOY)
    with refused("protection", "test_another_preset_recipe_or_0", "--out"):
        training(toy, preset="small").resume(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"preset": "huge"}, "'huge'"),
        ({"loss": "l1"}, "'l1'"),
        ({"beta": -1.0}, "is -1"),
        ({"epochs": 0}, "is 0"),
    ],
)
def test_bad_recipes_are_refused(changes: dict[str, object], words: str) -> None:
    with refused("protection", None, words):
        replace(Recipe(), **changes)  # type: ignore[arg-type]


def test_a_recogniser_is_needed_for_feature_losses(toy: Faces) -> None:
    with refused("protection", None, "'irm'", "--recogniser"):
        Training(Recipe(preset="tiny"), toy, None)


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with refused("protection", "test_a_folder_that_holds_no_mo0"):
        load_facemae(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with refused("protection", "test_a_folder_that_holds_no_mo0"):
        load_facemae(tmp_path)
    save_file({"pixels": torch.zeros(1)}, tmp_path / "model.safetensors", {"facemae": "[" * 100_000})
    with refused("protection", "test_a_folder_that_holds_no_mo0"):
        load_facemae(tmp_path)
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with refused("protection", ..., "manifest.json"):
        read_manifest(tmp_path)


def test_a_model_whose_mask_ratio_is_beyond_all_numbers_is_refused(toy: Faces, tmp_path: Path) -> None:
    learning = training(toy, loss="mse", epochs=1)
    train(learning, tmp_path)
    path = tmp_path / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        said = json.loads(file.metadata()["facemae"])
    said["recipe"]["masking"]["ratio"] = 10**400
    save_file(load_file(path), path, {"facemae": json.dumps(said)})
    with refused("protection", "test_a_model_whose_mask_ratio_0/model.safetensors"):
        load_facemae(tmp_path)
