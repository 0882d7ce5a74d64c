"""The trait privacy score (paper 003) as published, and the controls that say what it measures.

For each sample and trait: the mean of the k smallest ℓ_p distances to the training set, *itself* left out; a Bayesian
Gaussian mixture of one or two components, by evidence, over the training samples' means; score = log density; γ among
50 values by accuracy on validation. The paper does not say k or p: here 3 and 2.

A member keeps the other pictures of its own person as neighbours, a synthetic face has none. The controls show it:
fresh people, never trained on, who are scored beside their own other pictures as members are, and members whose own
person is left out.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.result.release import PaperResult
from unface.seeds import stream

K, P = 3, 2.0
GAMMAS = 50
FUSION = "fusion"
_MOST_COMPONENTS = 2
_BLOCK = 1 << 24  # distances held at a time


@dataclass(frozen=True, eq=False)
class PaperSet:
    """Unit vectors (n, d) of one trait and the person of each: training and synthetic, and a holdout for the controls.

    Rows of the same set are the same pictures in every trait.
    """

    training: NDArray[np.float32]
    synthetic: NDArray[np.float32]
    holdout: NDArray[np.float32]


def paper_score(
    traits: Mapping[str, PaperSet],
    people: NDArray[np.int64],
    holdout_people: NDArray[np.int64],
    *,
    k: int = K,
    p: float = P,
    seed: int = 0,
) -> list[PaperResult]:
    """Each trait, then their fusion if there are several."""
    designs = {name: _design(name, given, people, holdout_people, k, p) for name, given in traits.items()}
    if len(designs) > 1:
        several = list(designs.values())
        designs[FUSION] = {part: np.hstack([one[part] for one in several]) for part in several[0]}
    return [_scored(name, design, seed) for name, design in designs.items()]


def nearest_mean(
    queries: NDArray[np.float32],
    reference: NDArray[np.float32],
    k: int,
    p: float = P,
    *,
    excluded: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> NDArray[np.float64]:
    """(n,) mean of the k smallest ℓ_p distances (eq. 3b); references with a query's own number are left out."""
    from scipy.spatial.distance import cdist

    found = np.empty(len(queries))
    step = max(_BLOCK // len(reference), 1)
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        if p == 2:  # |a − b|² = |a|² + |b|² − 2ab, many times faster
            a, b = queries[part].astype(np.float64), reference.astype(np.float64)
            squared = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T
            distances = np.sqrt(np.maximum(squared, 0))
        else:
            distances = cdist(queries[part], reference, "minkowski", p=p)
        if excluded is not None:
            distances[excluded[0][part][:, None] == excluded[1]] = np.inf
        nearest = np.partition(distances, k - 1, axis=1)[:, :k]
        if not np.isfinite(nearest).all():
            least = int(np.isfinite(distances).sum(axis=1).min())
            raise UnfaceError(f"a picture has {least} neighbours in its set, {k} are needed; give more pictures")
        found[part] = nearest.mean(axis=1)
    return found


def _design(
    trait: str,
    given: PaperSet,
    people: NDArray[np.int64],
    holdout_people: NDArray[np.int64],
    k: int,
    p: float,
) -> dict[str, NDArray[np.float64]]:
    """(n, 1) for each kind of sample."""
    training, holdout = given.training, given.holdout
    if len(training) <= k:
        raise UnfaceError(f"{trait}: {len(training)} training pictures, more than {k} are needed; give more pictures")
    rows = np.arange(len(training))
    found = {
        "members": nearest_mean(training, training, k, p, excluded=(rows, rows)),
        "without person": nearest_mean(training, training, k, p, excluded=(people, people)),
        "synthetic": nearest_mean(given.synthetic, training, k, p),
    }
    # As many people as training has, so that strangers are as near to them as to members.
    same = np.flatnonzero(holdout_people <= people.max())
    own = np.arange(len(same))
    found["fresh"] = nearest_mean(holdout[same], holdout[same], k, p, excluded=(own, own))
    return {part: values[:, None] for part, values in found.items()}


def _scored(trait: str, design: Mapping[str, NDArray[np.float64]], seed: int) -> PaperResult:
    from sklearn.metrics import average_precision_score, roc_auc_score

    thirds = {part: _thirds(len(rows), seed, part) for part, rows in design.items()}
    thirds["without person"] = thirds["members"]  # the same pictures
    mixture = _mixture(design["members"][thirds["members"][0]], seed)

    def scores(part: str, third: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = mixture.score_samples(design[part][thirds[part][third]])
        return values

    def precision(positive: str) -> float:
        ours, others = scores(positive, 2), scores("synthetic", 2)
        return float(average_precision_score(*_labelled(ours, others)))

    gamma = best_gamma(scores("members", 1), scores("synthetic", 1))
    ours, others = scores("members", 2), scores("synthetic", 2)
    return PaperResult(
        trait=trait,
        components=int(mixture.n_components),
        average_precision=precision("members"),
        accuracy=float(((ours > gamma).mean() + (others <= gamma).mean()) / 2),
        flagged=float((others > gamma).mean()),
        fresh=precision("fresh"),
        fresh_auc=float(roc_auc_score(*_labelled(ours, scores("fresh", 2)))),
        person_left_out=precision("without person"),
    )


def best_gamma(members: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    """Of 50 values from the lowest to the highest score, the first of the best mean accuracy of both classes.

    A score above γ says "in the training set". (The paper's sentence below its eq. 6 says "private": a slip.)
    """
    both = np.concatenate([members, synthetic])
    gammas = np.linspace(both.min(), both.max(), GAMMAS)
    accuracy = [((members > gamma).mean() + (synthetic <= gamma).mean()) / 2 for gamma in gammas]
    return float(gammas[int(np.argmax(accuracy))])


def _mixture(rows: NDArray[np.float64], seed: int):  # type: ignore[no-untyped-def]  # scikit-learn has no types
    """One or two components: the one with the higher evidence (its lower bound)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    state = int(stream(seed, "release", "mixture").integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # two components on one hump: either will do
        fits = [
            BayesianGaussianMixture(n_components=components, random_state=state, max_iter=500).fit(rows)
            for components in range(1, _MOST_COMPONENTS + 1)
        ]
    return max(fits, key=lambda fit: fit.lower_bound_)


def _thirds(count: int, seed: int, part: str) -> list[NDArray[np.int64]]:
    """Rows for the mixture, for γ, and for the result."""
    if count < 9:
        raise UnfaceError(f"the paper's score needs at least 9 pictures of each set; {part}: {count}")
    return np.array_split(stream(seed, "release", "thirds", part).permutation(count), 3)


def _labelled(
    positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.repeat([1, 0], [len(positive), len(negative)]), np.concatenate([positive, negative])
