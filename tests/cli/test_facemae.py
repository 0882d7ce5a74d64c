"""If these fail, ``unface protect facemae`` leaves no release that others read, or ends in more than a line."""

import json
import pickle
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.encode.tiny import write_onnx
from tests.kit.command import unface as run
from tests.protect.test_facemae_train import TOY
from tests.real import weights_here
from tests.refusals.table import require_refusal
from unface.data import read_images
from unface.protect import facemae, recogniser
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
    assert done.out == f"{folders / 'model'}: 8 of 8 steps, on 16 faces of 8 people\n"
    options = ("--model", folders / "model", "--out", folders / "out", "--licence", "CC0", "--detector", "none")
    made = run("protect", "facemae", "deploy", folders / "publish", *options)
    assert (made.code, made.err) == (0, "")
    secret = "the secret that fixes the masks; keep it, and do not publish it"
    assert made.out == f"{folders / 'out'}: 16 pictures of 8 people\n{folders / 'out.mask-seed'}: {secret}\n"
    assert len(read_images(folders / "out")) == 16
    assert json.loads((folders / "out" / "manifest.json").read_text())["people_shared_with_training"] == "not found"
    assert (folders / "out.mask-seed").stat().st_mode & 0o077 == 0
    again = run("protect", "facemae", "deploy", folders / "publish", *options)
    require_refusal(again, "protection", str(folders / "out"))


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
    ("option", "value", "code", "where", "names"),
    [
        ("--preset", "large", "protection", None, "'large' tiny, small, base"),
        ("--loss", "l1", "protection", None, "'l1' mse, im, rm, irm"),
        ("--hide", "nose", "protection", None, "'nose' none, eyes, mouth"),
        ("--device", "tpu", "prior", None, "'tpu'"),
        ("--start", "nowhere", "protection", "nowhere", "FaceMAE"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(
    folders: Path, option: str, value: str, code: str, where: str | None, names: str
) -> None:
    done = run("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK, option, value)
    require_refusal(done, code, where, *names.split())
    assert not (folders / "model").exists()


def test_no_model_is_written_among_pictures(folders: Path) -> None:
    done = run("protect", "facemae", "train", folders / "train", "--out", folders / "publish", *QUICK)
    require_refusal(done, "protection", str(folders / "publish"), "--out")
    assert not list((folders / "publish").glob("*.safetensors"))


def test_a_checkpoint_of_another_preset_and_an_unfinished_one_are_refused(folders: Path) -> None:
    train = ("protect", "facemae", "train", folders / "train", "--out", folders / "model", *QUICK)
    stopped = run(*train, "--seconds", 0)
    assert (stopped.code, "not finished" in stopped.out) == (0, True)
    other = run(*train, "--preset", "small")
    require_refusal(other, "protection", "model", "preset tiny", "--out")
    early = run(
        "protect", "facemae", "deploy", folders / "publish", "--model", folders / "model", "--out", folders / "out",
        "--licence", "CC0", "--detector", "none",
    )  # fmt: skip
    require_refusal(early, "protection", "model", "0 of 8 steps")
    assert not list(folders.glob("out*"))


def test_a_recogniser_without_gradients_is_named_with_others_that_have_some(folders: Path) -> None:
    weights_here("dlib")
    done = run(
        "protect", "facemae", "train", folders / "train", "--out", folders / "model", "--preset", "tiny",
        "--recogniser", "dlib", "--accept-licence", "--detector", "none",
    )  # fmt: skip
    require_refusal(done, ..., ..., "'dlib'", "arcface-mbf")


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``out`` is a release of 64 people with two pictures each; its model, mask seed and ``pack.bin`` beside."""
    monkeypatch.setitem(facemae.PRESETS, "tiny", TOY)
    quick = recogniser.RecogniserRecipe(size=16, width=0.25, dim=16, epochs=1, batch=32)
    monkeypatch.setitem(recogniser.RECOGNISERS, "tiny", quick)
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    random = stream(3, "people")
    for name, people in (("train", 8), ("publish", 64), ("own", 12), ("others", 24)):
        bases = random.integers(0, 256, (people, 1, 4, 4, 3)).repeat(4, axis=2).repeat(4, axis=3)
        pictures = np.clip(bases + random.integers(-20, 20, (people, 2, 16, 16, 3)), 0, 255).astype(np.uint8)
        for person, both in enumerate(pictures):
            for number, picture in enumerate(both):
                path = tmp_path / name / f"{name}-{person}" / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(picture).save(path)
    files = []
    for _ in range(20):
        content = BytesIO()
        Image.fromarray(random.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(content, "PNG")
        files.append(content.getvalue())
    (tmp_path / "pack.bin").write_bytes(pickle.dumps((files, [number % 2 == 0 for number in range(10)])))
    run("protect", "facemae", "train", tmp_path / "train", "--out", tmp_path / "model", *QUICK)
    options = ("--model", tmp_path / "model", "--out", tmp_path / "out", "--licence", "CC0", "--detector", "none")
    assert run("protect", "facemae", "deploy", tmp_path / "publish", *options).code == 0
    file = write_onnx(tmp_path / "tiny.onnx")
    run("models", "add", file, "--name", "toy", "--mean", 127.5, "--std", 128, "--licence", "of-my-own")
    return tmp_path


def audit_of(folder: Path) -> tuple[object, ...]:
    return (
        "protect", "facemae", "audit", folder / "out", "--originals", folder / "publish", "--mask-seed",
        folder / "out.mask-seed", "--model", folder / "model", "--encoder", "toy", "--detector", "none", "--out",
        folder / "audit",
    )  # fmt: skip


def test_a_release_is_audited_with_all_attackers_and_baselines(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (released / "policy.toml").write_text(
        "[[require]]\nutility_min = 0.99\n[[require]]\nrisk_max = 0.9\nk = 2\n", encoding="utf-8"
    )
    more = (
        "--pairs", released / "pack.bin", "--attacker-people", released / "own", "--plain", released / "model",
        "--nobody", released / "others", "--seeds", 1, "--tuning-steps", 2,
    )  # fmt: skip
    done = run(*audit_of(released), *more, "--policy", released / "policy.toml")
    assert (done.code, done.err) == (3, "")  # the gate's
    assert max(len(line) for line in done.out.splitlines() if str(released) not in line) <= 80
    found = json.loads((released / "audit" / "protection.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in found["methods"]] == [
        "plain MAE", "originals", "masks", "mean-colour masks", "low-pass", "plain MAE", "people who do not exist",
    ]  # fmt: skip
    kinds = [one["kind"] for one in found["methods"][0]["attackers"]]
    assert kinds == ["recogniser", "trained on the release", "imitation", "fine-tuned"]
    assert [one["kind"] for one in found["methods"][1]["attackers"]] == [kinds[0], kinds[1], kinds[3]]
    originals = found["methods"][1]["attackers"][0]
    assert originals["same"]["value"] == 1.0
    assert originals["other"]["value"] > 0.5
    assert found["methods"][0]["utility"][0]["pairs"] == 10
    assert found["second"]["same_seed_shown"] == 0.5
    assert found["second"]["other_seed_shown"] == pytest.approx(0.75, abs=0.03)
    assert (found["calibrate_people"], found["measured_people"], found["not_measured"]) == (32, 32, [])
    text = (released / "audit" / "protection.html").read_text(encoding="utf-8") + json.dumps(found)
    for hidden in ("publish-1", str(released), (released / "out.mask-seed").read_text().strip()):
        assert hidden not in text
    again = run("report", released / "audit", "--out", released / "page.html")
    assert (again.code, (released / "page.html").exists()) == (0, True)
    assert run("gate", released / "audit", "--policy", released / "policy.toml").code == 3
    assert run("diff", released / "audit", released / "audit").code == 0
    require_refusal(run(*audit_of(released)), "output", str(released / "audit" / "protection.json"), "--force")


def test_what_does_not_belong_to_the_release_is_refused(released: Path) -> None:
    (released / "other.seed").write_text("00" * 32 + "\n", encoding="ascii")
    more = ("--mask-ratio", 0.25, "--epochs", 1)
    run("protect", "facemae", "train", released / "train", "--out", released / "other", *QUICK, *more)
    for option, name, where in (
        ("--mask-seed", "other.seed", "out"),
        ("--mask-seed", "no.seed", "no.seed"),
        ("--originals", "own", "out"),
        ("--plain", "other", "--plain"),
        ("--model", "other", "out"),
        ("--pairs", "pack.txt", f"--pairs {released / 'pack.txt'}"),
    ):
        require_refusal(run(*audit_of(released), option, released / name), "protection", where)
        assert not (released / "audit").exists()


def test_unface_release_reads_a_facemae_release(released: Path) -> None:
    command = (
        "release", released / "out", "--training", released / "publish", "--holdout", released / "others",
        "--encoder", "toy", "--detector", "none", "--far", "1e-2", "--k", "1",
    )  # fmt: skip
    without = run(*command, "--out", released / "without")
    assert (without.code, without.err) == (0, "")
    found = json.loads((released / "without" / "release.json").read_text(encoding="utf-8"))
    assert found["retrieval"] == []
    assert "numbers of people hidden; --mask-seed tells who they are" in found["synthetic"]["notes"]
    known = run(*command, "--out", released / "known", "--mask-seed", released / "out.mask-seed")
    assert (known.code, known.err) == (0, "")
    found = json.loads((released / "known" / "release.json").read_text(encoding="utf-8"))
    assert {(one["pictures"], one["identities"]) for one in found["retrieval"]} >= {("same", 64), ("other", 64)}
    (released / "other.seed").write_text("00" * 32 + "\n", encoding="ascii")
    other = run(*command, "--out", released / "x", "--mask-seed", released / "other.seed")
    require_refusal(other, "settings", str(released / "out"))
