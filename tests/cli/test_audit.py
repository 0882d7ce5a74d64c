"""If these fail, ``unface audit`` prints, writes or returns something else than scripts and people rely on."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import Done, unface
from unface import __version__, audit, make_identities, write_embeddings
from unface.auditing import AuditResult, load_audit
from unface.data import EmbeddingSet

QUICK = ["--eraser", "none", "--far", "0.05", "--probe", "cosine,lda", "--seeds", "1", "--bootstraps", "100"]
QUICK += ["--threads", "1"]
PEOPLE = make_identities(40, 6, 8, between=1.5, seed=2)


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("given") / "faces.parquet"
    write_embeddings(PEOPLE, path)
    return path


@pytest.fixture(scope="module")
def shown(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    out = tmp_path_factory.mktemp("table") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "140")
        return unface("audit", faces, "--out", out, *QUICK), out


def without_run(text: str) -> dict[str, object]:
    content: dict[str, object] = json.loads(text)
    content.pop("run")
    return content


def test_the_table_shows_the_verdict_the_worst_case_and_where_the_file_is(shown: tuple[Done, Path]) -> None:
    done, out = shown
    assert (done.code, done.err) == (0, "")
    result = load_audit(out / "audit.json")
    page = " ".join(done.out.replace("│", " ").split())
    assert result.verdict in page
    assert done.out.count("◂") == len(result.worst) + 1  # and once where the mark is explained
    assert "TAR % at FAR 0.05" in done.out
    assert done.out.rstrip().splitlines()[-2:] == [str(out / "audit.json"), f"{out / 'report.html'}: the report"]


def test_the_file_is_what_the_library_gives(shown: tuple[Done, Path], faces: Path) -> None:
    expected = audit(faces, erasers=(), fars=(0.05,), probes=["cosine", "lda"], seeds=1, bootstraps=100)
    found = load_audit(shown[1] / "audit.json")
    assert found.model_dump(exclude={"run"}) == expected.model_dump(exclude={"run"})


def test_json_prints_the_file_and_nothing_else(faces: Path, tmp_path: Path) -> None:
    done = unface("audit", faces, "--out", tmp_path / "out", "--json", *QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out == (tmp_path / "out" / "audit.json").read_text(encoding="utf-8")
    AuditResult.model_validate_json(done.out)


def test_quiet_prints_nothing_at_all(faces: Path, tmp_path: Path, shown: tuple[Done, Path]) -> None:
    done = unface("audit", faces, "--out", tmp_path / "out", "--quiet", *QUICK)
    assert (done.code, done.out, done.err) == (0, "", "")
    quiet, plain = (folder / "audit.json" for folder in (tmp_path / "out", shown[1]))
    assert without_run(quiet.read_text()) == without_run(plain.read_text())


def test_rates_and_ks_may_be_repeated_or_listed_with_commas(faces: Path, tmp_path: Path) -> None:
    options = ["--eraser", "none", "--probe", "cosine", "--seeds", "1", "--bootstraps", "100", "--json"]
    listed = unface("audit", faces, "--out", tmp_path / "a", "--far", "0.1,5e-2", "--k", "1,2", *options)
    one_by_one = ["--far", "0.1", "--far", "0.05", "--k", "1", "--k", "2"]
    repeated = unface("audit", faces, "--out", tmp_path / "b", *one_by_one, *options)
    assert without_run(listed.out) == without_run(repeated.out)
    protocol = json.loads(listed.out)["protocol"]
    assert (protocol["fars"], protocol["ks"], protocol["probes"]) == ([0.1, 0.05], [1, 2], ["cosine"])


def test_every_option_reaches_the_audit(tmp_path: Path) -> None:
    shoots = np.arange(len(PEOPLE)) // 2
    roles = np.array(["fit", "train", "calibrate", "test"])[PEOPLE.identities % 4]
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    labels = {"shoot": shoots, "role": roles}
    write_embeddings(EmbeddingSet.from_arrays(PEOPLE.vectors, names, labels=labels), tmp_path / "faces.parquet")
    done = unface(
        *["audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", "--json"],
        *["--far", "0.1", "--k", "2", "--seeds", "2", "--probe", "ridge", "--probe", "cosine", "--images", "5"],
        *[
            "--variant",
            "paper",
            "--impostor-quota",
            "3",
            "--split-column",
            "role",
            "--group",
            "shoot",
            "--eraser",
            "none",
        ],
        *["--bootstraps", "120", "--bootstrap", "multinomial", "--seed", "7", "--device", "cpu"],
    )
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["protocol"] | {"score": None} == {
        "variant": "paper",
        "fars": [0.1],
        "ks": [2],
        "seeds": 2,
        "seed": 7,
        "probes": ["ridge", "cosine"],
        "score": None,
        "bootstrap": "multinomial",
        "bootstraps": 120,
        "level": 0.95,
        "impostor_quota": 3,
    }
    assert found["curated"]["images"] == 5
    assert found["roles"]["seed"] is None
    assert {point["context_adjusted"]["context"] for point in found["spaces"][0]["points"] if point["worst"]} == {
        "shoot"
    }


def test_columns_may_have_other_names_and_bad_rows_may_be_skipped(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = PEOPLE.vectors.tolist()
    vectors[3] = [float("nan")] * 8
    context = make_identities(40, 6, 3, seed=9).vectors.tolist()
    table = pa.table(
        {"who": np.array(PEOPLE.names)[PEOPLE.identities], "emb": vectors, "key": PEOPLE.ids, "backdrop": context}
    )
    pq.write_table(table, tmp_path / "faces.parquet")
    columns = ["--identity-column", "who", "--vector-column", "emb", "--id-column", "key", "--context", "backdrop"]
    done = unface(
        *["audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", "--json", "--skip-bad-rows"], *columns, *QUICK
    )
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["source"]["rows"] == 239
    assert "skipped 1 of 240 rows: 1 with NaN in 'emb'" in found["source"]["notes"]
    assert found["spaces"][0]["points"][0]["probe"] == "cosine"


def test_suspects_are_pointed_to_but_not_printed(tmp_path: Path) -> None:
    vectors = PEOPLE.vectors.copy()
    vectors[0] = vectors[100]
    doubled = EmbeddingSet.from_arrays(vectors, np.array(PEOPLE.names)[PEOPLE.identities], ids=PEOPLE.ids)
    write_embeddings(doubled, tmp_path / "faces.parquet")
    done = unface("audit", tmp_path / "faces.parquet", "--out", tmp_path / "out", *QUICK)
    assert f"{tmp_path / 'out' / 'suspects.csv'}: the rows and identities meant" in done.out.splitlines()
    assert "p0001" not in done.out
    with (tmp_path / "out" / "suspects.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == ["near-duplicate", "p0001-0", "p0001", "p0017-4", "p0017"]


def test_brackets_in_a_path_are_printed_as_they_are(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out [bold] [/x] :smile:"
    done = unface("audit", faces, "--out", out, *QUICK)
    assert str(out / "audit.json") in done.out.splitlines()


def test_force_overwrites(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert unface("audit", faces, "--out", out, "--quiet", *QUICK).code == 0
    again = unface("audit", faces, "--out", out, "--quiet", "--force", "--seed", "1", *QUICK)
    assert (again.code, again.err) == (0, "")
    assert load_audit(out / "audit.json").protocol.seed == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit"],
        ["audit", "faces.parquet"],
        ["audit", "faces.parquet", "--out", "x", "--unknown"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "0"],
        ["audit", "faces.parquet", "--out", "x", "--seeds", "many"],
        ["audit", "faces.parquet", "--out", "x", "--images", "2"],
        ["audit", "faces.parquet", "--out", "x", "--bootstraps", "99"],
        ["audit", "faces.parquet", "--out", "x", "--seed", "-1"],
        ["audit", "faces.parquet", "--out", "x", "--threads", "0"],
        ["audit", "a.parquet", "b.parquet", "--out", "x"],
        ["measure"],
        ["--unknown"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_two_says_why_and_makes_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = unface(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Usage: ")
    assert "\nError: " in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_printed() -> None:
    done = unface("--version")
    assert (done.code, done.out, done.err) == (0, f"unface {__version__}\n", "")


def test_help_names_every_verb() -> None:
    done = unface("--help")
    assert done.code == 0
    assert all(verb in done.out for verb in ("audit", "demo", "schema"))


def test_the_schema_is_json_of_an_audit_result() -> None:
    done = unface("schema")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["title"] == "AuditResult"
    assert found["additionalProperties"] is False
    assert "suspects" not in found["properties"]
    assert found["properties"]["schema"]["const"] == "unface.audit/1"


def test_the_installed_program_ends_with_the_same_codes(faces: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "unface", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    missing = run("audit", tmp_path / "none.parquet", "--out", tmp_path / "out")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "unface: none.parquet: no such file or directory\n"
    assert run("audit").returncode == 2
    done = run("audit", faces, "--out", tmp_path / "out", "--json", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (tmp_path / "out" / "audit.json").read_text(encoding="utf-8")


def test_no_eraser_and_one_cannot_both_be_asked_for(faces: Path, tmp_path: Path) -> None:
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK, "--eraser", "isp")
    assert (done.code, done.out) == (1, "")
    assert done.err == "unface: --eraser none: measures the raw space alone; leave it out, or the others\n"


def test_running_out_of_memory_is_one_line(faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("unface.auditing.attack.run_panel", too_much)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (1, "")
    assert done.err == "unface: out of memory; use fewer images (--images) or a machine with more\n"
    assert not (tmp_path / "out").exists()


def test_an_interrupt_exits_130_and_writes_nothing(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("unface.auditing.attack.run_panel", interrupted)
    before = signal.getsignal(signal.SIGINT)
    done = unface("audit", faces, "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (130, "")
    assert done.err == "unface: interrupted; no file was left half-written\n"
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "out").exists()


def test_a_terminal_without_our_signs_is_no_reason_to_fail(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert done.returncode == 0
    assert b"? worst case" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_output_that_cannot_be_written_is_one_line(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unface", "audit", str(faces), "--out", str(tmp_path / "out"), *QUICK]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert (
        done.stderr
        == b"unface: cannot write the output (No space left on device); see to that and give the same command again\n"
    )
