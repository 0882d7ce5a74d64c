"""If these fail, the nearest person of a synthetic face is not the nearest one."""

import numpy as np
import pytest

from unface.pairs import Nearest, compared, nearest_between, pairs_above
from unface.pairs.space import PairSpace
from unface.seeds import stream


def unit(rows: int, dim: int, *name: str | int) -> np.ndarray:
    vectors = stream(0, "test nearest", *name).standard_normal((rows, dim))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


def all_scores(space: PairSpace) -> np.ndarray:
    i, j = np.indices((len(space.left), len(space.right)))
    return space.exact(i.ravel(), j.ravel()).reshape(i.shape)


def expected(scores: np.ndarray) -> tuple[Nearest, Nearest]:
    return tuple(  # type: ignore[return-value]
        Nearest(side.max(axis=1), np.where(np.isfinite(side.max(axis=1)), side.argmax(axis=1), -1))
        for side in (scores, scores.T)
    )


def same(found: tuple[Nearest, Nearest], wanted: tuple[Nearest, Nearest]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.rows, other.rows)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (300, 5000), (2500, 37)])
def test_both_sides_equal_brute_force_whatever_the_blocks_and_threads(left: int, right: int) -> None:
    space = compared(unit(left, 24, "left"), unit(right, 24, "right"))
    for threads in (1, 3):
        same(nearest_between(space, threads=threads), expected(all_scores(space)))


def test_candidates_of_columns_that_are_thinned_on_the_way_lose_no_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.pairs.nearest._KEPT_AT_ONCE", 40)
    space = compared(unit(2500, 24, "left"), unit(37, 24, "right"))
    same(nearest_between(space, threads=1), expected(all_scores(space)))


def test_equal_and_nearly_equal_scores_are_decided_exactly_and_to_the_earlier_row() -> None:
    # Duplicates, and duplicates that differ in the last bit: a float32 product cannot tell them apart.
    base = unit(40, 16, "base")
    nudged = base.copy()
    nudged[:, 0] = np.nextafter(nudged[:, 0], np.float32(2))
    right = np.concatenate([nudged, base, base, nudged])
    for space in (compared(np.concatenate([base, base]), right), compared(right, np.concatenate([base, base]))):
        same(nearest_between(space), expected(all_scores(space)))


def test_own_pairs_are_left_out_on_both_sides() -> None:
    left, right = unit(50, 8, "a"), unit(3000, 8, "b")
    codes = stream(0, "codes").integers(-1, 6, 50), stream(0, "more codes").integers(-1, 6, 3000)
    scores = all_scores(compared(left, right))
    own = (codes[0][:, None] == codes[1]) & (codes[0][:, None] >= 0)
    same(nearest_between(compared(left, right), own=codes), expected(np.where(own, -np.inf, scores)))
    everything = (np.zeros(50, np.int64), np.zeros(3000, np.int64))
    of_left, of_right = nearest_between(compared(left, right), own=everything)
    assert (of_left.rows == -1).all()
    assert (of_right.rows == -1).all()


def test_floors_lose_nothing_above_them_and_pieces_merge_to_the_whole() -> None:
    left, right = unit(200, 12, "l"), unit(5000, 12, "r")
    whole = nearest_between(compared(left, right))
    found_left, found_right = Nearest.nothing(200), []
    for start in range(0, 5000, 1700):
        part = right[start : start + 1700]
        floors = (found_left.scores, np.full(len(part), -np.inf, np.float32))
        of_left, of_right = nearest_between(compared(left, part), floors=floors)
        moved = Nearest(of_left.scores, np.where(of_left.rows < 0, -1, of_left.rows + start))
        found_left = found_left.merged(moved)
        found_right.append(of_right)
    merged = Nearest(*(np.concatenate([getattr(one, name) for one in found_right]) for name in ("scores", "rows")))
    same((found_left, merged), whole)


def test_pairs_above_lists_each_pair_once_by_exact_score() -> None:
    space = compared(unit(300, 6, "x"), unit(2500, 6, "y"))
    scores = all_scores(space)
    cut = float(np.sort(scores.ravel())[-50])
    i, j, found = pairs_above(space, cut)
    np.testing.assert_array_equal(np.stack([i, j]), np.nonzero(scores >= cut))
    np.testing.assert_array_equal(found, scores[i, j])


def test_the_torch_screen_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from unface.pairs.torch_screen import TorchScreen

    space = compared(unit(700, 20, "tl"), unit(900, 20, "tr"))
    own = np.where(np.arange(700) < 5, np.arange(700), -1), np.where(np.arange(900) < 5, np.arange(900), -1)
    scores = all_scores(space)
    scores[np.arange(5), np.arange(5)] = -np.inf
    monkeypatch.setattr("unface.pairs.nearest.open_screen", lambda space, device: TorchScreen(space, "cpu"))
    same(nearest_between(space, own=own), expected(scores))


def test_of_two_pieces_the_better_counts_and_of_equal_ones_the_earlier_row_in_either_order() -> None:
    """Better, worse, equal and later, equal and earlier, nothing against something, nothing at all."""
    low = -np.inf
    one = Nearest(np.array([0.5, 0.5, 0.5, 0.5, low, low], np.float32), np.array([4, 4, 4, 4, -1, -1]))
    two = Nearest(np.array([0.6, 0.4, 0.5, 0.5, 0.1, low], np.float32), np.array([9, 9, 9, 1, 9, -1]))
    for merged in (one.merged(two), two.merged(one)):
        assert merged.rows.tolist() == [9, 4, 4, 1, 9, -1]
        assert merged.scores.tolist() == np.array([0.6, 0.5, 0.5, 0.5, 0.1, low], np.float32).tolist()
    found = Nearest(np.array([low], np.float32), np.array([3]))
    assert Nearest.nothing(1).merged(found).rows.tolist() == [3], "a score of −Inf that was found is found"
    assert Nearest.nothing(2).scores.dtype == np.float32
