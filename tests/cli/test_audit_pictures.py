"""If these fail, ``unface audit`` on pictures leaves another thing than encoding them and auditing that would."""

import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import people, write_zip
from tests.encode.tiny import write_onnx
from tests.kit.command import Done
from tests.kit.command import unface as run
from tests.kit.page import Page
from tests.real import nobody_pictures, weights_here
from tests.refusals.table import require_refusal
from unface import AuditResult
from unface.auditing import Translate

QUICK = ("--detector", "none", "--eraser", "none", "--far", "0.2", "--k", "1", "--probe", "cosine")
FEW = ("--seeds", "1", "--bootstraps", "100")


@pytest.fixture
def faces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip of 30 people, and two encoders in a cache of its own."""
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "cache"))
    for name in ("tiny", "other"):
        file = write_onnx(tmp_path / f"{name}.onnx")
        added = run("models", "add", file, "--name", name, "--mean", 127.5, "--std", 128, "--licence", "of-my-own")
        assert (added.code, added.err) == (0, "")
    return write_zip(tmp_path / "faces.zip", people(30, 4))


def audit(faces: Path, out: Path, *options: str) -> Done:
    return run("audit", faces, "--out", out, *QUICK, *FEW, *options)


def test_one_encoder_leaves_one_audit_equal_to_that_of_its_embeddings(tmp_path: Path, faces: Path) -> None:
    done = audit(faces, tmp_path / "out", "--encoder", "tiny", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["source"]["encoder"] == "tiny"
    embeddings = tmp_path / "out" / "embeddings" / "tiny.parquet"
    again = json.loads(run("audit", embeddings, "--out", tmp_path / "again", *QUICK[2:], *FEW, "--json").out)
    assert found["spaces"] == again["spaces"]
    assert (tmp_path / "out" / "report.html").exists()
    assert [path.stat().st_mode & 0o777 for path in (embeddings.parent, embeddings)] == [0o700, 0o600]


def test_several_encoders_have_a_folder_each_and_one_page_between_them(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "out"
    done = audit(faces, out, "--encoder", "tiny", "--encoder", "other")
    assert (done.code, done.err) == (0, "")
    page = (out / "report.html").read_text(encoding="utf-8")
    for name in ("tiny", "other"):
        audited = json.loads((out / name / "audit.json").read_text(encoding="utf-8"))
        assert audited["verdict"] in Page(page).words
        assert f'href="{name}/report.html"' in page
        assert (out / name / "report.html").exists()
    assert not (out / "audit.json").exists()


def test_a_second_encoder_is_translated_into_and_is_not_audited_itself(tmp_path: Path, faces: Path) -> None:
    faces, out = write_zip(tmp_path / "many.zip", people(90, 4)), tmp_path / "out"
    done = audit(faces, out, "--encoder", "tiny", "--translate", "other")
    assert (done.code, done.err) == (0, "")
    section = Translate.of(AuditResult.load(out))
    assert section is not None
    assert section.recogniser.encoder == "other"
    assert {path.name for path in (out / "embeddings").iterdir()} == {"tiny.parquet", "other.parquet"}
    # The same, from the two files of vectors.
    embeddings = (out / "embeddings" / "tiny.parquet", "--translate", out / "embeddings" / "other.parquet")
    again = run("audit", *embeddings, "--out", tmp_path / "again", *QUICK[2:], *FEW)
    assert (again.code, again.err) == (0, "")
    from_files = Translate.of(AuditResult.load(tmp_path / "again"))
    assert from_files is not None
    assert from_files.spaces == section.spaces


def test_json_of_several_encoders_is_a_list_of_their_audits(tmp_path: Path, faces: Path) -> None:
    found = json.loads(audit(faces, tmp_path / "out", "--encoder", "tiny,other", "--json").out)
    assert [one["source"]["encoder"] for one in found] == ["tiny", "other"]


def cleared(out: Path) -> Path:
    """As a run leaves it that was cut off after encoding."""
    for name in ("audit.json", "report.html", "exposed.csv"):  # written together, when all is measured
        (out / name).unlink()
    return out / "embeddings" / "tiny.parquet"


def test_embeddings_of_other_pictures_are_not_taken_for_these(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "out"
    audit(faces, out, "--encoder", "tiny")
    made = cleared(out)
    others = write_zip(tmp_path / "others.zip", people(31, 4))
    done = audit(others, out, "--encoder", "tiny")
    require_refusal(done, "encoder", str(made), "--force")


def test_an_audit_cut_off_after_encoding_goes_on_with_what_was_encoded(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "out"
    first = json.loads(audit(faces, out, "--encoder", "tiny", "--json").out)
    before = cleared(out).stat().st_mtime_ns
    assert json.loads(audit(faces, out, "--encoder", "tiny", "--json").out)["spaces"] == first["spaces"]
    assert (out / "embeddings" / "tiny.parquet").stat().st_mtime_ns == before


KILLED = """
import os, runpy, signal
from pathlib import Path
replace = Path.replace

