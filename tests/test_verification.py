"""If this fails, ``unface.verify`` does not say what comparing every pair would, or says it badly when it cannot."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import chi2

from tests.pairs.crowd import KINDS, Crowd, crowds, everything, make_crowd
from tests.refusals.table import refused
from unface import Verification, make_identities, tar_at_far, verification, verify
from unface.metrics import eer

RATES = (0.0, 1e-3, 0.01, 0.07, 0.3, 0.5, 0.99, 1.0)
PATCHED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def with_mated(crowd: Crowd) -> Crowd:
    """A crowd with at least one mated pair: its first image comes twice."""
    return Crowd(
        np.vstack([crowd.vectors, crowd.vectors[:1]]), np.append(crowd.identities, crowd.identities[0]), crowd.score
    )


@pytest.mark.parametrize("listed", [4_000_000, 20, 1])
@given(crowd=crowds().map(with_mated))
@PATCHED
def test_every_rate_is_that_of_the_full_matrix(listed: int, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_LISTED_AT_MOST", listed)
    truth = everything(crowd)
    found = verify(crowd.vectors, crowd.identities, far=RATES, score=crowd.score)
    assert dict(found.at) == {far: tar_at_far(truth.mated, truth.impostor, far) for far in RATES}
    assert found.identities == len(set(crowd.identities.tolist()))


@given(crowds().map(with_mated))
def test_the_equal_error_rate_is_that_of_the_full_matrix(crowd: Crowd) -> None:
    truth = everything(crowd)
    found = verify(crowd.vectors, crowd.identities, score=crowd.score).eer
    assert found == pytest.approx(eer(truth.mated, truth.impostor), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("score", ["cosine", "l2"])
def test_a_larger_crowd_agrees_too_with_any_number_of_threads(
    kind: str, score: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = make_crowd(11, kind, 400, score)
    truth = everything(crowd)
    expected = {far: tar_at_far(truth.mated, truth.impostor, far) for far in RATES}
    for threads, listed in ((1, 4_000_000), (2, 4_000_000), (3, 1000)):
        monkeypatch.setattr(verification, "_LISTED_AT_MOST", listed)
        found = verify(crowd.vectors, crowd.identities, far=RATES, score=score, threads=threads)
        assert dict(found.at) == expected
        assert found.eer == pytest.approx(eer(truth.mated, truth.impostor), abs=1e-12)


def test_an_equal_error_where_only_impostors_lie_beyond_the_crossing() -> None:
    # mated at 0 and 0, impostors at 1, 0, 0, 1: accepting from 1 on mistakes half the impostors and both mated pairs
    assert verify([[1, 0], [0, 1], [1, 0], [0, 1]], ["a", "a", "b", "b"]).eer == 0.75


@given(crowds().map(with_mated), st.integers(0, 2**32))
def test_the_order_of_the_images_does_not_matter(crowd: Crowd, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(crowd.vectors))
    plain = verify(crowd.vectors, crowd.identities, far=RATES, score=crowd.score)
    shuffled = verify(crowd.vectors[order], crowd.identities[order], far=RATES, score=crowd.score)
    assert plain.at == shuffled.at


@given(crowds().map(with_mated))
def test_the_names_of_the_identities_do_not_matter(crowd: Crowd) -> None:
    names = [f"person {code}" for code in crowd.identities]
    named = verify(crowd.vectors, names, far=RATES, score=crowd.score)
    assert named.at == verify(crowd.vectors, crowd.identities, far=RATES, score=crowd.score).at


@pytest.mark.parametrize("score", ["cosine", "l2"])
@pytest.mark.parametrize("power", [-40, -12, 12, 40])
def test_the_unit_of_the_vectors_does_not_matter(score: str, power: int) -> None:
    crowd = with_mated(make_crowd(4, "continuous", 200, score))
    plain = verify(crowd.vectors, crowd.identities, far=RATES, score=score)
    scaled = verify(crowd.vectors * np.float32(2.0**power), crowd.identities, far=RATES, score=score)
    assert [found.value for found in scaled.at.values()] == [found.value for found in plain.at.values()]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint8])
def test_vectors_of_any_numeric_kind_are_read(dtype: type) -> None:
    vectors = np.random.default_rng(0).integers(1, 5, size=(30, 6))
    people = np.arange(30) // 3
    assert verify(vectors.astype(dtype), people, far=RATES).at == verify(vectors.astype(np.float32), people, RATES).at


def test_no_rate_asked_for_leaves_the_equal_error_rate() -> None:
    found = verify([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"], far=())
    assert dict(found.at) == {}
    assert found.eer == 0.25  # accepting the mated pair accepts one of two impostors, who are as alike


def test_a_case_worked_by_hand() -> None:
    # mated: (1, 0)·(1, 0) = 1 and (0, 1)·(−1, 0) = 0; impostors: 0, −1, 0, −1
    found = verify([[1, 0], [2, 0], [0, 3], [-1, 0]], ["a", "a", "b", "b"], far=(0.25, 0.5, 1.0))
    assert [(at.accepted, at.false_accepts) for at in found.at.values()] == [(1, 0), (2, 2), (2, 4)]
    assert (found.identities, found.at[0.5].mated, found.at[0.5].impostors) == (2, 2, 4)


def test_memory_grows_with_the_vectors_not_with_the_pairs() -> None:
    script = """
