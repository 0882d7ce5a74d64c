"""If these fail, lda and plda see other directions on vectors of another scale, or where nothing varies."""

import numpy as np
import pytest

from tests.probe.small import gaussian_support, score_matrix, support_of
from unface.moments import class_moments
from unface.probe import PROBES
from unface.probe.fisher import SHRINKAGES, Fisher
from unface.probe.lda import Lda
from unface.probe.plda import Plda
from unface.probe.ports import Support
from unface.probe.ridge import Ridge
from unface.seeds import stream


def test_directions_whiten_the_shrunk_within_class_covariance_and_part_the_means() -> None:
    support = gaussian_support(20, 4, 6)
    moments = class_moments(support.vectors, support.identities)
    within = moments.within_covariance()
    for shrinkage in (0.0, *SHRINKAGES):
        basis = support.fisher.basis(shrinkage)
        shrunk = (1 - shrinkage) * within + shrinkage * np.trace(within) / 6 * np.eye(6)
        assert basis.directions.T @ shrunk @ basis.directions == pytest.approx(np.eye(6), abs=1e-9)
        spread = basis.directions.T @ np.cov(moments.means.T) @ basis.directions
        assert spread == pytest.approx(np.diag(basis.spread), abs=1e-8)
        assert (np.diff(basis.spread) < 0).all()
        centred = support.vectors.astype(np.float64) - basis.mean
        assert basis.apply(support.vectors) == pytest.approx(centred @ basis.directions, abs=1e-4)
        assert basis.apply(support.vectors).dtype == np.float32


def test_the_centre_is_the_mean_of_identities_not_of_pictures() -> None:
    vectors = np.array([[0.0, 0], [0, 1], [0, 2], [6, 0], [6, 4]], np.float32)
    moments = class_moments(vectors, np.array([0, 0, 0, 1, 1]))
    assert Fisher(moments, np.eye(2)).basis(0.5).mean == pytest.approx([3.0, 1.5])


def test_a_basis_is_made_once_for_each_shrinkage() -> None:
    fisher = gaussian_support(10, 3, 4).fisher
    assert fisher.basis(0.2) is fisher.basis(0.2)
    assert fisher.basis(0.2) is not fisher.basis(0.5)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20], ids=["small", "large"])
@pytest.mark.parametrize("name", ["lda", "plda"])
@pytest.mark.parametrize("spread", [0.0, 1.0], ids=["alike", "varied"])
def test_the_scale_of_vectors_does_not_matter(name: str, scale: float, spread: float) -> None:
    """Also where pictures of one identity do not vary at all, and a trace of energy stands in for their variance."""
    rng = stream(0, "scales")
    means, queries = np.repeat(rng.normal(size=(12, 5)), 3, axis=0), rng.normal(size=(9, 5))
    vectors = means + spread * rng.normal(size=means.shape)
    probe, scores = PROBES[name], []
    for factor in (1.0, scale):
        scorer = probe.fit(support_of(factor * vectors, 12, 3))
        found = score_matrix(scorer.space({"shrinkage": 0.2, "keep": 1.0}, (factor * queries).astype(np.float32)))
        scores.append(found / np.abs(found).max())
    assert np.isfinite(scores[0]).all()
    assert scores[1] == pytest.approx(scores[0], abs=2e-4)


def test_half_of_one_direction_is_that_direction() -> None:
    """Two identities differ along one direction alone; lda keeps it whatever share it is to keep."""
    support = gaussian_support(2, 5, 4)
    queries = stream(1, "one").normal(size=(6, 4)).astype(np.float32)
    assert len(support.fisher.basis(0.2).spread) == 1
    whole, half = (
        score_matrix(PROBES["lda"].fit(support).space({"shrinkage": 0.2, "keep": keep}, queries)) for keep in (1.0, 0.4)
    )
    assert np.array_equal(whole, half)
    assert set(np.abs(whole).ravel().tolist()) == {1.0}


@pytest.mark.parametrize("k", [1, 3])
def test_few_pictures_of_many_dimensions_are_learned_from_along_their_span_alone(k: int) -> None:
    """Six people in forty dimensions: scores of strangers are those of the decomposition of all forty."""
    few, strangers = gaussian_support(6, k, 40), gaussian_support(4, 2, 40, seed=1).vectors
    assert few.span.shape == (40, 6 * k)
    everywhere = Support(few.vectors, few.identities, k, 0)
    everywhere.__dict__["span"] = np.eye(40)
    everywhere.__dict__["moments"] = class_moments(few.vectors, few.identities)
    for probe in (Ridge(), Lda(), Plda()):
        for setting in probe.settings:
            found, expected = (score_matrix(probe.fit(one).space(setting, strangers)) for one in (few, everywhere))
            assert found == pytest.approx(expected, rel=1e-3, abs=1e-4 * float(np.abs(expected).max()))
