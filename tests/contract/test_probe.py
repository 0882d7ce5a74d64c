"""If these fail, a probe is not repeatable, depends on what it must not, or leaves leakage unfound or invents it."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import all_pairs, score_matrix
from unface import Protocol, audit, make_identities
from unface.data import EmbeddingSet
from unface.pairs import PairSpace, l2_space
from unface.probe import PROBES, Support, pick_probes
from unface.probe.ports import Scorer, Setting
from unface.seeds import stream

NAMES = [*PROBES, "toy"]
DRAWS = {"net", "mlp"}
"""They draw at random while they learn."""
ONE_PICTURE_DIFFERS = {"lda", "plda", "net"}
"""They need the spread of one person's pictures, and say so where there is none."""
TORCH = {"net"}
Floats = NDArray[np.float32]

each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", autouse=True)
def _small_batches() -> Iterator[None]:
    """The network of mlp takes 600 steps whatever it learns from; of few pictures each they take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unface.probe.mlp._BATCH", 8)
        yield


class Distance:
    """A probe as another package would bring it."""

    name, notes = "toy", ()
    settings: tuple[Setting, ...] = ({},)

    def fit(self, support: Support) -> Scorer:
        return self

    def space(self, setting: Setting, vectors: Floats) -> PairSpace:
        return l2_space(vectors)


@cache
def people(between: float, seed: int = 0, identities: int = 24) -> EmbeddingSet:
    """Unit vectors of 5 pictures of each; with ``between`` 0 nothing tells anybody apart."""
    return make_identities(identities, 5, 8, between=between, seed=seed).unit()


def support(k: int, seed: int = 0, between: float = 2.0) -> Support:
    """In shuffled order: probes may not rely on sorted rows. Nobody may write to it."""
    made = people(between)
    number = np.arange(len(made)) % 5
    rows = stream(0, "rows").permutation(np.flatnonzero(number < k))
    vectors, identities = made.vectors[rows], made.identities[rows]
    vectors.setflags(write=False)
    identities.setflags(write=False)
    return Support(vectors, identities, k, seed)


@cache
def fitted(name: str, k: int = 5, seed: int = 0, between: float = 2.0) -> Scorer:
    if name in TORCH:
        pytest.importorskip("torch")
    return pick_probes([name])[0].fit(support(k, seed, between))


def settings(name: str) -> tuple[Setting, ...]:
    return pick_probes([name])[0].settings


def strangers(count: int = 12) -> Floats:
    vectors: Floats = people(2.0, seed=1).vectors[:count].copy()
    vectors.setflags(write=False)
    return vectors


def linked(space: PairSpace, identities: NDArray[np.int64]) -> float:
    """The share of (mated, impostor) couples in which the mated pair scores higher; 0.5 is chance."""
    pairs = all_pairs(space, identities)
    ranks = np.searchsorted(np.sort(pairs.impostor), pairs.mated)
    return float(ranks.mean() / len(pairs.impostor))


@each
def test_it_has_its_name_and_settings_that_differ(name: str) -> None:
    (probe,) = pick_probes([name])
    assert probe.name == name
    assert probe.settings
    told = [tuple(sorted(setting.items())) for setting in probe.settings]
    assert len(set(told)) == len(told)
    assert all(isinstance(value, int | float) for setting in probe.settings for value in setting.values())


@each
def test_what_it_learned_from_and_what_it_is_asked_about_stay_as_they_were(name: str) -> None:
    """Both are locked, so that whoever writes to them raises."""
    queries = strangers()
    before = queries.tobytes()
    for setting in settings(name):
        assert len(fitted(name).space(setting, queries)) == len(queries)
    assert queries.tobytes() == before


@each
def test_the_same_seed_gives_the_same_scores_and_another_matters_to_who_draws_alone(name: str) -> None:
    setting, queries = settings(name)[-1], strangers()
    again = pick_probes([name])[0].fit(support(5))
    first, second, other = (
        score_matrix(scorer.space(setting, queries)) for scorer in (fitted(name), again, fitted(name, seed=1))
    )
    assert np.array_equal(first, second)
    assert np.array_equal(first, other) is (name not in DRAWS)


@each
def test_a_score_is_of_its_two_pictures_whoever_else_is_asked_about(name: str) -> None:
    queries = strangers()
    order = stream(0, "order").permutation(len(queries))[:7]
    for setting in settings(name):
        scores = score_matrix(fitted(name).space(setting, queries))
        some = score_matrix(fitted(name).space(setting, queries[order]))
        near = 1e-5 * float(np.abs(scores).max())
        assert np.isfinite(scores).all()
        assert scores == pytest.approx(scores.T, abs=near)
        assert some == pytest.approx(scores[np.ix_(order, order)], abs=near)


@each
def test_one_picture_of_each_person_is_enough_and_what_is_done_differently_is_said(name: str) -> None:
    for setting, k in product(settings(name), (1, 5)):
        scorer = fitted(name, k)
        assert np.isfinite(score_matrix(scorer.space(setting, strangers()))).all()
        assert all(note and "\n" not in note for note in scorer.notes)
        assert bool(scorer.notes) is (k == 1 and name in ONE_PICTURE_DIFFERS)


@each
def test_strangers_who_differ_are_linked_and_where_nothing_differs_it_is_chance(name: str) -> None:
    """80 people of 5 pictures: 800 mated pairs, so that chance is 0.5 with a deviation of about 0.01."""
    for between, least, most in ((2.0, 0.85, 1.0), (0.0, 0.45, 0.55)):
        asked = people(between, seed=2, identities=80)
        for setting in settings(name):
            space = fitted(name, between=between).space(setting, asked.vectors)
            assert least <= linked(space, asked.identities) <= most, (between, setting)


def test_every_probe_takes_part_in_an_audit_and_one_of_another_package_finds_what_cosine_finds() -> None:
    made = make_identities(60, 6, 8, between=1.5, seed=0)
    probes = ("cosine", "ridge", "lda", "plda", "toy")
    protocol = Protocol(probe=probes, seeds=2, bootstraps=100)
    result = audit(made, eraser=(), far=0.05, k=1, protocol=protocol)
    by_probe = {point.probe: point.tar for point in result.spaces[0].points}
    assert list(by_probe) == list(probes)
    cosine, distance = by_probe["cosine"], by_probe["toy"]
    assert cosine is not None
    assert distance is not None
    # −‖a − b‖² = 2 cos − 2 for unit vectors: the same order, but for ties that rounding makes or breaks
    assert abs(cosine.numerator - distance.numerator) <= 2
