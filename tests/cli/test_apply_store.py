"""If these fail, the command that replaces a store's vectors does something else than it says."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit.command import Done, unface
from unface import ISP, make_identities
from unface.erase import fit_projection

PEOPLE = make_identities(30, 4, 16, rank=3, between=3.0, seed=3).unit()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fit_projection(ISP(5), PEOPLE).save("p.safetensors")
    np.save("faces.npy", PEOPLE.vectors)
    return tmp_path


def run(*arguments: str) -> Done:
    return unface("apply", "p.safetensors", *arguments)


def stored() -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.load("faces.npy")
    return found


def test_the_vectors_of_a_store_are_replaced_and_the_receipt_tells(folder: Path) -> None:
    done = run("--store", "npy:faces.npy", "--receipt", "receipt.json")
    assert (done.code, done.err) == (0, "")
    assert "120 vectors, 5 of 16 dimensions removed (isp); read back" in done.out
    assert "the same command with --purge removes those" in done.out
    assert np.allclose(stored(), fit_projection(ISP(5), PEOPLE).apply(PEOPLE.vectors), atol=1e-6)
    receipt = json.loads((folder / "receipt.json").read_text())
    assert (receipt["rows"], receipt["raw_purged"], receipt["verified"]["rows"]) == (120, False, 120)
    raw = PEOPLE.vectors[7].tobytes()
    assert [file.name for file in folder.iterdir() if raw in file.read_bytes()] == ["faces.npy.raw"]
    done = run("--store", "npy:faces.npy", "--purge")
    assert (done.code, done.err) == (0, "")
    assert "--purge" not in done.out
    assert not [file.name for file in folder.iterdir() if raw in file.read_bytes()]


def test_quiet_says_nothing() -> None:
    done = run("--store", "npy:faces.npy", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_force_writes_over_a_receipt_of_before() -> None:
    assert run("--store", "npy:faces.npy", "--receipt", "receipt.json").code == 0
    assert run("--store", "npy:faces.npy", "--receipt", "receipt.json", "--purge", "--force").code == 0
    assert json.loads(Path("receipt.json").read_text())["raw_purged"]
