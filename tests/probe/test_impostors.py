"""If these fail, the paper's quota of impostor pairs is not a fair draw of those that all pairs would hold."""

import numpy as np
import pytest

from tests.probe.small import all_pairs, people, roles_of, score_matrix
from tests.refusals.table import refused
from unface.pairs import Pairing, Tail, cosine_space, pair_up
from unface.probe import Plan, pick_probes, run_panel
from unface.probe.calibrate import impostor_tail, impostors_accepted
from unface.seeds import stream

IDENTITIES, IMAGES = 12, 5
CODES = stream(0, "codes").permutation(np.repeat(np.arange(IDENTITIES), IMAGES))
SPACE = cosine_space(stream(0, "impostors").normal(size=(IDENTITIES * IMAGES, 4)))
QUOTA = Plan(quota=3)


def pairing() -> Pairing:
    return pair_up(SPACE, CODES)


def drawn(name: str = "calibrate 0", plan: Plan = QUOTA) -> Tail:
    return impostor_tail(pairing(), 10, plan, name)


def test_scores_identities_and_rows_of_a_quota_belong_together() -> None:
    tail = drawn()
    assert len(tail) == tail.impostors == 3 * IDENTITIES * (IDENTITIES - 1) // 2
    assert (np.diff(tail.scores) <= 0).all()
    assert np.array_equal(CODES[tail.rows], np.stack([tail.first, tail.second], axis=1))
    assert np.array_equal(score_matrix(SPACE)[tail.rows[:, 0], tail.rows[:, 1]], tail.scores)
    assert tail.floor == -np.inf


def test_each_seed_and_role_draws_pairs_of_its_own_and_the_same_ones_again() -> None:
    rows = [drawn(name).rows.tolist() for name in ("calibrate 0", "calibrate 0", "calibrate 1", "test 0")]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]
    assert rows[0] != rows[3]
    assert drawn(plan=Plan(quota=3, seed=1)).rows.tolist() != rows[0]


def test_every_image_of_an_identity_may_be_drawn() -> None:
    found = np.concatenate([drawn(f"test {seed}").rows.ravel() for seed in range(3)])
    assert set(found.tolist()) == set(range(IDENTITIES * IMAGES))


def test_in_a_trial_every_seed_and_role_draws_its_quota_from_a_stream_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = []

    def noted(seed: int, *name: str | int) -> np.random.Generator:
        names.append(name)
        return stream(seed, *name)

    monkeypatch.setattr("unface.probe.calibrate.stream", noted)
    plan = Plan(fars=(0.1,), ks=(1,), seeds=2, quota=3, threads=1)
    embeddings = people(40, 4, 6)
    run_panel(embeddings.vectors, roles_of(embeddings), pick_probes(("cosine",)), plan)
    assert len(names) == len(set(names)) == 4


@pytest.mark.parametrize("quota", [None, 3])
def test_accepted_impostors_are_counted_among_those_compared(quota: int | None) -> None:
    plan = Plan(quota=quota)
    scores = all_pairs(SPACE, CODES).impostor if quota is None else drawn("test 0").scores
    thresholds = [float(np.sort(scores)[-5]), 0.3, -2.0]
    accepted, impostors = impostors_accepted(pairing(), thresholds, plan, "test 0")
    assert accepted.tolist() == [5, np.count_nonzero(scores >= 0.3), len(scores)]
    assert impostors == len(scores)


def test_without_a_quota_the_tail_lists_the_highest_of_all_pairs() -> None:
    everything = np.sort(all_pairs(SPACE, CODES).impostor)[::-1]
    tail = drawn(plan=Plan())
    assert tail.scores.tolist() == everything[:10].tolist()
    assert tail.impostors == len(everything)


def test_pairs_are_screened_on_the_plans_device() -> None:
    elsewhere = Plan(device="abacus")
    with refused("pairs", None, "'abacus'"):
        impostor_tail(pairing(), 10, elsewhere, "calibrate 0")
    with refused("pairs", None, "'abacus'"):
        impostors_accepted(pairing(), [0.3], elsewhere, "test 0")
