"""If this fails, the accuracy that LFW's pairs give is not the one that papers mean by the 10-fold rule."""

import numpy as np
import pytest
from studies.lfw_pairs import best_threshold, read_pairs, ten_fold

from unface.errors import UnfaceError

PAIRS = "2\t1\nAnn\t1\t4\nAnn\t2\tBo_Li\t13\nCy\t2\t3\nCy\t1\tAnn\t1\n"


def test_pairs_are_pictures_of_one_or_two_people_in_folds() -> None:
    pairs, mated, folds = read_pairs(PAIRS)
    assert pairs == [
        ("Ann_0001", "Ann_0004"),
        ("Ann_0002", "Bo_Li_0013"),
        ("Cy_0002", "Cy_0003"),
        ("Cy_0001", "Ann_0001"),
    ]
    assert mated.tolist() == [True, False, True, False]
    assert folds.tolist() == [0, 0, 1, 1]


def test_a_list_that_was_cut_off_is_refused() -> None:
    with pytest.raises(UnfaceError, match="3 pairs, its first line promises 4"):
        read_pairs("\n".join(PAIRS.splitlines()[:-1]))


def test_the_threshold_is_the_one_with_the_fewest_mistakes() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    assert best_threshold(scores, np.array([True, True, False, True, False])) == 0.8
    assert best_threshold(scores, np.array([True, True, False, True, True])) == 0.5


def test_a_fold_never_chooses_its_own_threshold() -> None:
    scores = np.array([0.9, 0.1, 0.9, 0.1, 0.4, 0.3])  # the last fold would be right at a threshold of its own
    mated = np.array([True, False, True, False, True, False])
    np.testing.assert_array_equal(ten_fold(scores, mated, np.array([0, 0, 1, 1, 2, 2])), [1, 1, 0.5])
