"""If these fail, a set read in batches gives another projection than the set at once, or does not fit in memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.erase.people import matrix_of, people
from tests.refusals.table import refused
from unface.erase import INLP, ISP, LEACE, SAL, ClosedFormEraser, FairPCA, LabelFreePCA
from unface.moments import MomentStream, class_moments

ERASERS = [
    ISP(4),
    ISP(4, weighted=True),
    ISP(4, whitened=True),
    SAL(4),
    LEACE(4),
    LEACE(),
    INLP(4, per_round=2),
    FairPCA(6, unfair=4),
    LabelFreePCA(4),
]


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
@settings(max_examples=12)
@given(data=st.data())
def test_any_batches_in_any_order_equal_one_fit(eraser: ClosedFormEraser, data: st.DataObject) -> None:
    made = people(data.draw(st.sampled_from([6, 12, 40])), 5, 16, seed=data.draw(st.integers(0, 99)), unequal=True)
    whole = eraser.fit(made.vectors, made.identities).projection_
    # Where the last direction that goes and the first that stays are equally strong, either may go.
    last, first = (*whole.spectrum[whole.rank - 1 :], 0.0, 0.0)[:2]
    assume(last - first > 1e-4 * whole.spectrum[0])
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(made))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(made) - 1), max_size=6, unique=True)))
    batched = type(eraser)(**eraser.get_params())
    for rows in np.split(order, cuts):
        batched.partial_fit(made.vectors[rows], made.identities[rows])
    assert matrix_of(batched.projection_) == pytest.approx(matrix_of(whole), abs=1e-6)
    assert batched.transform(made.vectors) == pytest.approx(whole.apply(made.vectors), abs=1e-6)


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_half_of_the_batches_are_not_the_whole(eraser: ClosedFormEraser) -> None:
    made = people(40, 5, 16, unequal=True)
    half = type(eraser)(**eraser.get_params()).partial_fit(made.vectors[::2], made.identities[::2])
    before = matrix_of(half.projection_)
    after = matrix_of(half.partial_fit(made.vectors[1::2], made.identities[1::2]).projection_)
    changed = np.abs(before - after).max() > 1e-3
    assert changed or half.projection_.rank == 16


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_sums_that_were_made_elsewhere_give_the_same_projection(eraser: ClosedFormEraser) -> None:
    made, other = people(40, 5, 16, unequal=True), people(12, 5, 8)
    sums = MomentStream(16, scatter=eraser.needs_scatter())
    sums.add(made.vectors, made.identities)
    found = type(eraser)(**eraser.get_params()).fit(other.vectors, other.identities).fit_moments(sums)
    whole = eraser.fit(made.vectors, made.identities)
    assert found.projection_.sha256 == whole.projection_.sha256
    assert np.array_equal(found.transform(made.vectors), whole.transform(made.vectors))
    with refused("fit", ..., "8", "16"):
        found.transform(other.vectors)


def test_only_what_measures_variance_needs_the_scatter() -> None:
    """Nothing of size d × d is summed for the others, which is what lets them read at the speed of the disk."""
    assert [eraser for eraser in ERASERS if not eraser.needs_scatter()] == [ERASERS[0], ERASERS[1], ERASERS[3]]


@pytest.mark.parametrize("eraser", [ISP(3), ISP(3, weighted=True), SAL(3), INLP(3, per_round=3)], ids=repr)
def test_thousands_of_identities_count_all_and_not_the_last_block_of_them(eraser: ClosedFormEraser) -> None:
    """Two halves of one crowd, each in another place; either alone has other directions."""
    rng = np.random.default_rng(5)
    means = rng.standard_normal((5000, 6)) * np.where(np.arange(5000)[:, None] < 4096, [9, 6, 4, 1, 1, 1], 1)
    means[4096:, 3:] *= 3
    codes = np.repeat(np.arange(5000), rng.integers(1, 4, 5000))
    means += 10
    found = eraser.fit(means[codes], codes).projection_
    sizes = np.bincount(codes)
    power = {"isp": 0.5 if eraser.get_params().get("weighted") else 0.0}.get(eraser.kind, 1.0)
    apart = means - np.average(means, axis=0, weights=None if power == 0 else sizes)
    weighted = apart * (sizes**power)[:, None]
    if eraser.kind == "inlp":
        scatter = (apart * sizes[:, None]).T @ apart
        weighted = weighted @ np.linalg.inv(scatter + 1e-3 * np.trace(scatter) / 6 * np.eye(6))
    leading = np.linalg.svd(weighted, full_matrices=False)[2][:3].T
    assert matrix_of(found) == pytest.approx(np.eye(6) - leading @ leading.T, abs=1e-6)


def test_an_option_that_needs_the_scatter_comes_too_late_after_the_first_batch() -> None:
    made = people(12)
    eraser = ISP(4).partial_fit(made.vectors, made.identities).set_params(whitened=True)
    with refused("vectors", "moments"):
        eraser.projection_  # noqa: B018 - asking for it is the test


def test_fit_forgets_what_was_fitted_before() -> None:
    first, second = people(12, seed=0), people(12, seed=1)
    again = ISP(4).fit(first.vectors, first.identities).fit(second.vectors, second.identities)
    assert again.projection_.sha256 == ISP(4).fit(second.vectors, second.identities).projection_.sha256


@settings(max_examples=30)
@given(st.integers(0, 999), st.integers(1, 60), st.integers(1, 50))
def test_a_stream_of_moments_is_the_moments(seed: int, identities: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.concatenate([np.arange(identities), rng.integers(identities, size=90)]))
    vectors = rng.normal(size=(len(codes), 5)).astype(np.float32) + 3
    stream = MomentStream(5, scatter=True)
    for start in range(0, len(codes), batch):
        stream.add(vectors[start : start + batch], codes[start : start + batch])
    found, expected = stream.moments(), class_moments(vectors, codes)
    order = np.array([codes.tolist().index(code) for code in range(identities)]).argsort()
    assert found.counts.tolist() == expected.counts[order].tolist()
    assert found.sums == pytest.approx(expected.sums[order], rel=1e-12)
    assert found.scatter == pytest.approx(expected.scatter, rel=1e-12)
    assert stream.sums().mean() == pytest.approx(vectors.mean(axis=0, dtype=np.float64), rel=1e-9)


def test_sums_that_are_still_looked_at_stay_valid_when_more_identities_come() -> None:
    stream = MomentStream(3, scatter=False)
    stream.add(np.ones((2, 3)), np.array(["a", "b"]))
    early = stream.sums()
    stream.add(np.ones((50, 3)), np.arange(50).astype(str))
    assert early.sums.tolist() == np.ones((2, 3)).tolist()
    assert len(stream.sums().sums) == 52


@pytest.mark.parametrize("eraser", [ISP(8), ISP(8, weighted=True), SAL(8)], ids=repr)
def test_memory_is_bounded_by_the_class_sums(eraser: ClosedFormEraser) -> None:
    """10,000 identities × 64: class sums of 5 MiB; the samples would take 24 MiB, their one-hot matrix 4 GiB."""
    identities, images, dim, rows = 10_000, 10, 64, 4_000
    tracemalloc.start()
    try:
        for start in range(0, identities * images, rows):
            rng = np.random.default_rng(start)
            codes = rng.integers(identities, size=rows)
            eraser.partial_fit(rng.standard_normal((rows, dim), np.float32), codes)
        assert eraser.projection_.rank == 8
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    sums = identities * dim * 8
    batch = rows * dim * 4
    labels = identities * 150
    assert peak < 1.6 * sums + 4 * batch + labels
    assert peak > sums
