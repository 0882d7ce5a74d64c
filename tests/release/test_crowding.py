"""If this fails, a pair of sunglasses hides every copied eye, or p-values depend on who was trained on."""

import numpy as np
import pytest
from scipy.stats import kstest

from tests.refusals.table import refused
from unface import make_identities
from unface.release import exposed, person_scores
from unface.release.crowding import crowding
from unface.release.exposure import PersonScores
from unface.seeds import stream


def usual(vectors: np.ndarray, people: np.ndarray) -> np.ndarray:
    return crowding([vectors], people, vectors, people)


def test_the_mean_of_the_ten_nearest_strangers_by_hand() -> None:
    made = make_identities(12, 3, 16, seed=1).unit()
    found = usual(made.vectors, made.identities)
    for row in (0, 7, 35):
        scores = made.vectors @ made.vectors[row]
        strangers = np.sort(scores[made.identities != made.identities[row]])
        assert found[row] == pytest.approx(strangers[-10:].mean(), abs=1e-5)
    few = usual(made.vectors[:6], made.identities[:6])  # two people: three strangers each
    assert few[0] == pytest.approx((made.vectors[3:6] @ made.vectors[0]).mean(), abs=1e-5)
    with refused("release"):
        usual(made.vectors[:3], made.identities[:3])


def test_blocks_change_nothing_and_a_cohort_stands_for_everybody() -> None:
    made = make_identities(300, 4, 32, seed=2).unit()
    everybody = usual(made.vectors, made.identities)
    pieces = [made.vectors[:7], made.vectors[7:800], made.vectors[800:]]
    np.testing.assert_allclose(crowding(pieces, made.identities, made.vectors, made.identities), everybody, atol=1e-6)
    half = made.identities < 150
    some = crowding([made.vectors], made.identities, made.vectors[half], made.identities[half])
    assert np.corrcoef(everybody, some)[0, 1] > 0.6


def people_with_hubs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """300 training and 300 holdout people × 2; of each, 5 % are near to the middle, and so to everybody."""
    rng = stream(seed, "hubs")
    middle = rng.normal(size=32)
    people = rng.normal(size=(600, 1, 32)) + 0.5 * middle
    hubs = rng.random(600) < 0.05
    people[hubs] = 2.5 * middle + 0.6 * rng.normal(size=(hubs.sum(), 1, 32))
    pictures = (people + 0.3 * rng.normal(size=(600, 2, 32))).reshape(1200, 32)
    faces = rng.normal(size=(300, 32)) + 0.5 * middle
    sets = [(one / np.linalg.norm(one, axis=1, keepdims=True)).astype(np.float32) for one in (pictures, faces)]
    return sets[0][:600], sets[0][600:], sets[1]


def scored(training: np.ndarray, holdout: np.ndarray, faces: np.ndarray, *, corrected: bool) -> list[PersonScores]:
    pooled, whose = np.concatenate([training, holdout]), np.repeat(np.arange(600), 2)
    best = (faces @ pooled.T).max(axis=0)
    if corrected:
        best = best - usual(pooled, whose)
    code = np.repeat(np.arange(300), 2)
    return [
        person_scores(part, code, 300, seed=0, side=side)
        for part, side in ((best[:600], "training"), (best[600:], "holdout"))
    ]


def test_planted_people_are_found_behind_hubs() -> None:
    """Faces like 60 training people, no nearer than hubs are to everybody."""
    raw: list[np.ndarray] = []
    corrected: list[np.ndarray] = []
    for seed in range(4):
        training, holdout, faces = people_with_hubs(seed)
        near = training[0:120:2] + 0.11 * stream(seed, "near").normal(size=(60, 32)).astype(np.float32)
        planted = np.concatenate([faces, near / np.linalg.norm(near, axis=1, keepdims=True)])
        for how, listed in ((False, raw), (True, corrected)):
            listed.append(exposed(*scored(training, holdout, planted, corrected=how)).listed)
    before, after = np.mean(raw, axis=0), np.mean(corrected, axis=0)
    assert after[:60].mean() > before[:60].mean() + 0.2
    assert after[60:].sum() <= 0.1 * after.sum()


def test_p_values_stay_uniform() -> None:
    p = []
    for seed in range(60):
        training, holdout, faces = people_with_hubs(seed)
        found = exposed(*scored(training, holdout, faces, corrected=True))
        p.append(found.p[0])  # one person of each draw: independent
        assert found.people <= 30
    assert kstest(p, "uniform").pvalue > 0.01
