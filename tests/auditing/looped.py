"""A small loop with a known answer: people who differ in three directions alone, and an eraser of rank three."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import ArrayLike
from unface.auditing.schema import SpaceResult

from unface import UnfaceError, audit, make_identities
from unface.auditing import AuditResult, Point
from unface.data import EmbeddingSet, Space
from unface.erase import Projection

RANK, DIM = 3, 16
PEOPLE = make_identities(120, 6, DIM, rank=RANK, between=3.0, seed=3)
QUICK: dict[str, object] = {"erasers": ("isp",), "rank": RANK, "fars": (0.01,), "ks": (2,)}
QUICK |= {"probes": ("cosine", "lda"), "seeds": 1, "bootstraps": 100, "sweep": False, "maps": False, "threads": 1}


def quick(embeddings: EmbeddingSet = PEOPLE, **options: object) -> AuditResult:
    return audit(embeddings, **(QUICK | options))  # type: ignore[arg-type]


@cache
def looped() -> AuditResult:
    return quick()


def refusal(embeddings: EmbeddingSet = PEOPLE, **options: object) -> str:
    with pytest.raises(UnfaceError) as caught:
        quick(embeddings, **options)
    told = str(caught.value)
    assert "\n" not in told
    return told


def space(result: AuditResult, name: str) -> SpaceResult:
    found = result.space(name)
    assert found is not None
    return found


def worst(found: SpaceResult) -> Point:
    """The one worst case of a quick audit."""
    (point,) = (point for point in found.points if point.worst)
    return point


def tar(found: SpaceResult) -> float:
    estimate = worst(found).tar
    assert estimate is not None
    return estimate.value


def named(embeddings: EmbeddingSet) -> list[str]:
    """The identity of each row in words."""
    return [embeddings.names[code] for code in embeddings.identities]


def renamed(embeddings: EmbeddingSet, mark: str, **options: object) -> EmbeddingSet:
    """The same vectors, of people by other names."""
    people = [f"{mark}{name}" for name in named(embeddings)]
    return EmbeddingSet.from_arrays(embeddings.vectors, people, source=f"{mark}.npz", **options)  # type: ignore[arg-type]


def axes(*which: int, dim: int = DIM) -> Projection:
    """Removes these axes and nothing else."""
    directions: ArrayLike = np.eye(dim)[:, list(which)]
    unknown = Space(encoder=None, weights_sha256=None, dim=dim, normalised=True)
    return Projection("axes", np.ascontiguousarray(directions), np.ones(len(which)), unknown)
