"""If this fails, a damaged file ends in a traceback, a dead process or a full memory instead of one line.

``make fuzz`` reads many more. A child reads the files: a crash in native code must be one failed test.
"""

from pathlib import Path

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.checkpoints import CHECKPOINT_READERS
from tests.fuzz.readers import READERS
from tests.fuzz.results import RESULT_READERS


def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    slow = ["faiss", *RESULT_READERS, *CHECKPOINT_READERS]
    others = [name for name in READERS if name not in slow]
    # Parquet and .npz come from strangers most often; pages and networks take long to make.
    turns = [*others * 8, *("npz", "parquet") * 250, *slow]
    count = 4 * len(turns)
    tally = fuzz(turns, count, 2026, tmp_path)
    assert tally.findings == []
    for name in READERS:
        assert sum(tally.outcomes[name, way] for way in ("read", "changed", "refused")) == 4 * turns.count(name)
    for name in ("npz", "parquet"):  # both ends are reached
        assert tally.outcomes[name, "changed"] > 10
        assert tally.outcomes[name, "refused"] > 500
    for name in others:
        assert tally.outcomes[name, "refused"] >= 3, "the mutants are too mild to show anything"
    assert tally.peak_mib < 1024
