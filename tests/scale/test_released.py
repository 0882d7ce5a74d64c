"""If these fail, vectors are released that were not erased, were scaled otherwise, or have no row of their own."""

import numpy as np
import pytest

from tests.scale.stored import ARCFACE, DIM, PEOPLE, UNNAMED, projection
from unface import Projection, UnfaceError
from unface.data import Space
from unface.scale import released_space, released_vectors
from unface.scale.released import is_named, release


def first_removed(*, normalised: bool, normalise: bool) -> Projection:
    """Of three dimensions the first."""
    space = Space(None, None, 3, normalised=normalised)
    return Projection("isp", np.eye(3)[:, :1].copy(), np.ones(1), space, normalise=normalise)


@pytest.mark.parametrize(
    ("normalised", "normalise", "expected"),
    [
        (False, False, [0, 4, 0]),
        (True, False, [0, 0.8, 0]),
        (False, True, [0, 1, 0]),
        (True, True, [0, 1, 0]),
    ],
)
def test_vectors_are_scaled_before_as_the_projection_was_fitted_and_after_if_it_says_so(
    normalised: bool, normalise: bool, expected: list[float]
) -> None:
    by = first_removed(normalised=normalised, normalise=normalise)
    assert released_vectors(by, np.array([[3, 4, 0]]), "x") == pytest.approx(np.array([expected]))


@pytest.mark.parametrize("length", [1e-3, 1, 1e3])
@pytest.mark.parametrize("normalised", [True, False])
def test_of_what_a_millionth_is_left_of_nothing_is_left_whatever_its_length(length: float, normalised: bool) -> None:
    by = first_removed(normalised=normalised, normalise=True)
    done = release(by, length * np.array([[1, 5e-7, 0], [1, 2e-6, 0], [1, 0, 0]]))
    assert done.degenerate == 2
    assert done.vectors == pytest.approx(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("threads", [1, 2, None])
def test_blocks_change_no_number_and_no_row(threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = PEOPLE.vectors.astype(np.float64)
    vectors[[3, 100]] = 0
    whole = release(projection(), vectors)
    monkeypatch.setattr("unface.scale.released._BLOCK_BYTES", 7 * 8 * DIM)
    blocks = release(projection(), vectors, threads)
    assert np.array_equal(blocks.vectors, whole.vectors)
    assert blocks.vectors.dtype == np.float32
    assert blocks.degenerate == whole.degenerate == 2
    assert len(blocks.bad) == 0
    vectors[[0, 13, 14, 119], 5] = [np.nan, np.inf, -np.inf, 1e39]
    assert release(projection(), vectors, threads).bad.tolist() == [0, 13, 14, 119]
    with pytest.raises(UnfaceError, match=r"^faces: row 0 has NaN or Inf; repair or drop such rows \(4 in all\)$"):
        released_vectors(projection(), vectors, "faces")


def test_rows_may_be_larger_than_a_block_or_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.scale.released._BLOCK_BYTES", 1)
    assert np.array_equal(release(projection(), PEOPLE.vectors).vectors, projection().apply(PEOPLE.unit().vectors))
    assert release(projection(), PEOPLE.vectors[:0]).vectors.shape == (0, DIM)


def test_what_was_given_stays_as_it_was() -> None:
    for stored in (np.float32, np.float64):
        given = PEOPLE.vectors.astype(stored)
        release(projection(), given)
        assert np.array_equal(given, PEOPLE.vectors)


def test_another_number_of_dimensions_is_refused_with_both() -> None:
    with pytest.raises(UnfaceError, match=r"^faces: vectors of 8 dimensions; this projection is for 16"):
        released_vectors(projection(), PEOPLE.vectors[:, :8], "faces")


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
