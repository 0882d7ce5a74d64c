"""Which training people a synthetic set exposes: conformal p-values against holdout people, Benjamini–Hochberg.

A training person's p-value is the rank of their nearest synthetic similarity among those of the holdout people. The
p-values share one holdout and are therefore dependent, but positively (PRDS; Bates et al. 2023, Testing for outliers
with conformal p-values), for which Benjamini–Hochberg keeps the false-discovery rate.

More pictures give a higher maximum. So a person with c pictures is ranked among holdout people who have at least c,
each with c pictures drawn at random; above the holdout's median number, c is that median.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.release.draws import compared_pictures, picture_order

FDR = 0.05
_FEWEST_NEAREST = 10


@dataclass(frozen=True, eq=False)
class PersonScores:
    """The best similarity over each person's first 1, 2, … pictures in a random order, (people, most pictures).

    A person with fewer pictures repeats the last value; ``pictures`` says how many there are.
    """

    best: NDArray[np.float32]
    pictures: NDArray[np.int64]

    def capped(self, pictures: int) -> NDArray[np.float32]:
        """Over this many pictures, or over all where a person has fewer."""
        found: NDArray[np.float32] = self.best[:, min(pictures, self.best.shape[1]) - 1]
        return found

    def of(self, pictures: int) -> NDArray[np.float32]:
        """Over this many pictures, of the people who have as many; nobody may."""
        found: NDArray[np.float32] = self.best[self.pictures >= pictures, min(pictures, self.best.shape[1]) - 1]
        return found


def person_scores(
    scores: NDArray[np.float32],
    people: NDArray[np.int64],
    count: int,
    *,
    seed: int,
    side: str,
    most: int | None = None,
    draw: int = 0,
) -> PersonScores:
    """From the best synthetic similarity of each picture; their order depends on seed, side and draw alone."""
    order = picture_order(people, seed, side, draw)
    pictures = np.bincount(people, minlength=count)
    if (pictures == 0).any():
        raise UnfaceError(f"{side}: person {int(np.argmin(pictures))} has no picture; number people without gaps")
    width = int(pictures.max()) if most is None else min(most, int(pictures.max()))
    first = np.cumsum(pictures) - pictures
    place = first[:, None] + np.minimum(np.arange(width), pictures[:, None] - 1)
    return PersonScores(np.maximum.accumulate(scores[order[place]], axis=1), pictures)


@dataclass(frozen=True, eq=False)
class Exposure:
    """A p-value for each training person, and who is listed."""

    scores: NDArray[np.float64]
    """(training,) what was ranked: a similarity above what is usual, or for several traits Σ log² p."""
    p: NDArray[np.float64]
    listed: NDArray[np.bool_]
    cut: float
    """The largest p-value that is listed; 0 where nobody is."""
    least: int
    """How many people must be nearer than the whole holdout before anybody can be listed."""
    pictures: int
    """At most so many pictures of a person are compared."""

    @property
    def people(self) -> int:
        """How many are listed."""
        return int(np.count_nonzero(self.listed))


def exposed(training: PersonScores, holdout: PersonScores, *, fdr: float = FDR) -> Exposure:
    """One trait: the rank of each training person's similarity."""
    most = _most_pictures(holdout)
    drawn = np.minimum(training.pictures, most)
    score = training.best[np.arange(len(drawn)), np.minimum(drawn, training.best.shape[1]) - 1].astype(np.float64)
    p = np.empty(len(drawn))
    for pictures in np.unique(drawn).tolist():
        here = drawn == pictures
        others = np.sort(holdout.of(pictures).astype(np.float64))
        as_near = len(others) - np.searchsorted(others, score[here], side="left")
        p[here] = (1 + as_near) / (1 + len(others))
    return _listed(score, p, len(holdout.pictures), most, fdr)


def fused(training: Mapping[str, PersonScores], holdout: Mapping[str, PersonScores], *, fdr: float = FDR) -> Exposure:
    """Several traits at once: Σ log² p, ranked among the holdout people's.

    Squares, where Fisher has none, let one trait decide: a transplanted eye is far out in one and usual in others.

    Traits of one face depend on each other, so Fisher's χ² table does not hold. Here each training person joins the
    holdout people, all are ranked in each trait, and the rank of their statistic is the p-value: valid under any
    dependence between traits, because people are exchangeable and not traits.
    """
    traits = list(training)
    first = training[traits[0]]
    most = _most_pictures(holdout[traits[0]])
    drawn = np.minimum(first.pictures, most)
    p, statistic = np.empty(len(drawn)), np.empty(len(drawn))
    for pictures in np.unique(drawn).tolist():
        here = np.flatnonzero(drawn == pictures)
        others = [holdout[trait].of(pictures).astype(np.float64) for trait in traits]
        n = len(others[0])
        # Rank from above among the holdout people, ties counted: 1 for the nearest.
        ranks = [n - np.searchsorted(np.sort(other), other, side="left") for other in others]
        for person in here.tolist():
            joint, own = np.zeros(n), 0.0
            for trait, other, rank in zip(traits, others, ranks, strict=True):
                score = float(training[trait].best[person, min(pictures, training[trait].best.shape[1]) - 1])
                # The person in question pushes everybody who is not nearer down by one.
                joint += np.log((rank + (score >= other)) / (n + 1)) ** 2
                own += math.log((1 + int(np.count_nonzero(other >= score))) / (n + 1)) ** 2
            statistic[person] = own
            p[person] = (1 + int(np.count_nonzero(joint >= own * (1 - 1e-12)))) / (n + 1)
    return _listed(statistic, p, len(holdout[traits[0]].pictures), most, fdr)


