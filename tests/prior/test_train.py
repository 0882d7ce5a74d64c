"""If these fail, a prior is not what its recipe says: other pictures, another curve after a stop, nothing learned."""

import hashlib
import json
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.prior.tiny_unet import CONFIG
from tests.refusals.table import refused
from unface.prior.diffusion import DiffusionPrior, load_diffusion
from unface.prior.train import Recipe, Training, main, read_pictures, sampled, write_samples
from unface.seeds import stream

RECIPE = Recipe(unet=CONFIG, batch=8, learning_rate=3e-3, warm_up=10, average=0.9)


def two_pictures() -> NDArray[np.uint8]:
    """A dark and a bright one."""
    return np.stack([np.full((3, 8, 8), value, dtype=np.uint8) for value in (40, 210)])


def test_the_loss_falls_and_samples_come_from_the_pictures(tmp_path: Path) -> None:
    training = Training(RECIPE, two_pictures())
    assert training.run(200)
    assert training.losses[-1] < 0.6 * training.losses[0]
    training.save(tmp_path)
    samples = sampled(load_diffusion(tmp_path, steps=10), 12, batch=6).astype(float)
    nearest = np.abs(samples[:, None] - two_pictures()[None]).mean(axis=(2, 3, 4)).min(axis=1)
    untrained = sampled(_fresh(tmp_path / "fresh"), 12, batch=6).astype(float)
    nowhere = np.abs(untrained[:, None] - two_pictures()[None]).mean(axis=(2, 3, 4)).min(axis=1)
    assert np.median(nearest) < 0.5 * np.median(nowhere)


def _fresh(folder: Path) -> DiffusionPrior:
    training = Training(RECIPE, two_pictures())
    training.save(folder)
    return load_diffusion(folder, steps=10)


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    recipe = Recipe(unet=CONFIG, batch=4, learning_rate=3e-3, warm_up=10, flips=True)
    whole = Training(recipe, two_pictures())
    whole.run(60)
    first = Training(recipe, two_pictures())
    looks = iter([False] * 47 + [True])
    assert not first.run(60, stop=lambda: next(looks))
    assert first.step == 47
    first.save(tmp_path)
    second = Training(recipe, two_pictures())
    second.resume(tmp_path)
    assert second.run(60)
    assert second.losses == whole.losses
    assert second.summary()["weights_sha256"] == whole.summary()["weights_sha256"]
    second.save(tmp_path)
    assert json.loads((tmp_path / "training.json").read_text())["steps"] == 60


def as_on_a_gpu() -> Training:
    """Weights laid out by channels, and one kernel for all of Adam."""
    training = Training(RECIPE, two_pictures())
    training.unet.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    training.average = [weight.detach().clone() for weight in training.unet.parameters()]
    training._adam.param_groups[0]["fused"] = True
    return training


def test_a_run_in_a_gpus_layout_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, first, second = as_on_a_gpu(), as_on_a_gpu(), as_on_a_gpu()
    assert any(not weight.is_contiguous() for weight in whole.unet.parameters())
    whole.run(30)
    first.run(20)
    first.save(tmp_path)
    second.resume(tmp_path)
    for weight, moments in second._adam.state.items():
        assert moments["exp_avg"].stride() == moments["exp_avg_sq"].stride() == weight.stride()
    second.run(30)
    assert second.losses[-1] == whole.losses[-1]
    assert second.summary()["weights_sha256"] == whole.summary()["weights_sha256"]


def test_a_run_is_not_resumed_with_other_pictures_or_another_recipe(tmp_path: Path) -> None:
    training = Training(RECIPE, two_pictures())
    training.run(1)
    training.save(tmp_path)
    with refused("prior", "test_a_run_is_not_resumed_with0"):
        Training(RECIPE, two_pictures()[:1]).resume(tmp_path)
    with refused("prior", "test_a_run_is_not_resumed_with0"):
        Training(Recipe(unet=CONFIG, batch=4), two_pictures()).resume(tmp_path)
    (tmp_path / "state.safetensors").write_bytes(b"cut")
    with refused("prior", "test_a_run_is_not_resumed_with0/state.safetensors"):
        Training(RECIPE, two_pictures()).resume(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"identity": ...},
        {"step": ...},
        {"step": "1"},
        {"step": -1},
        {"seconds": None},
        {"losses": 3},
        {"losses": ["x"]},
        {"unsaid": [{}]},
    ],
    ids=str,
)
def test_a_damaged_account_of_the_steps_is_one_line(tmp_path: Path, change: dict[str, object]) -> None:
    training = Training(RECIPE, two_pictures())
    training.run(1)
    training.save(tmp_path)
    path = tmp_path / "state.safetensors"
    with safe_open(path, framework="pt") as file:
        progress = {**json.loads(file.metadata()["progress"]), **change}
    left = {name: value for name, value in progress.items() if value is not ...}
    save_file(load_file(path), path, {"progress": json.dumps(left)})
    with refused("prior", ..., "state.safetensors"):
        Training(RECIPE, two_pictures()).resume(tmp_path)


