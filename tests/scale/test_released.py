"""If these fail, vectors that cannot be erased are released, or erased ones pass for raw ones."""

import numpy as np
import pytest

from tests.scale.stored import ARCFACE, DIM, PEOPLE, UNNAMED, projection
from unface import UnfaceError
from unface.data import Space
from unface.scale import released_space, released_vectors
from unface.scale.released import is_named


def test_another_number_of_dimensions_is_refused_with_both() -> None:
    with pytest.raises(UnfaceError, match=r"^faces: vectors of 8 dimensions; this projection is for 16"):
        released_vectors(projection(), PEOPLE.vectors[:, :8], "faces")


def test_rows_that_are_no_numbers_are_refused_with_the_first_and_their_count() -> None:
    vectors = PEOPLE.vectors.astype(np.float64)
    vectors[[0, 13, 14, 119], 5] = [np.nan, np.inf, -np.inf, 1e39]
    with pytest.raises(UnfaceError, match=r"^faces: row 0 has NaN or Inf; repair or drop such rows \(4 in all\)$"):
        released_vectors(projection(), vectors, "faces")


def test_what_comes_out_is_a_space_of_its_own() -> None:
    by, sha = projection(), projection().sha256
    assert released_space(by, None) == Space("arcface after isp 5", sha, DIM, normalised=True)
    clip = Space("clip", None, DIM, normalised=False)
    assert released_space(by, clip) == Space("clip after isp 5", sha, DIM, normalised=True)
    nobody = projection(UNNAMED)
    assert released_space(nobody, None).encoder == "unknown encoder after isp 5"


def test_a_space_is_named_by_an_encoder_or_by_weights() -> None:
    assert not is_named(None)
    assert not is_named(UNNAMED)
    assert is_named(ARCFACE)
    assert is_named(Space("clip", None, DIM, normalised=False))
    assert is_named(Space(None, "ab" * 32, DIM, normalised=False))
