"""If this fails, reading a stranger's file runs what is hidden in it."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.cli.quick import PEOPLE, QUICK
from tests.kit.command import unface


def test_an_npz_that_would_have_to_be_unpickled_is_not_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    np.savez(tmp_path / "bomb.npz", vectors=PEOPLE.vectors, identities=np.array([Bomb()] * len(PEOPLE), dtype=object))
    done = unface("audit", tmp_path / "bomb.npz", "--out", tmp_path / "out", *QUICK)
    assert (done.code, done.out) == (1, "")
    assert done.refusal is not None
    assert (done.refusal.code, done.refusal.where) == ("vectors", "bomb.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.npz"]
