"""If these fail, ``unface protect facemae`` leaves no release that others read, or ends in more than a line."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.command import unface as run
from tests.protect.test_facemae_train import TOY
from tests.real import weights_here
from unface.data import read_images
from unface.protect import facemae
from unface.seeds import stream

QUICK = ("--preset", "tiny", "--loss", "mse", "--mask-ratio", 0.5, "--epochs", 2, "--detector", "none")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``train`` and ``publish``, eight people with two pictures each in both, no person in both."""
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)
    random = stream(0, "pictures")
    for name in ("train", "publish"):
        for number in range(16):
            path = tmp_path / name / f"{name}-{number // 2}" / f"{number % 2}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path)
    return tmp_path


def test_a_model_is_trained_and_a_release_made_of_other_people(folders: Path) -> None:
    done = run("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{folders / 'model'}: 8 of 8 steps on 16 faces, 8 people\n"
    options = ("--model", folders / "model", "--out", folders / "out", "--licence", "CC0", "--detector", "none")
    made = run("protect", "facemae", "deploy", folders / "publish", *options)
    assert (made.code, made.err) == (0, "")
    assert made.out == f"{folders / 'out'}: 16 pictures of 8 people\n"
    assert len(read_images(folders / "out")) == 16
    assert json.loads((folders / "out" / "manifest.json").read_text())["people_shared_with_training"] == "not found"
    assert (folders / "out.mask-seed").stat().st_mode & 0o077 == 0
    again = run("protect", "facemae", "deploy", folders / "publish", *options)
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "is not empty" in again.err


def test_people_of_the_training_set_are_reported(folders: Path) -> None:
    run("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK)
    made = run(
        "protect", "facemae", "deploy", folders / "train", "--model", folders / "model", "--out", folders / "out",
        "--licence", "CC0", "--detector", "none", "--json",
    )  # fmt: skip
    assert made.code == 0
    assert made.err == "train: people of it are in the model's training set; the release protects them less\n"
    assert json.loads(made.out)["people_shared_with_training"] == "yes"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--preset", "large"), "preset 'large' is not known; choose from tiny, small, base"),
        (("--loss", "l1"), "loss 'l1' is not known; choose from mse, im, rm, irm"),
        (("--hide", "nose"), "'nose' cannot be hidden; choose from none, eyes, mouth"),
        (("--device", "tpu"), "device 'tpu' is not known"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(folders: Path, options: tuple[str, str], said: str) -> None:
    done = run("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK, *options)
    assert (done.code, done.err.count("\n")) == (1, 1), done.err
    assert said in done.err
    assert not (folders / "model").exists()


def test_a_checkpoint_of_another_preset_and_an_unfinished_one_are_refused(folders: Path) -> None:
    train = ("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK)
    stopped = run(*train, "--seconds", 0)
    assert stopped.code == 0
    assert "not finished; give the same command again" in stopped.out
    other = run(*train, "--preset", "small")
    assert (other.code, other.err.count("\n")) == (1, 1)
    assert "is a checkpoint of preset tiny, not small; choose another --out" in other.err
    early = run(
        "protect", "facemae", "deploy", folders / "publish", "--model", folders / "model", "--out", folders / "out",
        "--licence", "CC0", "--detector", "none",
    )  # fmt: skip
    assert (early.code, early.err.count("\n")) == (1, 1)
    assert "model: 0 of 8 steps are done; give the train command again" in early.err
    assert not list(folders.glob("out*"))


def test_a_recogniser_without_gradients_is_named_with_others_that_have_some(folders: Path) -> None:
    weights_here("dlib")
    done = run(
        "protect", "facemae", "train", folders / "train", "--out", folders / "model", "--preset", "tiny",
        "--recogniser", "dlib", "--accept-licence", "--detector", "none",
    )  # fmt: skip
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "encoder 'dlib' has no gradients" in done.err
    assert "arcface-mbf" in done.err
