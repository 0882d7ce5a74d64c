"""Which images the attacker learns from (support) and which are compared (query), for each seed."""

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

    def impostors(self) -> int:
        """Image pairs of two identities, each counted once: however often seeds compare them, they are one evidence."""
        return (len(self.rows) ** 2 - int((self.images() ** 2).sum())) // 2


@dataclass(frozen=True, eq=False)
class Shot:
    """One seed's draw: support of the attacker's identities, and the images of others that it compares."""

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
    *,
    everything: bool = False,
    hold_out: bool = False,
    device: str = "cpu",
) -> Shot:
    """k random images of each train identity are support, or all that it has where these are fewer or ``everything``.

    All images of calibrate and test identities are compared; ``hold_out`` compares the images that k others of the
    same identity leave (the ISP paper, A.1). Roles draw from streams of their own.
    """
    supported = train if everything else train.where(_chosen(train, k, seed, "train"))
    support = Support(vectors[supported.rows], supported.identities, k, seed, device)
    if hold_out:
        calibrate = calibrate.where(~_chosen(calibrate, k, seed, "calibrate"))
        test = test.where(~_chosen(test, k, seed, "test"))
    return Shot(support, calibrate, test)


def _chosen(role: RoleRows, k: int, seed: int, name: str) -> NDArray[np.bool_]:
    """True for k random rows of each identity."""
    keys = stream(seed, "kshot", k, name).random(len(role.rows))
    order = np.lexsort((keys, role.identities))
    starts = np.concatenate([[0], np.cumsum(role.images())[:-1]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, role.images())
    return rank < k
