"""The study of systems behind front ends: its unit is worked by hand, and accuracy comes before any attack."""

from pathlib import Path

import numpy as np
import pytest
from studies.ppfr import Score, append, best_split, made_tables, require_accuracy, summed

from unface.errors import UnfaceError


def test_the_threshold_of_psi_is_where_tar_less_far_is_largest() -> None:
    """Accepting 0.9, 0.8 and 0.6 keeps 3 of 4 mated pairs for 0 of 3 impostors; every other cut is worse."""
    mated, impostor = np.array([0.9, 0.8, 0.6, 0.1], np.float32), np.array([0.5, 0.2, 0.0], np.float32)
    threshold, rejected = best_split(mated, impostor)
    assert threshold == pytest.approx(0.6)
    assert rejected == 1.0
    threshold, rejected = best_split(np.array([0.9, 0.3], np.float32), np.array([0.5, 0.2, 0.1, 0.0], np.float32))
    assert threshold == pytest.approx(0.3)
    assert rejected == 0.75


def test_psi_is_half_accepted_and_half_rejected_and_never_falls_below_its_floor() -> None:
    nothing = Score(np.array([0]), np.array([0]), (10, 20), 0.98)
    assert summed([nothing]) == [[49.0, 49.0]], "an attack that never succeeds still scores a half"
    some = Score(np.array([5]), np.array([20]), (10, 20), 1.0)
    assert summed([some, some]) == [[75.0, 100.0]]


def test_a_system_is_attacked_only_after_it_was_shown_to_recognise_people(tmp_path: Path) -> None:
    system = "dctdp/as-attacked/sface"
    with pytest.raises(UnfaceError, match="its accuracy on LFW is not known"):
        require_accuracy(tmp_path, system)
    row = {"verb": "accuracy", "system": system, "folds": 10, "error": 0.001}
    append(tmp_path, {**row, "mean": 0.95})
    with pytest.raises(UnfaceError, match=r"95.0 % on LFW; a server below 97.0 %"):
        require_accuracy(tmp_path, system)
    append(tmp_path, {**row, "mean": 0.99})
    assert require_accuracy(tmp_path, system) == 0.99


def test_map2v_rows_become_one_line_for_each_number_of_questions() -> None:
    row = {"verb": "map2v", "system": "s", "attack": "published", "budget": 60, "queries": [50, 60]}
    judge = {"same": [0, 1], "other": [1, 3], "of": 4}
    rows = [{**row, "person": at, "score": [0.1, 0.3 + at], "judges": {"j": judge}} for at in (0, 1)]
    assert made_tables(rows)["map2v"].rows == [
        ["s", "published", 2, 50, 0.1, 25.0],
        ["s", "published", 2, 60, 0.8, 75.0],
    ]
