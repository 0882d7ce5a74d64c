"""If this fails, a run that is gone on with looks at every candidate again, or judges them by other vectors."""

from pathlib import Path

import numpy as np

from unface.scale import place_at
from unface.synth.folder import Folder
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
