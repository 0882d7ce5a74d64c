"""If these fail, another number of directions is removed than was asked for."""

import numpy as np
import pytest

from unface.erase import ISP
from unface.erase.eraser import chosen_rank

# Squares 9, 4 and 1 of 14.
SPECTRUM = np.array([3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("energy", "rank"), [(1e-9, 1), (9 / 14, 1), (9.01 / 14, 2), (13 / 14, 2), (13.01 / 14, 3), (1.0, 3)]
)
def test_energy_is_a_share_of_the_squares_and_decides_over_the_rank(energy: float, rank: int) -> None:
    assert chosen_rank("isp", SPECTRUM, 5, 4, 2, energy) == rank


def test_a_rank_is_taken_as_given_and_neither_is_all_there_is() -> None:
    assert chosen_rank("isp", SPECTRUM, 5, 4, 2, None) == 2
    assert chosen_rank("isp", SPECTRUM, 5, 4, 3, None) == 3
    # NumPy integers come from users.
    assert chosen_rank("isp", SPECTRUM, 5, 4, np.int64(1), None) == 1  # type: ignore[arg-type]  # NumPy's integers are none to mypy
    assert chosen_rank("isp", SPECTRUM, 5, 4, None, None) == 3


def test_where_class_means_do_not_differ_every_direction_is_none() -> None:
    assert chosen_rank("isp", np.zeros(0), 5, 4, None, 0.9) == 0
    assert ISP(None).fit(np.ones((4, 3)), [0, 0, 1, 1]).projection_.rank == 0
