"""Search: one picture as the query, all other pictures as the gallery. Is the first hit the same person?

All that is kept of a query is its best mate's score, how many pictures of others reach it, and the best of the others:
from these the rates at every smaller gallery follow exactly, over all ways to draw one. Ties go against the attacker.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from unface.pairs import Pairing, Tail, open_screen


@dataclass(frozen=True, eq=False)
class Searched:
    """Every picture of a role as a query against all others; arrays are by picture, sorted by identity."""

    identities: NDArray[np.int64]
    mate: NDArray[np.float32]
    """The best score with another picture of the same person."""
    ahead: NDArray[np.int64]
    """Pictures of others that score as high or higher."""
    other: NDArray[np.float32]
    """The best score with a picture of another person."""
    stranger: NDArray[np.int64]
    """That person."""
    mates: NDArray[np.int64]
    """Other pictures of the same person."""

    @property
    def gallery(self) -> int:
        """Pictures that each query is compared with."""
        return len(self.identities) - 1

    def best_strangers(self) -> Tail:
        """What a query of somebody who is not in the gallery returns, by falling score: one pair for each query.

        Whether a query returns somebody depends on two people: its own and the stranger. Taken as draws of queries
        alone, nominal 95 % intervals of the share found cover 47 to 91 %.
        """
        order = np.argsort(-self.other, kind="stable")
        first, second, scores = self.identities[order], self.stranger[order], self.other[order]
        return Tail(scores, first, second, np.stack([order, order], axis=1), -np.inf, len(order))

    def hit_rates(self, gallery: int, first: int) -> NDArray[np.float64]:
        """For each query, the chance that one of the ``first`` hits is a mate in a gallery of so many pictures.

        The gallery has all mates and pictures of others drawn at random; how many of those are ahead of the best mate
        is hypergeometric.
        """
        others, drawn = self.gallery - self.mates, gallery - self.mates
        rates = np.zeros(len(self.mate))
        for ahead in range(first):
            rates += _hypergeometric(ahead, others, self.ahead, drawn)
        return np.minimum(rates, 1.0)


def chance_rate(mates: int, gallery: int, first: int) -> float:
    """How often one of the ``first`` of ``gallery`` pictures in random order is one of ``mates``."""
    if first > gallery - mates:
        return 1.0
    return float(1 - np.exp(_log_choose(gallery - mates, first) - _log_choose(gallery, first)))


def search(pairing: Pairing, device: str = "cpu") -> Searched:
    """Compare every picture with every other, a block at a time; each pair is scored once and counts for both sides."""
    n, space, codes = len(pairing), pairing.space, pairing.identities
    mate = _best_mates(pairing)
    other, stranger, ahead = np.full(n, -np.inf, np.float32), np.zeros(n, np.int64), np.zeros(n, np.int64)
    screen = open_screen(space, device)
    for block in pairing.blocks(screen.block_rows, screen.block_columns):
        scores, mask = screen.scores(block), pairing.impostor_mask(block)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        rows, columns = block.rows, block.columns
        for queries, strangers, axis in ((rows, columns, 1), (columns, rows, 0)):
            best, nearest = scores.max(axis=axis), scores.argmax(axis=axis) + strangers.start
            stranger[queries] = np.where(best > other[queries], nearest, stranger[queries])
            other[queries] = np.maximum(other[queries], best)
        for queries, limits, axis in ((rows, mate[rows, None], 1), (columns, mate[None, columns], 0)):
            ahead[queries] += np.count_nonzero(scores >= limits + screen.margin, axis=axis)
            i, j = np.nonzero(np.abs(scores - limits) < screen.margin)
            if len(i):  # too close for the screen to tell
                exact = space.exact(i + rows.start, j + columns.start)
                query = (i + rows.start) if axis else (j + columns.start)
                np.add.at(ahead, query, exact >= mate[query])
    other = space.exact(np.arange(n), stranger)
    return Searched(codes, mate, ahead, other, codes[stranger], np.bincount(codes)[codes] - 1)


def _best_mates(pairing: Pairing) -> NDArray[np.float32]:
    _, starts, sizes = np.unique(pairing.identities, return_index=True, return_counts=True)
    best = np.full(len(pairing), -np.inf, np.float32)
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        i, j = np.triu_indices(size, 1)
        scores = pairing.space.exact(start + i, start + j)
        np.maximum.at(best, start + i, scores)
        np.maximum.at(best, start + j, scores)
    return best


def _hypergeometric(
    value: int, total: NDArray[np.int64], marked: NDArray[np.int64], drawn: NDArray[np.int64]
) -> NDArray[np.float64]:
    """P(X = value) for ``drawn`` of ``total`` of which some are marked, for each query."""
    possible = (value <= marked) & (drawn - value <= total - marked) & (value <= drawn)
    safe = np.where(possible, marked, value)
    rest = np.where(possible, total - marked, np.maximum(drawn - value, 0))
    log = _log_choose(safe, value) + _log_choose(rest, np.maximum(drawn - value, 0)) - _log_choose(total, drawn)
    return np.where(possible, np.exp(log), 0.0)


def _log_choose(n: NDArray[np.int64] | int, k: NDArray[np.int64] | int) -> NDArray[np.float64]:
    return np.asarray(gammaln(np.add(n, 1.0)) - gammaln(np.add(k, 1.0)) - gammaln(np.subtract(n, k) + 1.0))
