"""Gaussian people for releases: training, holdout, and synthetic faces of nobody with some copies among them."""

from dataclasses import dataclass

import numpy as np

from unface.data import EmbeddingSet, make_identities
from unface.seeds import stream

DIM, FACES = 64, 300


@dataclass(frozen=True, eq=False)
class Sets:
    """The first ``planted`` training people each have one picture copied into the synthetic set."""

    synthetic: EmbeddingSet
    training: EmbeddingSet
    holdout: EmbeddingSet


def sets(planted: int = 0, *, people: int = 100, holdout: int = 300, seed: int = 0) -> Sets:
    real = make_identities(people + holdout, 3, DIM, within=0.6, seed=seed)
    inside = real.identities < people
    training = real.take(inside)
    rng = stream(seed, "made release")
    fresh = rng.standard_normal((FACES - planted, DIM)) * 1.2
    copies = training.vectors[: 3 * planted : 3] + 0.1 * rng.standard_normal((planted, DIM))
    ids = [f"s{number:03d}.png" for number in range(FACES)]
    vectors = np.concatenate([fresh, copies]).astype(np.float32)
    return Sets(EmbeddingSet.from_arrays(vectors, ids, ids=ids, source="synthetic"), training, real.take(~inside))
