"""If this fails, a run that is gone on with looks at every candidate again, or judges them by other vectors."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from unface.scale import place_at
from unface.synth.folder import Folder, Record
from unface.synth.people import Candidates


def test_candidates_are_read_as_they_were_kept_with_the_vectors_of_each_judge(tmp_path: Path) -> None:
    folder = Folder(tmp_path, place_at(tmp_path))
    vectors = (np.eye(2, 3, dtype=np.float32), np.full((2, 5), 0.5, np.float32))
    folder.keep_candidates(7, Candidates(np.array([True, False, True]), vectors))
    again = folder.candidates(7)
    assert again is not None
    assert again.found.tolist() == [True, False, True]
    assert [rows.tolist() for rows in again.vectors] == [rows.tolist() for rows in vectors]
    assert folder.candidates(8) is None


@pytest.mark.parametrize("name", ["_unface", "_unface/unfinished", "_unface/unfinished/p000", "p000"])
def test_a_link_in_the_folder_is_refused_and_nothing_behind_it_changes(name: str, tmp_path: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    for precious in ("p000", "unfinished/p000"):
        (elsewhere / precious).mkdir(parents=True)
        (elsewhere / precious / "00.jpg").write_bytes(b"precious")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(elsewhere)
    before = sorted((path, path.read_bytes()) for path in elsewhere.rglob("*.jpg"))
    with refused("output", ...):
        Folder(out, place_at(out)).keep_person("p000", [b"1", b"2"], Record(1, Counter()))
    assert sorted((path, path.read_bytes()) for path in elsewhere.rglob("*") if path.is_file()) == before
