"""If this fails, the likelihood-ratio probe is not optimal where it must be, or another probe sees more than there is.

Images are z = μ + ε with μ ~ N(0, σ_b² I_d) for each identity and ε ~ N(0, σ_w² I_d). With u = (a − b)/√2 and
v = (a + b)/√2 the log-likelihood ratio is β‖v‖² − α‖u‖² up to a constant, where
α = ½(1/σ_w² − 1/(σ_b² + σ_w²)) and β = ½(1/(σ_b² + σ_w²) − 1/(2σ_b² + σ_w²)). For impostors both ‖u‖² and ‖v‖² are
(σ_b² + σ_w²) χ²_d, for mated pairs they are σ_w² χ²_d and (2σ_b² + σ_w²) χ²_d: the rates are one-dimensional integrals.
By the lemma of Neyman and Pearson no score has a higher TAR at any FAR.
"""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from unface.metrics import allowed_accepts, just_above
from unface.pairs import PairSpace, all_mated, cosine_space, highest_impostors, l2_space, open_screen, pair_up
from unface.probe import PROBES, Support
from unface.probe.plda import llr_space
from unface.seeds import stream
from unface.threads import one_blas_thread

FARS = (1e-2, 1e-3)
DRAWS, IDENTITIES, IMAGES = 20, 500, 3
# (dimension, σ_b, σ_w): 1.1 million impostor pairs in each draw
SETTINGS = [(8, 1.5, 1.0), (24, 0.6, 0.7)]
EACH = pytest.mark.parametrize("setting", SETTINGS, ids=["d=8", "d=24"])
Setting = tuple[int, float, float]

TRAIN, SHOTS = 200, 4
FEWER_DRAWS = 6
OPTIMAL = "optimal"
# The network takes as long to train as all else here together: in 24 dimensions alone.
LEARNED = {SETTINGS[0]: ("ridge", "lda", "plda"), SETTINGS[1]: ("ridge", "lda", "plda", "mlp")}


@EACH
def test_tar_of_the_true_likelihood_ratio_is_the_integral(setting: Setting) -> None:
    assert np.abs(distance_in_errors(setting, law(*setting))).max() < allowed_errors(DRAWS, 2 * len(FARS))


@EACH
def test_a_ratio_four_per_cent_off_would_be_noticed(setting: Setting) -> None:
    dim, between, within = setting
    for factor in (0.96, 1.04):
        wrong = law(dim, factor * between, within)
        assert np.abs(distance_in_errors(setting, wrong)).max() > allowed_errors(DRAWS, 2 * len(FARS))


@EACH
def test_the_law_of_plain_distances_would_be_noticed(setting: Setting) -> None:
    """The likelihood ratio also weighs how unusual a person is; −‖a − b‖² alone accepts fewer."""
    dim, between, within = setting
    chi_square = stats.chi2(dim)
    distances = chi_square.cdf((1 + (between / within) ** 2) * chi_square.ppf(np.array(FARS)))
    assert (distances < law(*setting)).all()
    assert distance_in_errors(setting, distances).min() > allowed_errors(DRAWS, 2 * len(FARS))


@pytest.mark.parametrize(
    ("setting", "probe"),
    [(setting, probe) for setting, learned in LEARNED.items() for probe in ("cosine", "l2", *learned)],
    ids=lambda value: value if isinstance(value, str) else f"d={value[0]}",
)
def test_no_probe_beats_it_beyond_noise(setting: Setting, probe: str) -> None:
    """Paired over redraws of everybody; each probe at the setting that is best for it on these very pairs."""
    gain = gains(setting, probe)
    error = gain.std(axis=0, ddof=1) / np.sqrt(FEWER_DRAWS)
    assert (gain.mean(axis=0) < allowed_errors(FEWER_DRAWS, 12 * len(FARS)) * error).all()


@EACH
def test_the_fitted_probe_comes_close_to_it(setting: Setting) -> None:
    """200 identities of 4 images each are learned from; what is lost by that is little."""
    optimal = np.array([draw[OPTIMAL] for draw in panel(setting)]).mean(axis=0)
    assert (gains(setting, "plda").mean(axis=0) > -0.1 * optimal).all()


@EACH
def test_less_noise_than_there_is_would_be_noticed(setting: Setting) -> None:
    """A probe that somehow saw pictures with a tenth less noise beats it by far more than the noise of this test."""
    gain = gains(setting, "clearer pictures")
    error = gain.std(axis=0, ddof=1) / np.sqrt(FEWER_DRAWS)
    assert (gain.mean(axis=0) > allowed_errors(FEWER_DRAWS, 12 * len(FARS)) * error).any()


