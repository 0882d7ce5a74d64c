"""If these fail, ``unface attribute`` or ``audit --attribution`` leaves other files than it says, or half of them."""

import json
import stat
from pathlib import Path

import pytest

import unface.faces
from tests.attribute.pictured import Drawn, blank, write_encoder, write_scenes
from tests.attribute.scenes import people
from tests.data.pictures import write_zip
from tests.faces.tiny_inswapper import written as write_swapper
from tests.kit import documents
from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import require_refusal
from unface.data import read_images
from unface.result.attribution import AttributionResult

SCENES = people(4, 2)
MANY = people(26, 3)
QUICK = (
    "--far",
    "0.2",
    "--k",
    "1",
    "--probe",
    "cosine",
    "--seeds",
    "1",
    "--bootstraps",
    "100",
    "--no-sweep",
    "--no-maps",
)


@pytest.fixture
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Two encoders in a cache of its own, and a detector that finds drawn faces."""
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    detector = Drawn(MANY)
    monkeypatch.setattr(unface.faces, "load_detector", lambda name, accept_licence: detector)
    for name in ("cells", "other"):
        file = write_encoder(tmp_path / f"{name}.onnx")
        added = run("models", "add", file, "--name", name, "--mean", 127, "--std", 128, "--licence", "of-my-own")
        assert (added.code, added.err) == (0, "")
    return detector


@pytest.fixture
def faces(tmp_path: Path, looked: Drawn) -> Path:
    return write_scenes(tmp_path / "faces.zip", SCENES, {"=cmd/secret.png": blank()})


@pytest.fixture
def isp(tmp_path: Path, faces: Path) -> Path:
    """Fitted in the space of ``cells``."""
    vectors, out = tmp_path / "vectors.parquet", tmp_path / "isp.safetensors"
    assert run("encode", faces, "--encoder", "cells", "--detector", "none", "--out", vectors).code == 0
    assert run("fit", vectors, "--out", out, "--rank", 2, "--hold-out", 0, "--quiet").code == 0
    return out


def attribute(faces: Path, out: Path, *options: object) -> Done:
    return run("attribute", faces, "--out", out, *options)


def test_two_encoders_and_a_projection_leave_three_files(tmp_path: Path, faces: Path, isp: Path, looked: Drawn) -> None:
    out = tmp_path / "out"
    done = attribute(faces, out, "--encoder", "cells", "--encoder", "other", "--projection", isp)
    assert (done.code, done.err) == (0, "")
    assert sorted(file.name for file in out.iterdir()) == ["attribution.html", "attribution.json", "left-out.csv"]
    text = (out / "attribution.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert found["schema"] == "unface.attribution/1"
    assert [[space["name"] for space in one["spaces"]] for one in found["encoders"]] == [["raw", "isp"], ["raw"]]
    assert found["encoders"][0]["quality"]["left_out"] == [{"step": "picture", "reason": "no face", "count": 1}]
    assert found["encoders"][0]["licence"] == "of-my-own"
    assert not any(name in text for name in ("secret", "cmd", "person"))
    assert looked.looked == 9, "each picture is looked at once, for however many encoders"
    listed = out / "left-out.csv"
    assert listed.read_text(encoding="utf-8").splitlines() == [
        "encoder,id,step,reason",
        "cells,'=cmd/secret.png,picture,no face",
        "other,'=cmd/secret.png,picture,no face",
    ]
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    # The table
    fii = found["encoders"][0]["spaces"][0]["fii"]["index"]
    assert f"{fii['value']:+.3f}".replace("-", "−") in done.out
    said = " ".join(done.out.split())
    assert all(counted in said for counted in ("cells: 8 of 9 ", "4 people", "8 pairs", "1 (no face)")), said
    # The page is that of the file alone, without a picture
    page = (out / "attribution.html").read_text(encoding="utf-8")
    assert page == documents.page(AttributionResult.model_validate_json(text))
    assert "<img" not in page
    assert "secret" not in page


def test_json_is_the_file_and_quiet_says_nothing(tmp_path: Path, faces: Path) -> None:
    shown = attribute(faces, tmp_path / "a", "--encoder", "cells", "--json", "--threads", 1)
    assert shown.out == (tmp_path / "a" / "attribution.json").read_text(encoding="utf-8")
    silent = attribute(faces, tmp_path / "b", "--encoder", "cells", "--quiet", "--threads", 3)
    assert (silent.code, silent.out, silent.err) == (0, "", "")
    again = json.loads((tmp_path / "b" / "attribution.json").read_text(encoding="utf-8"))
    assert again["encoders"] == json.loads(shown.out)["encoders"], "threads show in the numbers"
    refused = attribute(faces, tmp_path / "b", "--encoder", "cells")
    require_refusal(refused, "output", str(tmp_path / "b" / "attribution.json"), "--force")
    assert attribute(faces, tmp_path / "b", "--encoder", "cells", "--quiet", "--force").code == 0


def test_faces_are_shown_when_asked_for_and_the_page_warns(tmp_path: Path, faces: Path) -> None:
    done = attribute(faces, tmp_path / "out", "--encoder", "cells", "--show-faces")
    page = (tmp_path / "out" / "attribution.html").read_text(encoding="utf-8")
    assert 3 <= page.count("data:image/jpeg;base64,") <= 18
    assert 'role="alert"' in page
    assert done.code == 0
    assert "base64" not in (tmp_path / "out" / "attribution.json").read_text(encoding="utf-8")


def test_what_cannot_be_measured_is_one_line_and_leaves_nothing(tmp_path: Path, faces: Path, isp: Path) -> None:
    nobody = write_scenes(tmp_path / "blank.zip", [], {f"p{n}/{n}.png": blank() for n in range(3)})
    singles = write_scenes(tmp_path / "singles.zip", SCENES[::2])
    raw = tmp_path / "raw.safetensors"
    raw.write_bytes(isp.read_bytes())
    for pictures, options, code, where, *names in (
        (nobody, "cells", "attribution", "attribute", "none of 3", "3 no face"),
        (singles, "cells", "attribution", "attribute", "4 the only"),
        (faces, "cells,absent", "weights", "absent"),
        (faces, f"other --projection {isp}", "audit", "isp", "'cells'", "'other'"),
        (faces, f"cells --projection {raw}", "settings", str(raw), "'raw'"),
        (faces, "cells --detector none", "settings", "--detector none", "yunet"),
        (faces, "cells --projection broken.safetensors", "file", "broken.safetensors"),
    ):
        done = attribute(pictures, tmp_path / "out", "--encoder", *options.split())
        require_refusal(done, code, where, *names)
        assert not (tmp_path / "out").exists()


def test_inswapper_needs_its_recogniser_and_its_licence(tmp_path: Path, faces: Path) -> None:
    out, file, recogniser = tmp_path / "out", tmp_path / "inswapper_128.onnx", tmp_path / "w600k_r50.onnx"
    options = ("--encoder", "cells", "--inswapper", file)
    accepted = (*options, "--accept-licence")
    require_refusal(attribute(faces, out, *options), "attribution", str(file), "w600k_r50.onnx")
    file.write_bytes(b"no model")
    require_refusal(attribute(faces, out, *options), "attribution", str(recogniser))
    write_encoder(recogniser)
    require_refusal(attribute(faces, out, *options), "attribution", file.name, "--accept-licence")
    require_refusal(attribute(faces, out, *accepted), "attribution", str(recogniser), "192", "512")
    write_encoder(recogniser, 7, 512)
    require_refusal(attribute(faces, out, *accepted), "faces", file.name)
    assert not out.exists()
    write_swapper(file)
    assert attribute(faces, out, *accepted, "--quiet").code == 0
    found = json.loads((out / "attribution.json").read_text(encoding="utf-8"))["encoders"][0]
    assert (found["swap"], found["quality"]["swaps"]) == ("inswapper", 8)


def test_an_audit_of_pictures_measures_it_beside_everything_else(tmp_path: Path, looked: Drawn) -> None:
    faces, out = write_scenes(tmp_path / "many.zip", MANY), tmp_path / "out"
    done = run("audit", faces, "--encoder", "cells", "--attribution", "--rank", 4, "--out", out, *QUICK)
    assert (done.code, done.err) == (0, "")
    found = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    part = found["parts"]["attribution"]
    assert [space["name"] for space in part["spaces"]] == ["raw", "isp"]
    assert part["quality"]["pictures"] == 3 * (26 - found["roles"]["fit"])
    assert f"Face-context attribution, {part['quality']['pairs']} pairs: raw: FII" in " ".join(done.out.split())
    assert 'id="attribution"' in (out / "report.html").read_text(encoding="utf-8")
    assert looked.looked == 26 * 3, "faces are found once for encoding and attribution"


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_networks")
def test_a_recogniser_follows_the_face_and_a_copy_detector_the_place(tmp_path: Path) -> None:
    for name in ("sface", "sscd-int8", "yunet"):
        weights_here(name)
    chosen = {ref.id: ref.read() for number, ref in enumerate(read_images(nobody_pictures())) if number % 12 < 2}
    faces = write_zip(tmp_path / "faces.zip", chosen)
    done = attribute(faces, tmp_path / "out", "--encoder", "sface,sscd-int8", "--json")
    assert (done.code, done.err) == (0, "")
    recogniser, general = AttributionResult.model_validate_json(done.out).encoders
    for one in (recogniser, general):
        assert (one.quality.pictures, one.quality.usable) == (48, 42), "six faces are too large for the canvas"
    person, place = recogniser.spaces[0].cpi, general.spaces[0].cpi
    assert person
    assert place
    assert person.at[0].preferred.high < 0.5 < place.at[0].preferred.low
    assert place.donor_nearer.high < 0.5 < person.donor_nearer.low