import tracemalloc
import numpy as np
from unface import verify
rng = np.random.default_rng(0)
for n in (100, 6000, 12000):
    vectors = rng.normal(size=(n, 64)).astype(np.float32)
    tracemalloc.start()
    verify(vectors, np.arange(n) // 3, threads=2)
    print(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120)
    _, small, large = map(int, run.stdout.split())
    assert small < 6000**2 * 4 / 4
    assert large < 12000**2 * 4 / 10
    assert large < 2.5 * small


GOOD = np.eye(4) + 1
PEOPLE = ["a", "a", "b", "b"]


def test_a_zero_vector_has_a_distance_though_no_direction() -> None:
    found = verify([[0, 0], [0, 0], [1, 1], [1, 1]], PEOPLE, far=(0.0,), score="l2")
    assert found.at[0.0].value == 1.0


def test_ragged_vectors_and_mixed_identities_are_refused_in_a_sentence() -> None:
    with refused("vectors", None, "every"):
        verify([[1.0, 2.0], [1.0]], ["a", "a"])
    with refused("vectors", None, "kinds"):
        verify(GOOD, np.array([None, "a", "b", "b"], dtype=object))


@pytest.mark.parametrize("scale", [1e-20, 1e19])
def test_distances_beyond_float32_are_refused(scale: float) -> None:
    with refused("pairs", None, "leave float32"):
        verify(np.array(GOOD) * scale, PEOPLE, score="l2")


def test_one_rate_may_be_given_bare() -> None:
    assert verify(GOOD, PEOPLE, far=0.1).at[0.1] == verify(GOOD, PEOPLE, far=(0.1,)).at[0.1]


def test_results_cannot_be_changed_afterwards() -> None:
    found = verify(GOOD, PEOPLE)
    with pytest.raises(TypeError):
        found.at[0.1] = found.at[1e-4]  # type: ignore[index]


def gaussian(seed: int, far: float) -> tuple[Verification, float, float]:
    """People whose squared distances follow the χ² law, and the true rate at ``far`` and equal error rate."""
    dim, between = 16, 1.0
    people = make_identities(60, 4, dim, between=between, seed=seed)
    found = verify(people.vectors, people.identities, far=far, score="l2", threads=1)
    tar = chi2.cdf((1 + between**2) * chi2.ppf(far, dim), dim)
    equal = brentq(lambda rate: 1 - chi2.cdf((1 + between**2) * chi2.ppf(rate, dim), dim) - rate, 1e-9, 0.5)
    return found, float(tar), float(equal)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """Forty draws: 95 % of them fail 6 times or more in one test of 70; an interval over pairs fails in half."""
    missed = np.zeros(2, int)
    for seed in range(40):
        found, tar, equal = gaussian(seed, 0.05)
        interval = found.interval(0.05)
        assert interval is not None
        assert interval.low <= found.at[0.05].value <= interval.high
        assert found.eer_interval.low <= found.eer <= found.eer_interval.high
        missed += [
            not interval.low <= tar <= interval.high,
            not found.eer_interval.low <= equal <= found.eer_interval.high,
        ]
    assert (missed <= 6).all(), missed


def test_a_rate_that_fewer_than_three_accepts_set_has_no_interval() -> None:
    found, _, _ = gaussian(0, 1e-6)
    assert found.interval(1e-6) is None


def test_where_nothing_or_all_is_accepted_the_number_of_people_bounds_the_rate() -> None:
    apart = np.repeat(np.eye(12, dtype=np.float32), 2, axis=0)
    found = verify(apart, np.repeat(np.arange(12), 2), far=0.5)
    interval = found.interval(0.5)
    assert interval is not None
    assert [interval.low, interval.high] == pytest.approx([0.05 ** (1 / 12), 1.0])
    assert found.eer_interval.high == pytest.approx(1 - 0.05 ** (1 / 12))
