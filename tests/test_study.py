"""If this fails, the study erases more directions than an encoder has, and measures what rounding leaves."""

import numpy as np
import pytest
from studies.erasure import Study, rank, spanned

from unface import EmbeddingSet, make_identities

PEOPLE = make_identities(200, 8, 64, seed=3)
STUDY = Study("any", "celeba20", "apart")


def thin(directions: int) -> EmbeddingSet:
    """Sixty-four numbers that vary in so many directions, and hardly in the others."""
    vectors = PEOPLE.vectors * np.where(np.arange(64) < directions, 1.0, 1e-5).astype(np.float32)
    return EmbeddingSet.from_arrays(vectors, np.array(PEOPLE.names)[PEOPLE.identities])


@pytest.mark.parametrize(("directions", "removed"), [(64, 24), (25, 24), (24, 9), (16, 6)])
def test_three_eighths_go_of_the_dimensions_or_if_those_are_all_of_what_vectors_vary_in(
    directions: int, removed: int
) -> None:
    assert spanned(thin(directions)) == directions
    assert rank(thin(directions), None, STUDY) == removed


def test_the_usual_rank_is_asked_for_where_the_remainder_itself_is_measured() -> None:
    assert rank(thin(16), None, Study("any", "celeba20", "beyond")) == 24
