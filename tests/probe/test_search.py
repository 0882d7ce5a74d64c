"""If these fail, a search counts other hits than a plain ranking does, or its rates at smaller galleries are biased."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from unface.pairs import cosine_space, l2_space, pair_up
from unface.probe.search import Searched, chance_rate, search
from unface.seeds import stream


def test_counts_are_those_of_ranking_every_query_by_hand() -> None:
    rng = stream(1, "search")
    people = np.repeat(np.arange(40), 7)
    vectors = rng.normal(size=(280, 8)) + 0.7 * np.repeat(rng.normal(size=(40, 8)), 7, axis=0)
    pairing = pair_up(cosine_space(vectors), people)
    found = search(pairing)
    scores = (pairing.space.left.astype(np.float64) @ pairing.space.right.T.astype(np.float64)).astype(np.float32)
    np.fill_diagonal(scores, -np.inf)
    same = people[:, None] == people[None, :]
    mate, other = np.where(same, scores, -np.inf).max(axis=1), np.where(same, -np.inf, scores)
    assert found.mate == pytest.approx(mate, abs=1e-6)
    assert found.other == pytest.approx(other.max(axis=1), abs=1e-6)
    assert (found.stranger == people[other.argmax(axis=1)]).all()
    assert (found.ahead == (other >= mate[:, None]).sum(axis=1)).all()
    first = people[np.argmax(scores, axis=1)] == people
    assert (found.hit_rates(found.gallery, 1) == first).all()
    ten = np.array([(people[np.argsort(-row)[:10]] == own).any() for row, own in zip(scores, people, strict=True)])
    assert (found.hit_rates(found.gallery, 10) == ten).all()


def test_equal_scores_go_against_the_attacker() -> None:
    pairing = pair_up(cosine_space(np.ones((6, 3))), np.repeat([0, 1], 3))
    found = search(pairing)
    assert found.ahead.tolist() == [3] * 6
    assert not found.hit_rates(5, 1).any()


def test_smaller_galleries_are_the_mean_over_all_ways_to_draw_one() -> None:
    """Two mates, six others, three of them ahead: a gallery of five draws three of the six."""
    found = Searched(*(np.array([value] * 9) for value in (0, 0.5, 3, 0.9, 1, 2)))
    draws = list(combinations([1, 1, 1, 0, 0, 0], 3))
    for first in (1, 2, 3):
        expected = np.mean([sum(draw) < first for draw in draws])
        assert found.hit_rates(5, first) == pytest.approx(expected)


def test_chance_is_that_of_pictures_in_random_order() -> None:
    assert chance_rate(4, 100, 1) == pytest.approx(4 / 100)
    orders = list(combinations(range(7), 2))
    assert chance_rate(2, 7, 3) == pytest.approx(np.mean([min(order) < 3 for order in orders]))
    assert chance_rate(3, 5, 10) == 1


def test_a_score_that_knows_nothing_finds_at_chance() -> None:
    """Independent identities without any identity in them: the first hit is one of n − 1 of all others."""
    hits = []
    for draw in range(30):
        vectors = stream(draw, "nobody").normal(size=(200, 64))
        found = search(pair_up(cosine_space(vectors), np.repeat(np.arange(40), 5)))
        hits.append([found.hit_rates(size, first).mean() for size, first in ((199, 1), (50, 1), (199, 10))])
    expected = [chance_rate(4, 199, 1), chance_rate(4, 50, 1), chance_rate(4, 199, 10)]
    error = np.std(hits, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(np.mean(hits, axis=0) - expected) < 4 * error).all()


def test_the_rate_of_gaussian_people_is_the_integral() -> None:
    """One dimension is enough: two pictures each, distances d_m = 2σ_w² χ² of the mate and independent-looking others.

    Given the query at x the others are N(0, 1 + σ_w²) draws, independent of the mate: the first hit is the mate when
    none of G − 1 of them is nearer, E[(1 − p(x, r))^(G − 1)].
    """
    noise, people, dim, gallery = 0.15, 60, 2, 20
    rates = []
    for draw in range(40):
        rng = stream(draw, "gaussian search")
        means = np.repeat(rng.normal(size=(people, dim)), 2, axis=0)
        vectors = means + noise * rng.normal(size=(2 * people, dim))
        found = search(pair_up(l2_space(vectors), np.repeat(np.arange(people), 2)))
        rates.append(found.hit_rates(gallery, 1).mean())
    rng = stream(0, "integral")
    mean = rng.normal(size=(20_000, dim))
    query, mate = (mean + noise * rng.normal(size=mean.shape) for _ in range(2))
    scale = 1 + noise**2
    centre, radius = (query**2).sum(axis=1) / scale, ((query - mate) ** 2).sum(axis=1) / scale
    nearer = stats.ncx2.cdf(radius, dim, centre)
    # the gallery holds the mate and gallery − 1 pictures of others
    law = float(np.mean((1 - nearer) ** (gallery - 1)))
    error = np.hypot(np.std(rates, ddof=1) / np.sqrt(40), np.std((1 - nearer) ** (gallery - 1)) / np.sqrt(20_000))
    assert abs(np.mean(rates) - law) < 4 * error
    assert abs(np.mean(rates) - float(np.mean((1 - nearer) ** (2 * gallery)))) > 4 * error
