"""If these fail, a bad holdout passes for a good one, unlabelled people are mixed up, or retrieval is miscounted."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from unface.metrics import Resolution
from unface.release import Labelled, cluster_people, exchangeability, retrieval_risk, stranger_thresholds
from unface.seeds import stream
from unface.verification import verify


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


def test_random_splits_are_exchangeable_and_another_camera_is_not() -> None:
    rng = stream(0, "camera")
    over = 0
    for _ in range(40):
        found = exchangeability(unit(rng.standard_normal((80, 32))), unit(rng.standard_normal((80, 32))))
        assert found is not None
        over += not found.holds
    assert over <= 2
    # A crop or a camera moves every vector of one side a little; no single person shows it.
    shift = 0.9 * rng.standard_normal(32) / np.sqrt(32)
    moved = exchangeability(
        unit(rng.standard_normal((200, 32)) + 1.2 * shift), unit(rng.standard_normal((200, 32)) - 1.2 * shift)
    )
    assert moved is not None
    assert not moved.holds
    assert exchangeability(unit(rng.standard_normal((9, 4))), unit(rng.standard_normal((50, 4)))) is None


def test_clusters_of_unlabelled_pictures_are_the_people() -> None:
    rng = stream(0, "cluster")
    means = rng.standard_normal((60, 64))
    owner = np.repeat(np.arange(60), 4)
    vectors = unit(means[owner] + 0.25 * rng.standard_normal((240, 64)))
    found = cluster_people(vectors[:120], vectors[120:])
    for side, people in ((found.training, owner[:120]), (found.holdout, owner[120:] - 30)):
        assert len(set(zip(side.tolist(), people.tolist(), strict=True))) == 30, (
            "one cluster a person, and one person each"
        )
        assert side.max() == 29


def test_thresholds_are_those_of_all_pairs_of_strangers() -> None:
    rng = stream(0, "strangers")
    owner = np.repeat(np.arange(40), 3)
    vectors = unit(rng.standard_normal((40, 16))[owner] + rng.standard_normal((120, 16)))
    one, two = stranger_thresholds(vectors, owner, (1e-1, 1e-2, 1e-6))
    assert (one.far, two.far) == (1e-1, 1e-2), "7,020 pairs cannot resolve one in a million"
    known = verify(vectors, owner, far=(1e-1, 1e-2))
    for found in (one, two):
        assert found.cosine == known.at[found.far].threshold
        assert found.false_accepts == known.at[found.far].false_accepts
    assert two.resolution is Resolution.RESOLVED
    with refused("release"):
        stranger_thresholds(vectors[:3], np.zeros(3, np.int64), (1e-2,))


def test_retrieval_risk_of_released_noise_is_chance_and_of_copies_is_one() -> None:
    rng = stream(0, "retrieval")
    people, each = 150, 4
    owner = np.repeat(np.arange(people), each)
    real = unit(rng.standard_normal((people * each, 48)))
    pictures = np.arange(people * each)
    queries = Labelled(real, owner, pictures)
    noise = Labelled(unit(rng.standard_normal((people, 48))), np.arange(people), pictures[::each])
    for one in retrieval_risk(queries, noise, (1, 5), sizes=(50, 150)):
        # One released face a person: K / identities exactly.
        assert one.chance == pytest.approx(one.k / one.identities)
        assert one.share.low <= one.chance <= one.share.high
    copies = Labelled(real[::each], np.arange(people), pictures[::each])
    found = {(one.pictures, one.k): one for one in retrieval_risk(queries, copies, (1,), sizes=(150,))}
    assert found["same", 1].share.value == 1.0
    assert found["same", 1].share.denominator == people
    assert found["other", 1].share.denominator == people * (each - 1), "the query's own face is not in its gallery"
    assert found["other", 1].share.value < 0.1


def test_retrieval_worked_by_hand() -> None:
    # Released faces at 0°, 40° and 90° of people 0, 1, 1. Queries at 10° (0), 60° (1) and 25° (1).
    def at(*degrees: float) -> NDArray[np.float32]:
        radians = np.radians(degrees)
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)

    queries = Labelled(at(10, 60, 25), np.array([0, 1, 1]), np.array([0, 1, 2]))
    released = Labelled(at(0, 40, 90), np.array([0, 1, 1]), np.array([-1, -1, -1]))
    one, two = retrieval_risk(queries, released, (1, 2))
    assert (one.pictures, one.share.numerator, one.share.denominator) == ("any", 3, 3)
    # Without labels: the one face of person 0 is first in 1 of 3, one of two of person 1 in 2 of 3.
    assert one.chance == pytest.approx((1 / 3 + 2 / 3 + 2 / 3) / 3)
    assert two.chance == pytest.approx((2 / 3 + 1 + 1) / 3)
    # The last query was the source of the face at 40°: with that face left out, the face at 0° comes first.
    sourced = Labelled(released.vectors, released.people, np.array([-1, 2, -1]))
    other = {r.k: r for r in retrieval_risk(queries, sourced, (1, 2)) if r.pictures == "other"}
    assert (other[1].share.numerator, other[2].share.numerator) == (2, 3)


def test_fewer_released_faces_than_k_are_refused() -> None:
    side = Labelled(unit(np.eye(3)), np.array([0, 1, 2]), np.array([-1, -1, -1]))
    with refused("release", "k = 4", "of 3", "has 3"):
        retrieval_risk(side, side, (4,))
