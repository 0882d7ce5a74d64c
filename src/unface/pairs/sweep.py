"""One pass over all impostor pairs, keeping those above a cut that may rise on the way."""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from unface.errors import UnfaceError
from unface.pairs.pairing import Block, Pairing
from unface.pairs.screen import Hits, Screen, join_hits
from unface.threads import parallel_map

# Cuts rise only between waves of a fixed number of blocks, so that what is kept does not depend on which thread was
# faster; the first waves are small, because the first cut is a guess and lets too much through.
_LARGEST_WAVE = 32
_MOST_HITS = 50_000_000


def sweep(
    pairing: Pairing, screen: Screen, cut: float, *, keep: int | None = None, threads: int | None = None
) -> tuple[Hits, float]:
    """Impostor pairs screened at or above ``cut``, and the cut as it ended.

    With ``keep``, the cut rises as soon as the ``keep`` highest scores are known to lie above a higher one.
    """
    held: list[Hits] = []
    for wave in _waves(pairing.blocks(screen.block_rows, screen.block_columns)):
        look = _look(pairing, screen, cut)
        held += parallel_map(look, wave, screen.workers or threads)
        if keep is not None and sum(map(len, held)) > 4 * keep + 65_536:
            hits, cut = raise_cut(join_hits(held), cut, keep, screen.margin)
            held = [hits]
        if sum(map(len, held)) > _MOST_HITS:
            raise UnfaceError(
                f"more than {_MOST_HITS:,} impostor pairs score {cut:.4g} or higher: too many of these vectors are "
                "nearly the same; check the encoder, or compare fewer"
            )
    return join_hits(held), cut


def raise_cut(hits: Hits, cut: float, keep: int, margin: float) -> tuple[Hits, float]:
    """The highest cut under which none of the ``keep`` highest exact scores can hide, and the hits above it."""
    if len(hits) < keep:
        return hits, cut
    # `keep` pairs screen at `last` or more, so as many are exactly at least last − margin: whatever belongs among the
    # highest is at least that as well, and screens at no less than last − 2 margin.
    last = float(np.partition(hits.scores, len(hits) - keep)[len(hits) - keep])
    cut = max(cut, last - 2 * margin)
    return hits.where(hits.scores >= cut), cut


def _look(pairing: Pairing, screen: Screen, cut: float) -> Callable[[Block], Hits]:
    def look(block: Block) -> Hits:
        hits = screen.above(block, cut)
        if pairing.has_only_impostors(block):
            return hits
        return hits.where(pairing.is_impostor(hits.i, hits.j))

    return look


def _waves(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    size = 2
    while wave := list(islice(blocks, size)):
        yield wave
        size = min(2 * size, _LARGEST_WAVE)
