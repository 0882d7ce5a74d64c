"""How well a store's own index finds the nearest vectors, beside an exact search over all of them."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from unface.seeds import stream

QUERIES, NEIGHBOURS = 100, 10

Ids = NDArray[np.int64]
Vectors = NDArray[np.float32]


def compared(vectors: Vectors, metric: str) -> Vectors:
    """Vectors whose inner products, or distances, are what an index of this metric compares."""
    if metric != "cosine":
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def index_recall(
    batches: Callable[[], Iterator[tuple[Ids, Vectors]]], rows: int, search: Callable[[Vectors, int], Ids], *, l2: bool
) -> float | None:
    """Mean share of the ten nearest of 100 stored vectors, the vector itself apart, that ``search`` finds too.

    None for too few rows. Exact neighbours are looked for batch by batch, so nothing but a batch is held.
    """
    if rows <= NEIGHBOURS + 1:
        return None
    chosen = np.sort(stream(0, "recall of an index").choice(rows, min(QUERIES, rows), replace=False))
    picked, start = [], 0
    for ids, vectors in batches():
        here = chosen[(chosen >= start) & (chosen < start + len(ids))] - start
        picked.append((ids[here], vectors[here]))
        start += len(ids)
    own, queries = np.concatenate([ids for ids, _ in picked]), np.concatenate([vectors for _, vectors in picked])
    near = np.full((len(own), NEIGHBOURS), -1, np.int64)
    best = np.full((len(own), NEIGHBOURS), -np.inf)
    for ids, vectors in batches():
        scores = queries.astype(np.float64) @ vectors.T.astype(np.float64)
        if l2:
            scores = 2 * scores - np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        scores[own[:, None] == ids[None, :]] = -np.inf
        scores, names = np.hstack([best, scores]), np.hstack([near, np.broadcast_to(ids, scores.shape)])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :NEIGHBOURS]
        best, near = np.take_along_axis(scores, order, axis=1), np.take_along_axis(names, order, axis=1)
    found = search(queries, NEIGHBOURS + 1)
    return float(np.mean([len(np.intersect1d(a, b)) / NEIGHBOURS for a, b in zip(near, found, strict=True)]))
