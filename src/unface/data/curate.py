"""Curation: the same number of images for every identity, so that none counts more than another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.data.embeddings import EmbeddingSet
from unface.errors import UnfaceError
from unface.seeds import stream


@dataclass(frozen=True)
class Curation:
    """What curation kept and what it cost."""

    images: int
    identities_kept: int
    identities_dropped: int
    rows_kept: int
    rows_dropped: int
    """Of identities that were dropped, and further images of those that were kept."""
    fewest: int
    """Images that every identity with at least two has."""


def curate(embeddings: EmbeddingSet, images: int, seed: int) -> tuple[EmbeddingSet, Curation]:
    """Exactly ``images`` random images of each identity; identities with fewer are dropped. Rows keep their order."""
    if images < 1:
        raise UnfaceError(f"{embeddings.source}: asked for {images} images of each identity; ask for at least 1")
    sizes = _sizes(embeddings)
    kept = sizes >= images
    if np.count_nonzero(kept) < 2:
        raise UnfaceError(_too_few(embeddings.source, sizes, images))
    chosen = _rank_in_identity(embeddings, images, seed) < images
    rows = np.flatnonzero(chosen & kept[embeddings.identities])
    curation = Curation(
        images=images,
        identities_kept=int(np.count_nonzero(kept)),
        identities_dropped=int(np.count_nonzero(~kept)),
        rows_kept=len(rows),
        rows_dropped=len(embeddings) - len(rows),
        fewest=int(sizes[sizes >= 2].min(initial=images)),
    )
    return embeddings.take(rows), curation


def usual_images(embeddings: EmbeddingSet, at_most: int = 20) -> int:
    """How many images to curate to when nobody says: the lower median of what identities have, at most ``at_most``.

    Up to a tenth fewer where bad rows would otherwise cost a person all of their good ones.
    """
    sizes = _sizes(embeddings)
    whole = sizes + lost_images(embeddings)
    images = min(at_most, int(np.sort(whole)[(len(whole) - 1) // 2]))
    short = sizes[(whole >= images) & (sizes < images) & (10 * sizes >= 9 * images)]
    return int(short.min(initial=images))


def lost_images(embeddings: EmbeddingSet) -> NDArray[np.int64]:
    """(names,) bad rows that reading left out of each identity that has good ones too."""
    lost = {} if embeddings.bad_rows is None else embeddings.bad_rows.of_person
    return np.array([lost.get(name, 0) for name in embeddings.names], np.int64)


def _sizes(embeddings: EmbeddingSet) -> NDArray[np.int64]:
    return np.bincount(embeddings.identities, minlength=len(embeddings.names))


def _rank_in_identity(embeddings: EmbeddingSet, images: int, seed: int) -> NDArray[np.int64]:
    """Each row's place in a random order of its own identity's rows."""
    draw = stream(seed, "curate", images).random(len(embeddings))
    order = np.lexsort((draw, embeddings.identities))
    sizes = _sizes(embeddings)
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
