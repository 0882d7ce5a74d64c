"""If this fails, accepts are counted over the wrong mated pairs, or their scores differ from the impostors' kind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.pairs.crowd import Crowd, crowds, everything
from unface.pairs import Mated, all_mated, cosine_space, mated_pairs, pair_up
from unface.pairs import mated as mated_module


def assert_is_every_mated_pair(mated: Mated, crowd: Crowd) -> None:
    truth = everything(crowd)
    assert len(mated) == len(truth.mated)
    assert {tuple(sorted(pair)) for pair in mated.rows.tolist()} == {
        (i, j) for i, j in truth.rows[truth.is_mated].tolist()
    }
    np.testing.assert_array_equal(mated.scores, truth.score_of(mated.rows))
    for side in (0, 1):
        np.testing.assert_array_equal(mated.identities, crowd.identities[mated.rows[:, side]])


@given(crowds())
def test_every_mated_pair_comes_once_with_its_score_and_identity(crowd: Crowd) -> None:
    assert_is_every_mated_pair(all_mated(crowd.pairing), crowd)


@given(crowd=crowds())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_chunks_cut_large_identities_without_losing_pairs(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mated_module, "_ROWS_AT_ONCE", 3)
    chunks = list(mated_pairs(crowd.pairing))
    assert_is_every_mated_pair(all_mated(crowd.pairing), crowd)
    largest = int(crowd.pairing.sizes.max())
    assert all(len(chunk) <= 3 * largest for chunk in chunks)


def test_a_mated_pair_scores_as_the_same_vectors_would_as_impostors() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 512)).astype(np.float32)
    space = cosine_space(np.vstack([vectors, vectors]))
    together = pair_up(space, np.repeat([0, 1], 40))
    mated = all_mated(together)
    inside = mated.rows[(mated.identities == 0)]
    as_impostors = together.space.exact(inside[:, 0], inside[:, 1] + 40)
    np.testing.assert_array_equal(mated.scores[mated.identities == 0], as_impostors)


def test_people_with_one_image_have_no_mated_pair() -> None:
    pairing = pair_up(cosine_space(np.eye(3)), np.array([4, 2, 9]))
    assert list(mated_pairs(pairing)) == []
    mated = all_mated(pairing)
    assert (len(mated), mated.identities.shape, mated.rows.shape) == (0, (0,), (0, 2))
    assert [str(part.dtype) for part in (mated.identities, mated.scores, mated.rows)] == ["int64", "float32", "int64"]
