"""If these fail, applying a projection gives other vectors than its definition, by the form chosen or at the edges."""

from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from tests.erase.people import matrix_of, people
from tests.refusals.table import refused
from unface.data import Space
from unface.erase import ISP, LEACE, Eraser, Projection, RandomSubspace, fit_projection
from unface.erase.kernel import cheapest_map
from unface.errors import UnfaceError

UNKNOWN = Space(encoder=None, weights_sha256=None, dim=4, normalised=False)


def along(*axes: int, dim: int = 4, normalise: bool = True) -> Projection:
    """Removes coordinate axes."""
    basis = np.eye(dim)[:, list(axes)]
    return Projection("axes", basis, np.ones(len(axes)), replace(UNKNOWN, dim=dim), normalise=normalise)


@pytest.mark.parametrize("rank", [0, 1, 30, 43, 50, 60, 99, 100])
@pytest.mark.parametrize("kind", [ISP, LEACE])
@pytest.mark.parametrize("normalise", [True, False])
def test_every_form_of_the_map_is_the_same_map(rank: int, kind: type[ISP | LEACE], normalise: bool) -> None:
    """Thin, complement and square, by rank; a row alone is the same as a row among others."""
    made = people(120, 3, 100)
    found = kind(rank, normalise=normalise).fit(made.vectors, made.identities).projection_
    exact = made.vectors.astype(np.float64)
    mean = 0 if found.mean is None else found.mean
    expected = (exact - mean) @ matrix_of(found).T + mean
    vanished = np.linalg.norm(expected, axis=1) < 1e-6 * np.linalg.norm(exact, axis=1)
    expected[vanished] = 0
    if normalise:
        expected[~vanished] /= np.linalg.norm(expected[~vanished], axis=1, keepdims=True)
    erased = found.apply(made.vectors)
    assert erased.dtype == np.float32
    assert erased == pytest.approx(expected, abs=1e-6)
    assert np.array([found.apply(row) for row in made.vectors[:5]]) == pytest.approx(erased[:5], abs=1e-7)
    assert found.count_degenerate(made.vectors) == np.count_nonzero(vanished)


@pytest.mark.parametrize("normalise", [True, False])
def test_many_vectors_go_block_by_block_and_come_out_as_each_alone(normalise: bool) -> None:
    """5,000 × 64 numbers are three blocks, the last one shorter."""
    given = np.random.default_rng(0).standard_normal((5000, 64)).astype(np.float32)
    given[[7, 2100, 4999], 2:] = 0
    found = along(0, 1, dim=64, normalise=normalise)
    erased = found.apply(given)
    assert found.count_degenerate(given) == 3
    for row in (0, 7, 2047, 2048, 2100, 4095, 4096, 4998, 4999):
        assert erased[row] == pytest.approx(found.apply(given[row]), abs=1e-7)
    given[[2500, 4200], 5] = np.nan
    with refused("projection", "apply", "vector 2500"):
        found.apply(given)


def test_the_cheapest_form_is_chosen() -> None:
    thin, square, complement = (RandomSubspace(rank).fit(np.eye(200)).projection_.linear for rank in (40, 100, 160))
    assert (thin.left.shape, thin.subtract) == ((200, 40), True)
    assert (square.left.shape, square.right) == ((200, 200), None)
    assert (complement.left.shape, complement.subtract) == ((200, 40), False)


def test_vectors_that_vanish_stay_zero_and_are_counted() -> None:
    found = along(0, 1)
    given = np.array([[3, 4, 0, 0], [3, 4, 1e-5, 0], [3, 4, 1e-4, 0], [0, 0, 0, 0]], np.float32)
    erased = found.apply(given)
    assert erased.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert found.apply(given * np.float32(1e-30)).tolist() == erased.tolist()
    assert found.count_degenerate(given) == 2
    assert found.apply(np.array([3, 4, 4e-6, 0])).tolist() == [0, 0, 0, 0]
    assert found.apply(np.array([3, 4, 4e-6, 0])).dtype == np.float32
    assert found.count_degenerate(np.array([3, 4, 4e-6, 0])) == 1
    assert found.count_degenerate(np.array([3, 4, 6e-6, 0])) == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_short_and_very_long_vectors_keep_their_direction(scale: float) -> None:
    given = np.array([[1, 2, 3, 4], [0, 0, 3, -4]], np.float32)
    assert along(0).apply(given * np.float32(scale)) == pytest.approx(along(0).apply(given), abs=1e-6)


def test_without_normalise_lengths_are_kept() -> None:
    assert along(0, normalise=False).apply(np.array([1.0, 3.0, 4.0, 0.0])).tolist() == [0, 3, 4, 0]
    assert along(0).apply(np.array([1, 3, 4, 0])).tolist() == pytest.approx([0, 0.6, 0.8, 0])


def test_no_vectors_are_no_vectors() -> None:
    assert along(0).apply(np.zeros((0, 4))).shape == (0, 4)


def test_it_says_what_it_is_and_cannot_be_changed() -> None:
    found = along(0, 1)
    assert repr(found).startswith("Projection('axes': 2 of 4 dimensions removed, ")
    with pytest.raises(ValueError, match="read-only"):
        found.directions[0, 0] = 2
    with pytest.raises(ValueError, match="read-only"):
        found.spectrum[0] = 2


def test_factors_may_be_off_by_rounding_and_no_more() -> None:
    """Beside readers of size 1,000, products of which are rounded as much more coarsely."""
    space = replace(UNKNOWN, dim=2)
    refused = pytest.raises(UnfaceError, match="not those of a projection; fit it again")
    for off, good in ((1e-10, True), (1e-8, False)):
        with nullcontext() if good else refused:
            Projection("made", np.array([[1 + off], [0.0]]), np.ones(1), space)
    for off, good in ((1e-7, True), (1e-5, False)):
        with nullcontext() if good else refused:
            Projection("made", np.eye(2)[:, :1], np.ones(1), space, readers=np.array([[1 + off], [1000.0]]))


def test_fit_projection_names_the_space_of_its_set() -> None:
    made = people(6)
    named = replace(made, space=Space("sscd", "a" * 64, 24, True))
    assert fit_projection(ISP(3), named).space == named.space
    assert ISP(3).fit(made.vectors, made.identities).projection_.space.encoder is None


@pytest.mark.parametrize("eraser", [ISP(20), LEACE(20), ISP(60)], ids=repr)
def test_the_map_is_worked_out_once_and_not_for_each_vector(eraser: Eraser, monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/erase_speed.py measures what one vector takes."""
    made = people(80, 3, 80)
    worked_out = Mock(wraps=cheapest_map)
    monkeypatch.setattr("unface.erase.projection.cheapest_map", worked_out)
    found = eraser.fit(made.vectors, made.identities).projection_
    found.apply(made.vectors)
    for vector in made.vectors[:3]:
        found.apply(vector)
        found.count_degenerate(vector)
    assert worked_out.call_count == 1
