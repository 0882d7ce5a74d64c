"""If this fails, the highest impostor scores are wrong or incomplete, and so is every threshold made of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, NoisyScreen, crowds, everything, make_crowd, small_blocks
from unface.pairs import Tail, cosine_space, highest_impostors, impostors_above, open_screen, pair_up, pool_tails
from unface.pairs import tail as tail_module
from unface.pairs.screen import Hits
from unface.pairs.sweep import sweep


def assert_lists_true_pairs(tail: Tail, crowd: Crowd) -> None:
    """Each listed score belongs to its pair of rows, the pair to two identities, and no pair is listed twice."""
    np.testing.assert_array_equal(tail.scores, everything(crowd).score_of(tail.rows))
    np.testing.assert_array_equal(tail.first, crowd.identities[tail.rows[:, 0]])
    np.testing.assert_array_equal(tail.second, crowd.identities[tail.rows[:, 1]])
    assert (tail.first != tail.second).all()
    assert len(np.unique(np.sort(tail.rows, axis=1), axis=0)) == len(tail)


def assert_same_bytes(one: Tail, other: Tail) -> None:
    for name in ("scores", "first", "second", "rows"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert (one.floor, one.impostors) == (other.floor, other.impostors)


@given(crowds(), st.integers(0, 300))
def test_the_highest_impostors_are_those_of_the_full_matrix(crowd: Crowd, keep: int) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    tail = highest_impostors(pairing, keep, small_blocks(pairing))
    np.testing.assert_array_equal(tail.scores, truth[:keep])
    assert tail.floor == (truth[keep] if keep < len(truth) else -np.inf)
    assert tail.impostors == len(truth)
    assert_lists_true_pairs(tail, crowd)


@given(crowds(), st.integers(0, 60), st.integers(0, 2**32), st.sampled_from([1e-6, 1e-2, 0.3]))
def test_a_screen_that_errs_up_to_its_margin_changes_nothing(crowd: Crowd, keep: int, seed: int, margin: float) -> None:
    pairing = crowd.pairing
    noisy = NoisyScreen(pairing, margin * pairing.space.bound, seed)
    assert_same_bytes(
        highest_impostors(pairing, keep, noisy), highest_impostors(pairing, keep, open_screen(pairing.space))
    )


def test_a_screen_that_errs_beyond_its_margin_is_not_forgiven() -> None:
    crowd = make_crowd(3, "continuous", 40)
    pairing = crowd.pairing
    lying = NoisyScreen(pairing, 0.3, 0)
    lying.margin = 0.0
    assert not np.array_equal(highest_impostors(pairing, 20, lying).scores, everything(crowd).impostor[:20])


@given(crowds(), st.data())
def test_every_impostor_above_a_cut_is_listed_also_those_on_it(crowd: Crowd, data: st.DataObject) -> None:
    pairing, truth = crowd.pairing, everything(crowd).impostor
    cut = float(data.draw(st.sampled_from(truth.tolist())))
    seed = data.draw(st.integers(0, 2**32))
    for screen in (small_blocks(pairing), NoisyScreen(pairing, 0.1 * pairing.space.bound, seed)):
        tail, count = impostors_above(pairing, cut, screen, most=len(truth))
        assert count == len(tail)
        np.testing.assert_array_equal(tail.scores, truth[truth >= cut])
        assert_lists_true_pairs(tail, crowd)
        assert cut > tail.floor >= max(truth[truth < cut], default=-np.inf)


def test_ties_are_listed_in_the_order_of_rows() -> None:
    pairing = pair_up(cosine_space(np.ones((4, 3), np.float32)), np.arange(4))
    tail = highest_impostors(pairing, 4, open_screen(pairing.space))
    assert tail.rows.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2]]
    assert tail.floor == tail.scores[-1]


@pytest.mark.parametrize("kind", ["continuous", "integers", "duplicates"])
@pytest.mark.parametrize("keep", [10, 3000])
def test_the_same_bytes_with_any_number_of_threads_and_any_blocks(kind: str, keep: int) -> None:
    pairing = make_crowd(1, kind, 500).pairing
    plain = highest_impostors(pairing, keep, open_screen(pairing.space), threads=1)
    for threads in (2, 3):
        assert_same_bytes(highest_impostors(pairing, keep, open_screen(pairing.space), threads=threads), plain)
        narrow = small_blocks(pairing, 64, 32)
        assert_same_bytes(highest_impostors(pairing, keep, narrow, threads=threads), plain)


def watch_cuts(monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[float]]:
    """The cuts that passes will begin and end with."""
    begun, ended = list[float](), list[float]()

    def watched(*arguments: Any, **options: Any) -> tuple[Hits, float]:
        hits, cut = sweep(*arguments, **options)
        begun.append(arguments[2])
        ended.append(cut)
        return hits, cut

    monkeypatch.setattr(tail_module, "sweep", watched)
    return begun, ended


def test_without_a_guess_the_cut_rises_by_itself_and_still_leaves_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(700, 32))
    vectors[:40, 0] += (
        9  # so the highest scores are all in the first block, and a cut that rose too far would lose some
    )
    crowd = Crowd(vectors.astype(np.float32), np.arange(700))
    truth = everything(crowd).impostor
    monkeypatch.setattr(tail_module, "sample_impostors", lambda _: np.empty(0, np.float32))
    begun, ended = watch_cuts(monkeypatch)
    tail = highest_impostors(crowd.pairing, 100, small_blocks(crowd.pairing, 64, 64))
    assert begun == [-np.inf]
    assert ended[0] > truth[-1]
    np.testing.assert_array_equal(tail.scores, truth[:100])
    assert tail.floor == truth[100]


@pytest.mark.parametrize("threads", [1, 3])
def test_exact_scores_are_made_by_as_many_threads_as_were_asked_for(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairing, asked = make_crowd(0, "continuous", 40).pairing, list[int | None]()

    def watched(work: Any, items: Any, threads: int | None) -> list[Any]:
        asked.append(threads)
        return [work(item) for item in items]

    monkeypatch.setattr("unface.pairs.space.parallel_map", watched)
    highest_impostors(pairing, 10, open_screen(pairing.space), threads=threads)
    impostors_above(pairing, 0.5, open_screen(pairing.space), most=10, threads=threads)
    assert asked == [threads, threads]


@pytest.mark.parametrize("misled", ["once", "twice"])
def test_a_cut_that_was_too_high_is_tried_again_lower(misled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = make_crowd(0, "continuous", 600)
    pairing, truth = crowd.pairing, everything(crowd).impostor
    # A sample that saw unusually high scores: 400 of some 150,000, so the 2,000 highest should be its 5 highest.
    sample = truth[:400] if misled == "twice" else np.concatenate([truth[:100], truth[2500:2800]])
    monkeypatch.setattr(tail_module, "sample_impostors", lambda _: np.random.default_rng(0).permutation(sample))
    cuts, _ = watch_cuts(monkeypatch)
    tail = highest_impostors(pairing, 2000, open_screen(pairing.space))
    assert cuts[0] > truth[2000]
    assert len(cuts) == {"once": 2, "twice": 3}[misled]
    assert (cuts[-1] == -np.inf) == (misled == "twice")
    np.testing.assert_array_equal(tail.scores, truth[:2000])
    assert tail.floor == truth[2000]


@pytest.mark.parametrize("keep", [0, 50, 2000])
def test_the_first_cut_lets_through_a_few_times_what_is_kept(keep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32), np.arange(600) // 2)
    truth, (cuts, _) = everything(crowd).impostor, watch_cuts(monkeypatch)
    highest_impostors(crowd.pairing, keep, open_screen(crowd.space))
    # 75 rows are sampled, one pair in 65: twice what is kept, and 48 of the sample, or some 3,100 pairs, to spare
    assert len(cuts) == 1
    assert 2 * keep + 2000 < np.count_nonzero(truth >= cuts[0]) < 2 * keep + 4500


@given(st.lists(crowds(("cosine",)), min_size=1, max_size=3), st.integers(1, 40))
def test_pooled_tails_are_complete_above_their_floor(parts: list[Crowd], keep: int) -> None:
    pairings = [part.pairing for part in parts]
    tails = [highest_impostors(pairing, keep, open_screen(pairing.space)) for pairing in pairings]
    pooled = pool_tails(tails)
    together = np.sort(np.concatenate([everything(part).impostor for part in parts]))[::-1]
    np.testing.assert_array_equal(pooled.scores, together[together > pooled.floor])
    assert pooled.impostors == len(together)
    assert pooled.floor == max(tail.floor for tail in tails)


def test_pooling_tails_above_a_cut_keeps_all_of_them() -> None:
    parts = [make_crowd(seed, "continuous", 30) for seed in (0, 1)]
    pairings = [part.pairing for part in parts]
    tails = [impostors_above(pairing, 0.5, open_screen(pairing.space), most=1000)[0] for pairing in pairings]
    pooled = pool_tails(tails)
    together = np.concatenate([everything(part).impostor for part in parts])
    assert len(pooled) == np.count_nonzero(together >= 0.5)
    assert pooled.floor < 0.5
    assert not np.any((together > pooled.floor) & (together < 0.5))


def test_pooling_keeps_each_score_with_its_identities() -> None:
    first = Tail(*listed([0.9, 0.5], [[0, 1], [2, 3]]), floor=0.1, impostors=10)
    second = Tail(*listed([0.7, 0.3], [[4, 5], [6, 7]]), floor=0.2, impostors=20)
    pooled = pool_tails([first, second])
    assert pooled.rows.tolist() == [[0, 1], [4, 5], [2, 3], [6, 7]]
    assert pooled.first.tolist() == [0, 4, 2, 6]
    assert (pooled.floor, pooled.impostors) == (0.2, 30)


def test_pooled_ties_keep_the_order_of_the_tails() -> None:
    scores = [0.9] * 30 + [0.5] * 30
    tails = [Tail(*listed(scores, [[row, row + 100]] * 60), floor=0.1, impostors=60) for row in range(4)]
    assert pool_tails(tails).first.tolist() == 2 * np.repeat(np.arange(4), 30).tolist()


def listed(scores: list[float], rows: list[list[int]]) -> tuple[Any, Any, Any, Any]:
    pairs = np.array(rows)
    return np.array(scores, np.float32), pairs[:, 0], pairs[:, 1], pairs
