"""If these fail, ``unface validate`` asks before anybody is enrolled, or does not end in one line when it should."""

import json
import socket
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.data.pictures import people, write_folder
from tests.encode.encoded import Found
from tests.encode.tiny import write_onnx
from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import require_refusal
from tests.validate.live import Face, served
from unface.encode.onnx import OnnxEncoder
from unface.result.validation import ValidationResult

ENROLLED, ASKED = 3, 21


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Three people to enrol, two pictures each; 21 others, four pictures of each."""
    weights_here("sface")
    weights_here("yunet")
    root = tmp_path_factory.mktemp("people")
    with ZipFile(nobody_pictures()) as pack:
        names = sorted(name for name in pack.namelist() if name.endswith(".jpg"))
        people = sorted({name.split("/")[-2] for name in names})
        for at, person in enumerate(people[: ENROLLED + ASKED]):
            kind, most = ("enrol", 2) if at < ENROLLED else ("ask", 4)
            for name in [name for name in names if name.split("/")[-2] == person][:most]:
                path = root / kind / person / name.split("/")[-1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(pack.read(name))
    return root / "enrol", root / "ask"


def validate(folders: tuple[Path, Path], out: Path, target: str, *more: object) -> Done:
    enrol, ask = folders
    budget = 2 * ASKED // 3
    return run(
        "validate", "--target", target, "--enrol", enrol, "--queries", ask, "--budget", budget, "--out", out, *more
    )


@pytest.mark.usefixtures("remembered_networks")
def test_the_operator_is_told_whom_to_enrol_and_only_then_is_anything_asked(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    face = Face()
    people = sorted(path.name for path in folders[0].iterdir())
    face.service.people = set(people)
    with served(face) as url:
        told = validate(folders, tmp_path, url)
        assert (told.code, face.seen) == (0, [])
        assert "Nothing was sent yet. Enrol 3 people" in told.out
        listed = (tmp_path / "enrol.csv").read_text().splitlines()
        assert [line.split(",")[0] for line in listed] == ["person", *people]
        assert all(Path(line.split(",")[1]).is_file() for line in listed[1:])
        done = validate(folders, tmp_path, url, "--continue")
    assert (done.code, done.err) == (0, "")
    result = ValidationResult.load(tmp_path / "validation.json")
    asked = 2 * ASKED // 3
    assert result.asked.counted == len(face.seen) == len(set(face.seen)) == ENROLLED * (2 + asked)
    assert {path.name for path in tmp_path.iterdir()} == {
        "enrol.csv",
        "ledger.jsonl",
        "validation.json",
        "validation.html",
    }, "and no template"
    assert not any(person in (tmp_path / "validation.json").read_text() for person in people)
    again = validate(folders, tmp_path, url)
    require_refusal(again, "output", ..., "--force")


@pytest.mark.usefixtures("remembered_networks")
def test_a_built_in_target_needs_no_enrolment_and_templates_are_kept_on_request(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    done = validate(folders, tmp_path, "encoder:sface", "--save-templates", "--json", "--policy", policy(tmp_path))
    assert (done.code, done.err) == (3, ""), "the policy's verdict: coarse, and wholly beyond the limit"
    assert "Failed" in (tmp_path / "validation.html").read_text(encoding="utf-8")
    found = json.loads(done.out)
    assert found["target"] == {
        "name": "encoder:sface",
        "kind": "built-in",
        "decisions_only": False,
        "local": True,
        "authorised_by": None,
    }
    assert (tmp_path / "templates.parquet").is_file()
    assert run("gate", tmp_path, "--policy", policy(tmp_path)).code == 3


def policy(folder: Path, rule: str = 'attack = "worst"\nfar = 1e-2\nqueries = 14\nsuccess_max = 0.05') -> Path:
    path = folder / "policy.toml"
    path.write_text(f"[[require]]\n{rule}\n")
    return path


@pytest.mark.usefixtures("remembered_networks")
def test_enrolled_pictures_without_a_face_are_named_before_anything_is_sent(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    grey = BytesIO()
    Image.new("RGB", (64, 64), "grey").save(grey, "PNG")
    for person in ("a", "b"):
        path = tmp_path / "people" / person / "0.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(grey.getvalue())
    face = Face()
    with served(face) as url:
        done = validate((tmp_path / "people", folders[1]), tmp_path / "out", url, "--continue")
    assert (done.code, face.seen) == (1, [])
    assert done.err.startswith(f"unface: {tmp_path / 'people'}: no face was found in 'a/0.png' and 1 more; replace")


def test_a_target_that_cannot_be_reached_is_one_line_before_any_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "empty"))
    told = "; nothing was asked, so put that right and give the same command again\n"
    with socket.socket() as closed:  # held, so that nobody else listens at its port
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/score/{{person}}"
        for target, why in ((url, "no connection (Connection refused)"), ("command:no-such-program", "no such")):
            done = run("validate", "--target", target, "--enrol", "x", "--continue", "--out", tmp_path / "out")
            assert (done.code, done.err.count("\n"), done.err.endswith(told), why in done.err) == (1, 1, True, True)
            assert not (tmp_path / "out").exists()


def test_a_target_that_refuses_is_told_after_one_question_and_before_anything_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    for name in ("tiny", "other"):
        file = write_onnx(tmp_path / f"{name}.onnx")
        run("models", "add", file, "--name", name, "--mean", 127.5, "--std", 128, "--licence", "of-my-own")
    monkeypatch.setattr("unface.faces.load_detector", lambda *_, **__: Found())
    everyone = people(ENROLLED + ASKED, 4)
    names = sorted({path.split("/")[0] for path in everyone})
    for kind, chosen in (("enrol", names[:ENROLLED]), ("ask", names[ENROLLED:])):
        write_folder(tmp_path / kind, {path: data for path, data in everyone.items() if path.split("/")[0] in chosen})
    encoded: list[int] = []

    def watched(self: OnnxEncoder, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        encoded.append(len(images))
        return encode(self, images)

    encode = OnnxEncoder.encode
    monkeypatch.setattr(OnnxEncoder, "encode", watched)
    face, out, more = Face(), tmp_path / "out", ("--encoder", "tiny", "--judge", "other", "--continue")
    with served(face) as url:
        refused = validate((tmp_path / "enrol", tmp_path / "ask"), out, url, *more)
        assert (refused.code, refused.err.count("\n"), encoded, face.seen) == (1, 1, [], [])
        assert "404 Not Found" in refused.err
        assert "nothing else was asked" in refused.err
        questions = [line for line in (out / "ledger.jsonl").read_text().splitlines() if '"picture"' in line]
        assert len(questions) == 1, "and it is counted"
        face.service.people = set(names[:ENROLLED])
        done = validate((tmp_path / "enrol", tmp_path / "ask"), out, url, *more)
    assert (done.code, done.err) == (0, "")
    asked = json.loads((out / "validation.json").read_text(encoding="utf-8"))["asked"]
    seen = ENROLLED * (2 + 2 * ASKED // 3) - 1
    assert (asked["counted"], asked["answered"], len(face.seen), len(set(face.seen))) == (
        seen + 1,
        seen,
        *2 * (seen,),
    )


@pytest.mark.usefixtures("remembered_networks")
def test_a_banned_run_says_so_in_one_line_and_keeps_its_ledger(folders: tuple[Path, Path], tmp_path: Path) -> None:
    limit = 2 * ENROLLED + 5  # each person's enrolled and second picture come first
    face = Face(limit=limit)
    face.service.people = {path.name for path in folders[0].iterdir()}
    with served(face) as url:
        done = validate(folders, tmp_path, url, "--continue")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert f"nothing can be measured after {limit + 1} questions" in done.err
    assert "403 Forbidden" in done.err
    assert (tmp_path / "ledger.jsonl").is_file()
    assert not (tmp_path / "validation.json").exists()
