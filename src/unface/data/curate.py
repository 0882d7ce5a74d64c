"""Curation: which pictures are used. What is learned from is taken whole, what is judged is capped."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data.embeddings import EmbeddingSet
from unface.errors import UnfaceError
from unface.seeds import stream

LEARNED = 200
"""Pictures of each person to learn from, at most."""


@dataclass(frozen=True)
class Curation:
    """What curation kept and what it cost."""

    images: int
    """Of each identity that is judged, at most or exactly."""
    identities_kept: int
    identities_dropped: int
    rows_kept: int
    rows_dropped: int
    """Of identities that were dropped, and further images of those that were kept."""


def curate(
    embeddings: EmbeddingSet, images: int, seed: int, *, most: NDArray[np.int64] | None = None
) -> tuple[EmbeddingSet, Curation]:
    """Exactly ``images`` random images of each identity; identities with fewer are dropped. Rows keep their order.

    With ``most``, (names,), everybody stays who has two, and brings at most so many.
    """
    if images < 1:
        raise UnfaceError(f"{embeddings.source}: asked for {images} images of each identity; ask for at least 1")
    kept = with_enough(embeddings, images if most is None else 2)
    limits = np.full(len(kept), images) if most is None else most
    chosen = _rank_in_identity(embeddings, images, seed) < limits[embeddings.identities]
    rows = np.flatnonzero(chosen & kept[embeddings.identities])
    curation = Curation(
        images=images,
        identities_kept=int(np.count_nonzero(kept)),
        identities_dropped=int(np.count_nonzero(~kept)),
        rows_kept=len(rows),
        rows_dropped=len(embeddings) - len(rows),
    )
    return embeddings.take(rows), curation


def with_enough(embeddings: EmbeddingSet, images: int) -> NDArray[np.bool_]:
    """(names,) which identities have so many images; fewer than two such are refused."""
    sizes = images_of_each(embeddings)
    if np.count_nonzero(sizes >= images) < 2:
        raise UnfaceError(_too_few(embeddings.source, sizes, images))
    return sizes >= images


def usual_images(embeddings: EmbeddingSet, at_most: int = 20) -> int:
    """How many images of an identity are judged when nobody says: the lower median, at most ``at_most``.

    The median is that of identities with two images or more. Up to a tenth fewer where bad rows would otherwise cost
    a person all of their good ones.
    """
    sizes = images_of_each(embeddings)
    whole = sizes + lost_images(embeddings)
    images = min(at_most, lower_median(whole[whole >= 2]))
    short = sizes[(whole >= images) & (sizes < images) & (10 * sizes >= 9 * images)]
    return int(short.min(initial=images))


def lower_median(sizes: NDArray[np.int64]) -> int:
    """Half of them, or more, are as large; 2 where there are none."""
    return int(np.sort(sizes)[(len(sizes) - 1) // 2]) if len(sizes) else 2


def lost_images(embeddings: EmbeddingSet) -> NDArray[np.int64]:
    """(names,) bad rows that reading left out of each identity that has good ones too."""
    lost = {} if embeddings.bad_rows is None else embeddings.bad_rows.of_person
    return np.array([lost.get(name, 0) for name in embeddings.names], np.int64)


def images_of_each(embeddings: EmbeddingSet) -> NDArray[np.int64]:
    """(names,) how many."""
    return np.bincount(embeddings.identities, minlength=len(embeddings.names))


def _rank_in_identity(embeddings: EmbeddingSet, images: int, seed: int) -> NDArray[np.int64]:
    """Each row's place in a random order of its own identity's rows."""
    draw = stream(seed, "curate", images).random(len(embeddings))
    order = np.lexsort((draw, embeddings.identities))
    sizes = images_of_each(embeddings)
    rank = np.empty(len(embeddings), dtype=np.int64)
    rank[order] = np.arange(len(embeddings)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def _too_few(source: str, sizes: NDArray[np.int64], images: int) -> str:
    counts, identities = np.unique(sizes, return_counts=True)
    largest_first = list(zip(counts[::-1].tolist(), identities[::-1].tolist(), strict=True))
    shown = ", ".join(f"{number} with {count}" for count, number in largest_first[:6])
    more = ", and others with fewer" if len(largest_first) > 6 else ""
    return (
        f"{source}: {np.count_nonzero(sizes >= images)} of {len(sizes)} identities have at least {images} images,"
        f" 2 are needed; identities by images: {shown}{more}"
    )