def benjamini_hochberg(p: NDArray[np.float64], fdr: float = FDR) -> NDArray[np.bool_]:
    """Who is listed: the k smallest, for the largest k with p(k) ≤ fdr · k / m."""
    order = np.argsort(p, kind="stable")
    allowed = fdr * np.arange(1, len(p) + 1) / len(p)
    below = np.flatnonzero(p[order] <= allowed * (1 + 1e-12))
    listed = np.zeros(len(p), bool)
    if len(below):
        listed[order[: below[-1] + 1]] = True
    return listed


def _most_pictures(holdout: PersonScores) -> int:
    return max(1, int(np.median(holdout.pictures)))


def _listed(score: NDArray[np.float64], p: NDArray[np.float64], holdout: int, most: int, fdr: float) -> Exposure:
    listed = benjamini_hochberg(p, fdr)
    least = math.ceil(len(p) / (fdr * (holdout + 1)) * (1 - 1e-12))
    return Exposure(score, p, listed, float(p[listed].max(initial=0.0)), least, most)


@dataclass(frozen=True)
class Enrichment:
    """How many of the people nearest to synthetic faces are training people, beside what chance gives."""

    nearest: int
    """People with the highest scores, of both sides."""
    training: int
    expected: float
    p: float
    """Exact, one-sided: labels that mean nothing make it hypergeometric."""


def enrichment(training: PersonScores, holdout: PersonScores) -> Enrichment:
    """Of the nearest 2 % of all people, at least ten: how many are training people?

    The list needs many exposed people before it can name one. This asks about all of them at once, and so sees one
    copied trait in few people. Only people who have as many pictures as are compared take part, over as many.
    """
    from scipy.stats import hypergeom

    most = compared_pictures(training.pictures, holdout.pictures)
    ours, others = (side.of(most) for side in (training, holdout))
    pool = np.concatenate([ours, others])
    cut = np.sort(pool)[-min(max(_FEWEST_NEAREST, len(pool) // 50), len(pool))]
    nearest, inside = int(np.count_nonzero(pool >= cut)), int(np.count_nonzero(ours >= cut))
    p = float(hypergeom.sf(inside - 1, len(pool), len(ours), nearest))
    return Enrichment(nearest, inside, nearest * len(ours) / len(pool), p)


@dataclass(frozen=True, eq=False)
class Separation:
    """How well the nearest synthetic similarity tells training people from holdout people."""

    auc: float
    average_precision: float
    """mAP of the literature; what a coin reaches is the share of training people, so it depends on the class ratio."""
    auc_replicates: NDArray[np.float64]
    tpr: NDArray[np.bool_] | None
    """(training people compared,) who is above the holdout's threshold at the false-positive rate; None: unresolved."""


def separation(
    training: PersonScores, holdout: PersonScores, weights: tuple[NDArray[np.float64], NDArray[np.float64]], fpr: float
) -> Separation:
    """One score a person, of people who have as many pictures as are compared, over as many.

    ``weights`` are bootstrap weights of these training and of these holdout people, (replicates, people) each.
    """
    from sklearn.metrics import average_precision_score

    from unface.metrics import allowed_accepts, resolution, threshold_allowing
    from unface.metrics.rates import Resolution

    most = compared_pictures(training.pictures, holdout.pictures)
    ours, others = (side.of(most) for side in (training, holdout))
    pooled = np.concatenate([ours, others])
    labels = np.concatenate([np.ones(len(ours)), np.zeros(len(others))])
    order = np.argsort(others, kind="stable")
    below, upto = (np.searchsorted(others[order], ours, side=side) for side in ("left", "right"))
    inside = np.concatenate([np.zeros((len(weights[1]), 1)), np.cumsum(weights[1][:, order], axis=1)], axis=1)
    beaten = (inside[:, below] + inside[:, upto]) / 2
    replicates = np.einsum("bt,bt->b", weights[0], beaten) / (weights[0].sum(axis=1) * weights[1].sum(axis=1))
    resolved = resolution(fpr, len(others)) is not Resolution.REFUSED
    threshold = threshold_allowing(others, allowed_accepts(fpr, len(others)))
    return Separation(
        auc=float((below + upto).mean() / 2 / len(others)),
        average_precision=float(average_precision_score(labels, pooled)),
        auc_replicates=replicates,
        tpr=ours >= threshold if resolved else None,
    )
