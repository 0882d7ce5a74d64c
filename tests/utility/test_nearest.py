"""If these fail, neighbours are not the nearest, or depend on blocks, threads or luck: k-NN and overlap are off."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.utility.small import Vectors, at_angles
from unface.utility import ranking as module
from unface.utility.ranking import nearest


def by_sorting(queries: Vectors, references: Vectors, k: int) -> list[list[int]]:
    """The definition, one pair at a time: cosine in float64, rounded as scores are, ties to the earlier row."""
    found = []
    for query in queries.astype(np.float64):
        cosines = []
        for reference in references.astype(np.float64):
            norms = np.linalg.norm(query) * np.linalg.norm(reference)
            cosines.append(float(np.float32(np.round(query @ reference / norms, 12))) if norms else -np.inf)
        order = sorted((row for row in range(len(cosines)) if cosines[row] > -np.inf), key=lambda row: -cosines[row])
        found.append([*order[:k], *[-1] * (k - len(order))])
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12), st.booleans())
def test_neighbours_are_those_of_the_definition(seed: int, count: int, k: int, coarse: bool) -> None:
    """Coarse vectors have signs for coordinates: most cosines tie, some vectors repeat, some are zero."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(-1, 2, (count + 5, 3)) if coarse else rng.standard_normal((count + 5, 3))
    queries, references = drawn[:5].astype(np.float32), drawn[5:].astype(np.float32)
    assert nearest(queries, references, k).tolist() == by_sorting(queries, references, k)


def test_neighbours_do_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, 6)).astype(np.float32)
    vectors[100:200] = vectors[:100]
    whole = nearest(vectors, vectors, 7, own=np.arange(300))
    for queries, references, run in [(7, 11, 3), (64, 50, 1), (300, 1, 32)]:
        monkeypatch.setattr(module, "_QUERIES_AT_ONCE", queries)
        monkeypatch.setattr(module, "_REFERENCES_AT_ONCE", references)
        monkeypatch.setattr(module, "_RUN", run)
        np.testing.assert_array_equal(nearest(vectors, vectors, 7, own=np.arange(300)), whole)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 12), st.integers(1, 60))
def test_neighbours_are_the_same_however_few_candidates_are_held(seed: int, count: int, k: int, held: int) -> None:
    """Coarse vectors, of which most tie, and doubles that a screen cannot tell apart."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(-1, 2, (count + 5, 3)).astype(np.float32)
    drawn[::3] = np.nextafter(drawn[::3], 2 * drawn[::3])
    queries, references = drawn[:5], drawn[5:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CANDIDATES", held)
        patch.setattr(module, "_REFERENCES_AT_ONCE", 7)
        patch.setattr(module, "_RUN", 2)
        assert nearest(queries, references, k).tolist() == by_sorting(queries, references, k)


def test_of_references_that_are_all_the_same_the_first_are_the_neighbours_in_little_memory() -> None:
    """256 × 60,000 ties, which take 300 MB as candidates."""
    references = np.ones((60_000, 4), np.float32)
    tracemalloc.start()
    found = nearest(references[:256], references, 3, own=np.arange(256))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tolist() == [[row for row in range(4) if row != query][:3] for query in range(256)]
    assert peak < 80 << 20


def test_scores_closer_than_float32_products_can_tell_are_told_apart() -> None:
    """600 references within a millionth of each other, the nearest last: a screen alone would pick at random."""
    rng = np.random.default_rng(1)
    query = rng.standard_normal(512)
    away = rng.standard_normal(512)
    away -= away @ query / (query @ query) * query
    references = np.array([query + (0.05 - 1e-5 * step) * away for step in range(600)], np.float32)
    found = nearest(query[None].astype(np.float32), references, 5)
    assert found.tolist() == [[599, 598, 597, 596, 595]]


def test_a_query_is_not_its_own_neighbour_but_its_double_is() -> None:
    vectors = np.array(at_angles(0, 0, 50), np.float32)
    assert nearest(vectors, vectors, 2, own=np.arange(3)).tolist() == [[1, 2], [0, 2], [0, 1]]


def test_zeros_are_nobodys_neighbours_and_have_none() -> None:
    """The reference at 180° is as far as can be, and still nearer than zeros."""
    vectors = np.array([[0, 0], *at_angles(0, 180), [0, 0]], np.float32)
    assert nearest(vectors, vectors, 3, own=np.arange(4)).tolist() == [[-1] * 3, [2, -1, -1], [1, -1, -1], [-1] * 3]
    assert nearest(vectors[1:2], np.zeros((4, 2), np.float32), 2).tolist() == [[-1, -1]]
