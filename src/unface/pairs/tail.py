"""The highest impostor scores, exactly: what thresholds at low false-accept rates are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.memory import require_further_memory
from unface.pairs.histogram import sample_impostors
from unface.pairs.pairing import Pairing
from unface.pairs.screen import Hits, Screen
from unface.pairs.sweep import Highest, Reaching, look_through, raise_cut, sweep

# Of a score that is listed: a row of a tail, once more while tails are pooled, and as much while hits are joined and
# sorted, one tail at a time.
_BYTES_OF_A_SCORE = 80
_FEW = 100_000


@dataclass(frozen=True, eq=False)
class Tail:
    """Impostor pairs in falling order of score; complete above ``floor``, the next score below those listed."""

    scores: NDArray[np.float32]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    """Identity codes of the two sides."""
    rows: NDArray[np.int64]
    """(t, 2) row numbers, as they were before pairing sorted them."""
    floor: float
    impostors: int
    """All impostor pairs, listed or not."""

    def __len__(self) -> int:
        return len(self.scores)


def highest_impostors(pairing: Pairing, keep: int, screen: Screen, *, threads: int | None = None) -> Tail:
    """The ``keep`` highest impostor scores; ties broken by row, so that the same data list the same pairs."""
    keep = min(keep, pairing.impostors)
    require_room(keep, pairing.impostors)
    for first_cut in _falling_cuts(pairing, keep):
        hits, cut = sweep(pairing, screen, first_cut, keep=keep + 1, threads=threads)
        hits, risen = raise_cut(hits, -np.inf, keep + 1, screen.margin)
        if cut > first_cut or risen >= cut:
            break  # nothing that the pass left out can belong among the highest
    return _listed(pairing, hits, pairing.space.exact(hits.i, hits.j, threads=threads), keep)


def require_room(keep: int, impostors: int, tails: int = 1) -> None:
    """Refuse to list more scores, in each of so many tails, than memory is meant for."""
    if keep * tails < _FEW:
        return
    require_further_memory(
        _BYTES_OF_A_SCORE * keep * (1 + tails),
        f"listing the {keep:,} highest of {impostors:,} impostor scores",
        "ask for lower false-accept rates, check the encoder if many vectors are the same",
    )


def impostors_above(
    pairing: Pairing, cut: float, screen: Screen, *, most: int, threads: int | None = None
) -> tuple[Tail, int]:
    """The ``most`` highest of the impostor pairs whose exact score is at least ``cut``, and how many these are."""
    highest, reaching = Highest(pairing.space, most + 1, screen.margin), Reaching(pairing.space, screen.margin)
    count = 0

    def take(hits: Hits) -> None:
        nonlocal count
        found = hits.where(reaching(hits, cut))
        count += len(found)
        highest.take(found)

    look_through(pairing, screen, lambda: cut - screen.margin, take, threads=threads)
    hits, _ = raise_cut(highest.hits(), -np.inf, most + 1, screen.margin)
    tail = _listed(pairing, hits, pairing.space.exact(hits.i, hits.j, threads=threads), most)
    if count > most:
        return tail, count
    return replace(tail, floor=float(np.nextafter(np.float32(cut), -np.inf))), count


def pool_tails(tails: Sequence[Tail]) -> Tail:
    """Tails of several sets of pairs as one, complete above the highest of their floors."""
    floor = max(tail.floor for tail in tails)
    scores = np.concatenate([tail.scores for tail in tails])
    order = np.argsort(-scores, kind="stable")
    order = order[: int(np.count_nonzero(scores > floor))]
    parts = {name: [getattr(tail, name) for tail in tails] for name in ("first", "second", "rows")}
    joined = {name: np.concatenate(arrays)[order] for name, arrays in parts.items()}
    return Tail(scores=scores[order], **joined, floor=floor, impostors=sum(tail.impostors for tail in tails))


def _listed(pairing: Pairing, hits: Hits, exact: NDArray[np.float32], keep: int) -> Tail:
    order = np.lexsort((hits.j, hits.i, -exact))
    floor = float(exact[order[keep]]) if len(order) > keep else -np.inf
    order = order[:keep]
    i, j = hits.i[order], hits.j[order]
    return Tail(
        scores=exact[order],
        first=pairing.identities[i],
        second=pairing.identities[j],
        rows=np.stack([pairing.rows[i], pairing.rows[j]], axis=1),
        floor=floor,
        impostors=pairing.impostors,
    )


def _falling_cuts(pairing: Pairing, keep: int) -> list[float]:
    """Cuts to try in turn: the first should let through a few times ``keep`` pairs, the last lets all through."""
    sample = sample_impostors(pairing)
    share = keep / max(pairing.impostors, 1)
    # 48 more than expected: a sample that small would often put the cut too high, and the pass would be for nothing.
    ranks = [rank for factor in (2, 16) if (rank := int(factor * share * len(sample)) + 48) < len(sample)]
    falling = -np.partition(-sample, ranks) if ranks else sample
    return [float(falling[rank]) for rank in ranks] + [-np.inf]