def dying(path, target):
    if Path(target).name == "audit.json":
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(path, target)

Path.replace = dying
runpy.run_module("unface", run_name="__main__")
"""


def test_an_audit_killed_between_its_files_goes_on_and_a_finished_one_is_refused(tmp_path: Path, faces: Path) -> None:
    out, alone = tmp_path / "out", tmp_path / "alone"
    given = ["audit", str(faces), "--out", str(out), *QUICK, *FEW, "--encoder", "tiny"]
    died = subprocess.run([sys.executable, "-c", KILLED, *given], check=False)
    assert died.returncode == -signal.SIGKILL
    assert (out / "exposed.csv").exists()
    assert not (out / "audit.json").exists()
    before = (out / "embeddings" / "tiny.parquet").stat().st_mtime_ns
    done = audit(faces, out, "--encoder", "tiny")
    assert (done.code, done.err) == (0, "")
    assert (out / "embeddings" / "tiny.parquet").stat().st_mtime_ns == before
    audit(faces, alone, "--encoder", "tiny")
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in alone.iterdir())
    assert (out / "exposed.csv").read_bytes() == (alone / "exposed.csv").read_bytes()
    assert (out / "exposed.csv").stat().st_mode & 0o777 == 0o600
    again = audit(faces, out, "--encoder", "tiny")
    require_refusal(again, "output", str(out / "audit.json"), "--force")


def test_damaged_embeddings_are_told_in_one_line(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "out"
    audit(faces, out, "--encoder", "tiny")
    made = cleared(out)
    made.write_bytes(made.read_bytes()[:1000])
    done = audit(faces, out, "--encoder", "tiny")
    require_refusal(done, "encoder", str(made))


def test_a_finished_audit_of_any_encoder_is_refused_before_anything_is_encoded(tmp_path: Path, faces: Path) -> None:
    out = tmp_path / "out"
    (out / "other").mkdir(parents=True)
    (out / "other" / "audit.json").write_text("{}")
    done = audit(faces, out, "--encoder", "tiny,other")
    require_refusal(done, "output", str(out / "other" / "audit.json"))
    assert not (out / "embeddings").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_networks")
def test_a_recogniser_links_people_who_do_not_exist_and_a_general_encoder_less(tmp_path: Path) -> None:
    for name in ("sface", "mobilenet-v2", "yunet"):
        weights_here(name)
    few = (
        "--far",
        0.02,
        "--k",
        1,
        "--probe",
        "cosine,lda",
        "--rank",
        4,
        "--bootstraps",
        200,
        "--no-sweep",
        "--no-maps",
    )
    encoders = ("--encoder", "sface", "--encoder", "mobilenet-v2")
    done = run("audit", nobody_pictures(), *encoders, *few, "--out", tmp_path / "out", "--json")
    assert (done.code, done.err) == (0, "")
    recogniser, general = (AuditResult.model_validate(one) for one in json.loads(done.out))
    for one in (recogniser, general):
        assert one.valid
        assert (one.source.rows, one.curated.identities) == (24 * 12, 24)
        assert [space.name for space in one.spaces] == ["raw", "isp", "random", "pca"]
        assert one.worst[0].context_adjusted is not None, "what surrounds the face was not used"
    (first,), (second,) = recogniser.worst, general.worst
    assert first.tar
    assert second.tar
    assert first.tar.low > 0.8
    assert second.tar.high < first.tar.low


def test_columns_of_a_table_of_pictures_may_have_other_names(tmp_path: Path, faces: Path) -> None:
    with zipfile.ZipFile(faces) as archive:
        named = {name: archive.read(name) for name in archive.namelist()}
    table = {"image": list(named.values()), "who": [name.split("/")[0] for name in named], "key": list(named)}
    pq.write_table(pa.table(table), tmp_path / "faces.parquet")
    columns = ("--identity-column", "who", "--id-column", "key")
    done = audit(tmp_path / "faces.parquet", tmp_path / "out", "--encoder", "tiny", "--json", *columns)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["curated"]["identities"] == 30
