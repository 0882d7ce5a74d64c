"""If these fail, a receipt does not say how many vectors a face gate left as they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.scale.stored import DIM, PEOPLE, projection, table, vectors_in, written
from unface import Projection
from unface.erase.gate import Gate
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.scale import sanitise_directory, sanitise_file


def gated() -> Projection:
    """What lies on one side of a plane, which is about a half of the people, is taken for no face."""
    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    return replace(projection(), gate=Gate(np.eye(DIM)[0], 0.0, certificate))


SPARED = int((PEOPLE.vectors[:, 0] <= 0).sum())


def test_a_folder_s_receipt_counts_what_the_gate_left(tmp_path: Path) -> None:
    assert 20 < SPARED < len(PEOPLE.vectors) - 20
    (tmp_path / "raw").mkdir()
    for number in range(3):
        written(table(), tmp_path / "raw" / f"{number}.parquet")
    receipt = sanitise_directory(gated(), tmp_path / "raw", tmp_path / "out", verify=True)
    assert receipt.not_faces == 3 * SPARED
    unit = PEOPLE.unit().vectors
    kept = np.abs(np.asarray(vectors_in(tmp_path / "out" / "0.parquet"), np.float32) - unit).max(axis=1) < 1e-6
    assert kept.sum() == SPARED
    assert sanitise_directory(projection(), tmp_path / "raw", tmp_path / "all").not_faces is None


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_a_file_s_receipt_counts_what_the_gate_left(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"raw.{ending}"
    if ending == "npz":
        np.savez(source, vectors=PEOPLE.vectors, identities=PEOPLE.identities)
    else:
        written(table(), source)
    assert sanitise_file(gated(), source, tmp_path / f"out.{ending}").not_faces == SPARED