def law(dim: int, between: float, within: float) -> NDArray[np.float64]:
    b, w = between**2, within**2
    alpha, beta = 0.5 * (1 / w - 1 / (b + w)), 0.5 * (1 / (b + w) - 1 / (2 * b + w))
    chi_square = stats.chi2(dim)

    def accepted(threshold: float, u: float, v: float) -> float:
        """P(v Y − u X ≥ threshold) for independent X, Y ~ χ²_d."""
        low, high = chi_square.ppf([1e-14, 1 - 1e-14])
        value, _ = integrate.quad(
            lambda x: chi_square.pdf(x) * chi_square.sf((threshold + u * x) / v), low, high, limit=400, epsabs=1e-12
        )
        return float(value)

    found = []
    for far in FARS:
        impostor = (alpha * (b + w), beta * (b + w))
        threshold = optimize.brentq(lambda t, sides=impostor, f=far: accepted(t, *sides) - f, -5 * dim, 20 * dim)
        found.append(accepted(threshold, alpha * w, beta * (2 * b + w)))
    return np.array(found)


def distance_in_errors(setting: Setting, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors between the mean over the draws and what is expected; the error is the spread between draws."""
    estimates = estimated(setting)
    return np.asarray((estimates.mean(axis=0) - expected) / (estimates.std(axis=0, ddof=1) / np.sqrt(DRAWS)))


def allowed_errors(draws: int, comparisons: int) -> float:
    """Student's quantile for one false alarm in a thousand over all comparisons."""
    return float(stats.t(draws - 1).ppf(1 - 0.001 / (2 * comparisons)))


@cache
def estimated(setting: Setting) -> NDArray[np.float64]:
    return np.array([tar(true_ratio(setting, *people(setting, draw)), identities()) for draw in range(DRAWS)])


def gains(setting: Setting, probe: str) -> NDArray[np.float64]:
    """(draws, rates): TAR of a probe less that of the true likelihood ratio on the same pairs."""
    return np.array([draw[probe] - draw[OPTIMAL] for draw in panel(setting)])


@cache
def panel(setting: Setting) -> list[dict[str, NDArray[np.float64]]]:
    with one_blas_thread():
        return [all_probes(setting, draw) for draw in range(FEWER_DRAWS)]


def all_probes(setting: Setting, draw: int) -> dict[str, NDArray[np.float64]]:
    means, noise = people(setting, draw)
    vectors = (means + noise).astype(np.float32)
    found = {
        OPTIMAL: tar(true_ratio(setting, means, noise), identities()),
        "clearer pictures": tar(true_ratio(setting, means, 0.9 * noise), identities()),
        "cosine": tar(cosine_space(vectors), identities()),
        "l2": tar(l2_space(vectors), identities()),
    }
    train_means, train_noise = people(setting, 10_000 + draw, TRAIN, SHOTS)
    support = Support((train_means + train_noise).astype(np.float32), identities(TRAIN, SHOTS), SHOTS, draw)
    for name in LEARNED[setting]:
        scorer = PROBES[name].fit(support)
        tars = [tar(scorer.space(one, vectors), identities()) for one in PROBES[name].settings]
        found[name] = np.max(tars, axis=0)
    return found


def true_ratio(setting: Setting, means: NDArray[np.float64], noise: NDArray[np.float64]) -> PairSpace:
    dim, between, within = setting
    return llr_space(((means + noise) / within).astype(np.float32), np.full(dim, (between / within) ** 2))


def tar(space: PairSpace, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    pairing = pair_up(space, codes)
    allowed = [allowed_accepts(far, pairing.impostors) for far in FARS]
    tail = highest_impostors(pairing, max(allowed) + 1, open_screen(pairing.space))
    mated = all_mated(pairing).scores
    return np.array([np.mean(mated >= just_above(tail.scores[count])) for count in allowed])


def identities(count: int = IDENTITIES, images: int = IMAGES) -> NDArray[np.int64]:
    return np.repeat(np.arange(count), images)


def people(
    setting: Setting, draw: int, count: int = IDENTITIES, images: int = IMAGES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means and the noise of each image, apart."""
    dim, between, within = setting
    rng = stream(draw, "plda law", dim)
    means = np.repeat(between * rng.normal(size=(count, dim)), images, axis=0)
    return means, within * rng.normal(size=(count * images, dim))
