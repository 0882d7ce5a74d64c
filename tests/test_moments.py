"""If these fail, every closed-form probe and eraser is fitted on the wrong scatter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.moments import class_moments
from unface.seeds import stream

Vectors = NDArray[np.float64]
Codes = NDArray[np.int64]


def people(seed: int, identities: int, dim: int, offset: float = 0.0) -> tuple[Vectors, Codes]:
    """Unequal numbers of images, two at least, rows in no order, far from the origin if asked."""
    rng = stream(seed, "moments")
    codes = np.repeat(np.arange(identities), rng.integers(2, 6, size=identities))
    codes = rng.permutation(codes)
    means = rng.normal(size=(identities, dim)) * 3
    return means[codes] + rng.normal(size=(len(codes), dim)) + offset, codes


seeded = given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 6))


@settings(max_examples=60)
@seeded
def test_within_covariance_is_that_of_each_class_pooled_by_its_degrees_of_freedom(s: int, m: int, d: int) -> None:
    vectors, codes = people(s, m, d)
    classes = [vectors[codes == code] for code in range(m)]
    pooled = sum((len(x) - 1) * np.atleast_2d(np.cov(x.T)) for x in classes) / (len(codes) - m)
    assert class_moments(vectors, codes).within_covariance() == pytest.approx(pooled, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@seeded
def test_total_covariance_is_numpys(s: int, m: int, d: int) -> None:
    vectors, codes = people(s, m, d)
    expected = np.atleast_2d(np.cov(vectors.T))
    assert class_moments(vectors, codes).total_covariance() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@seeded
def test_counts_means_and_scatter_are_those_of_the_rows_whatever_their_order(s: int, m: int, d: int) -> None:
    vectors, codes = people(s, m, d)
    found = class_moments(vectors, codes)
    assert found.counts.tolist() == [np.count_nonzero(codes == code) for code in range(m)]
    expected = np.array([vectors[codes == code].mean(axis=0) for code in range(m)])
    assert found.means == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.scatter == pytest.approx(vectors.T @ vectors, rel=1e-12)
    order = stream(s, "order").permutation(len(codes))
    again = class_moments(vectors[order], codes[order])
    assert again.within_covariance() == pytest.approx(found.within_covariance(), rel=1e-9, abs=1e-9)


def test_covariances_are_exactly_symmetric() -> None:
    vectors, codes = people(3, 8, 5)
    found = class_moments(vectors, codes)
    for covariance in (found.within_covariance(), found.total_covariance()):
        assert np.array_equal(covariance, covariance.T)


def test_float32_vectors_are_summed_in_float64() -> None:
    """Sums of 4,000 float32 values near 100 would lose the fourth digit of a variance of 1."""
    rng = stream(0, "float64")
    codes = np.arange(4000) % 10
    vectors = (100 + rng.normal(size=(4000, 3))).astype(np.float32)
    exact = vectors.astype(np.float64)
    pooled = sum(np.cov(exact[codes == code].T) for code in range(10)) / 10
    assert class_moments(vectors, codes).within_covariance() == pytest.approx(pooled, rel=1e-7, abs=1e-7)
