"""Fitting the lda probe against scikit-learn's LinearDiscriminantAnalysis, on one thread each."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.ratios import Ratio, cpu_seconds
from unface.data import make_identities
from unface.probe import Support
from unface.probe.lda import Lda
from unface.threads import one_blas_thread

IDENTITIES, IMAGES, DIM = 5_000, 8, 512
SHRINKAGE = 0.2


def run() -> list[Ratio]:
    """40,000 × 512 of 5,000 identities, to the directions in falling order of spread."""
    people = make_identities(IDENTITIES, IMAGES, DIM, rank=64, between=0.6, seed=1).unit()
    exact = people.vectors.astype(np.float64)
    shrunk = LinearDiscriminantAnalysis(solver="eigen", shrinkage=SHRINKAGE)
    plain = LinearDiscriminantAnalysis(solver="svd")
    with one_blas_thread():
        ours = cpu_seconds(lambda: fit(people.vectors, people.identities), 5)
        theirs = cpu_seconds(lambda: shrunk.fit(people.vectors, people.identities))
        double, single = (cpu_seconds(partial(plain.fit, x, people.identities), 2) for x in (exact, people.vectors))
    detail = (
        f"{theirs:.1f} against {ours:.2f} s; its svd, which cannot shrink: "
        f"{double:.1f} s in float64, as ours works, {single:.1f} s in float32"
    )
    name = "scikit-learn's LDA (eigen, shrunk as ours) / our lda fit, 40,000 × 512, 5,000 identities, CPU"
    return [Ratio(name, theirs / ours, 10, True, detail, {"svd_times_ours": double / ours})]


def fit(vectors: NDArray[np.float32], identities: NDArray[np.int64]) -> None:
    """Moments anew each time, and the directions, which are otherwise made when first asked for."""
    Lda().fit(Support(vectors, identities, IMAGES, 0)).fisher.basis(SHRINKAGE)
