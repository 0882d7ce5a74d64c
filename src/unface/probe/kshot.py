"""Which images of each identity the attacker has (support) and which are compared (query), for each seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Role, Split
from unface.probe.ports import Support
from unface.seeds import stream


@dataclass(frozen=True, eq=False)
class RoleRows:
    """Rows of one role with identity codes 0 … m − 1 of their own."""

    rows: NDArray[np.int64]
    identities: NDArray[np.int64]
    count: int

    def where(self, mask: NDArray[np.bool_]) -> "RoleRows":
        """Some of the rows; the codes stay."""
        return RoleRows(self.rows[mask], self.identities[mask], self.count)

    def images(self) -> NDArray[np.int64]:
        """Images of each identity."""
        return np.bincount(self.identities, minlength=self.count)


@dataclass(frozen=True, eq=False)
class Shot:
    """One seed's draw: support of the attacker's identities, query images of those it never saw."""

    support: Support
    calibrate: RoleRows
    test: RoleRows


def role_rows(embeddings: EmbeddingSet, split: Split, role: Role) -> RoleRows:
    """The rows of a role, coded anew."""
    rows = split.rows(embeddings, role)
    names, codes = np.unique(embeddings.identities[rows], return_inverse=True)
    return RoleRows(rows, codes.astype(np.int64), len(names))


def draw_shot(
    vectors: NDArray[np.float32],
    train: RoleRows,
    calibrate: RoleRows,
    test: RoleRows,
    k: int,
    seed: int,
    device: str = "cpu",
) -> Shot:
    """For every identity, k random images are support and the others query; roles draw from streams of their own."""
    supported = train.where(_chosen(train, k, seed, "train"))
    support = Support(vectors[supported.rows], supported.identities, k, seed, device)
    queries = (role.where(~_chosen(role, k, seed, name)) for role, name in ((calibrate, "calibrate"), (test, "test")))
    return Shot(support, *queries)


def distinct_impostors(queries: list[RoleRows]) -> int:
    """Impostor image pairs that any seed compares, each counted once.

    Seeds compare mostly the same pictures: pooling their scores steadies a threshold but does not make new evidence,
    so how low a FAR can be resolved goes by this number.
    """
    rows = np.unique(np.concatenate([query.rows for query in queries]))
    member = np.stack([np.isin(rows, query.rows) for query in queries], axis=1)
    identity = np.empty(len(rows), np.int64)
    for query in queries:
        identity[np.searchsorted(rows, query.rows)] = query.identities
    patterns, pattern = np.unique(member, axis=0, return_inverse=True)
    counts = np.zeros((int(identity.max()) + 1, len(patterns)))
    np.add.at(counts, (identity, pattern.ravel()), 1)
    meet = (patterns.astype(np.int64) @ patterns.T.astype(np.int64)) > 0
    across = np.outer(counts.sum(axis=0), counts.sum(axis=0)) - counts.T @ counts
    return round(float(across[meet].sum()) / 2)


def _chosen(role: RoleRows, k: int, seed: int, name: str) -> NDArray[np.bool_]:
    """True for k random rows of each identity."""
    keys = stream(seed, "kshot", k, name).random(len(role.rows))
    order = np.lexsort((keys, role.identities))
    starts = np.concatenate([[0], np.cumsum(role.images())[:-1]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, role.images())
    return rank < k
