"""Impostor scores of a role: all pairs through the engine, or the paper's quota for each identity pair."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.pairs import Pairing, Tail, count_impostors, highest_impostors, open_screen
from unface.probe.plan import Plan
from unface.seeds import stream


def impostor_tail(pairing: Pairing, keep: int, plan: Plan, name: str) -> Tail:
    """The ``keep`` highest impostor scores."""
    if plan.quota is None:
        return highest_impostors(pairing, keep, open_screen(pairing.space, plan.device), threads=1)
    return _quota(pairing, plan, name)


def impostors_accepted(
    pairing: Pairing, thresholds: Sequence[float], plan: Plan, name: str
) -> tuple[NDArray[np.int64], int]:
    """Accepted impostor pairs at each threshold, and how many pairs there were."""
    if plan.quota is None:
        accepts = count_impostors(pairing, np.array(thresholds), open_screen(pairing.space, plan.device), threads=1)
        return accepts.total, pairing.impostors
    tail = _quota(pairing, plan, name)
    return np.array([np.count_nonzero(tail.scores >= threshold) for threshold in thresholds]), tail.impostors


def _quota(pairing: Pairing, plan: Plan, name: str) -> Tail:
    """Every score of a quota of image pairs drawn for each identity pair (the ISP paper, A.2)."""
    codes, starts, sizes = np.unique(pairing.identities, return_index=True, return_counts=True)
    first, second = (np.repeat(side, plan.quota or 1) for side in np.triu_indices(len(codes), 1))
    rng = stream(plan.seed, "quota", name)
    i = starts[first] + rng.integers(0, sizes[first])
    j = starts[second] + rng.integers(0, sizes[second])
    scores = pairing.space.exact(i, j)
    order = np.argsort(-scores, kind="stable")
    return Tail(
        scores[order],
        codes[first[order]],
        codes[second[order]],
        np.stack([pairing.rows[i[order]], pairing.rows[j[order]]], axis=1),
        -np.inf,
        len(scores),
    )