def test_weights_that_are_missing_or_of_another_shape_are_one_line(tmp_path: Path) -> None:
    training = Training(RECIPE, two_pictures())
    training.run(1)
    training.save(tmp_path)
    path = tmp_path / "state.safetensors"
    with safe_open(path, framework="pt") as file:
        said = file.metadata()
    whole = load_file(path)
    for name in ("weight.conv_in.bias", "average.conv_in.bias", "adam.exp_avg.conv_in.bias", "adam.step.conv_in.bias"):
        for damaged in ({}, {name: torch.zeros(7, 3)}):
            save_file({key: value for key, value in whole.items() if key != name} | damaged, path, said)
            with refused("prior", "test_weights_that_are_missing_0/state.safetensors"):
                Training(RECIPE, two_pictures()).resume(tmp_path)


def test_a_learning_rate_that_diverges_is_an_error() -> None:
    training = Training(Recipe(unet=CONFIG, batch=2, learning_rate=1e30, warm_up=1), two_pictures())
    with refused("prior", None, "lower"):
        training.run(60)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Four people with two pictures of 20 × 30 each; a person's red is her number, and the crop's corner is white."""
    for number in range(4):
        for image in range(2):
            picture = np.full((30, 20, 3), (10 * number, image, 0), dtype=np.uint8)
            picture[5, 2] = 255
            path = tmp_path / "people" / f"p{number}" / f"{image}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(path)
    return tmp_path / "people"


def test_pictures_are_the_crop_of_the_first_people_by_hash(people: Path) -> None:
    found = read_pictures(people, size=16, crop=(2, 5, 16), people=3)
    order = sorted(range(4), key=lambda number: hashlib.sha256(f"p{number}".encode()).hexdigest())[:3]
    assert found.shape == (6, 3, 16, 16)
    assert found[:, 0, 8, 8].tolist() == [10 * number for number in order for _ in range(2)]
    assert found[:, 1, 8, 8].tolist() == [0, 1] * 3
    assert (found[:, :, 0, 0] == 255).all()
    assert not (found[:, :, 1:, 1:] == 255).any()
    middle = read_pictures(people, size=20)
    assert (middle[:, :, 0, 2] == 255).all()  # rows 5 to 25


def test_bad_requests_are_refused(people: Path) -> None:
    with refused("prior", "people", "5", "has 4"):
        read_pictures(people, people=5)
    with refused("prior", "people", "20", "30", "of 16", "0"):
        read_pictures(people, crop=(5, 0, 16))
    with refused("prior", None, "3", "8"):
        Training(RECIPE, np.zeros((2, 3, 9, 8), dtype=np.uint8))


@pytest.mark.parametrize("jpeg", [None, 95])
def test_samples_are_pictures_in_one_zip(tmp_path: Path, jpeg: int | None) -> None:
    level = stream(0, "levels").integers(0, 256, (3, 3, 1, 1), dtype=np.uint8)
    pictures = np.broadcast_to(level, (3, 3, 8, 8))
    write_samples(tmp_path / "samples.zip", pictures, jpeg)
    with zipfile.ZipFile(tmp_path / "samples.zip") as archive:
        names = archive.namelist()
        read = np.stack([np.asarray(Image.open(BytesIO(archive.read(name)))) for name in names])
    assert names == [f"generated/0000{number}.{'png' if jpeg is None else 'jpg'}" for number in range(3)]
    difference = np.abs(read.transpose(0, 3, 1, 2).astype(int) - pictures).max()
    assert difference == 0 if jpeg is None else difference <= 3


def test_the_command_says_one_line_about_a_bad_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing"), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()
