"""Sets beside the audited one must show other people: pictures in both are refused, people who look alike a warning.

An eraser fitted on those it is judged on removes them alone and looks far better than it is, whatever they are called.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.auditing.copies import COPY_COLUMN
from unface.data import EmbeddingSet, require_same_space
from unface.data.embeddings import as_text
from unface.errors import UnfaceError
from unface.pairs import Hits, compared, visit_above
from unface.probe.defects import NEAR_DUPLICATE, lookalikes_between
from unface.result.file import Finding, warning
from unface.result.words import count

_CONSEQUENCES = {
    "--attacker-data": "the attacker would learn from people it is judged on",
    "--fit-on": "erasers would be fitted on people they are judged on",
    "--transfer": "the eraser of one set would be fitted on people of the other",
    "--spare": "the task would hold pictures that erasers are judged on",
    "--gate": "a gate set holds pictures without faces, and the audited set holds faces",
}


def require_strangers(
    option: str,
    theirs: EmbeddingSet,
    known: EmbeddingSet,
    *,
    by_name: bool = True,
    device: str = "cpu",
    threads: int | None = None,
) -> list[Finding]:
    """Refuse a set that shares an identity or a picture with ``known``; warn of people in both who look alike.

    Pictures are the same from a cosine of 0.999 on: encoding one again changes its vector by less. Rows of a
    ``--spare`` set that name their original in ``copy_of`` are copies on purpose and not compared. Without
    ``by_name``, names mean something else than people and may be equal.
    """
    theirs, known = theirs.unit(), known.unit()
    try:
        require_same_space(known.space, theirs.space)
    except UnfaceError as error:
        raise UnfaceError(f"{option} {theirs.source}: {error}") from None
    shared = set(known.names) & set(theirs.names) if by_name else set()
    if shared:
        raise UnfaceError(
            f"{option} {theirs.source}: {count(len(shared), 'identity', 'identities')} of it also in {known.source}, "
            f"such as {min(shared)!r}; take them out, or rename them if they are other people"
        )
    if option == "--spare":
        theirs = _without_named_copies(theirs, known)
    if not len(theirs):
        return []
    pairs, example = shared_pictures(known.vectors, theirs.vectors, device=device, threads=threads)
    if example is not None:
        here, there = known.ids[example[0]], theirs.ids[example[1]]
        raise UnfaceError(
            f"{option} {theirs.source}: {count(pairs, 'pair')} of nearly the same vector (cosine ≥ {NEAR_DUPLICATE}) "
            f"here and in {known.source}, such as id {there!r} here and id {here!r} there: {_CONSEQUENCES[option]}; "
            "take them out"
        )
    alike = len(lookalikes_between(known, theirs))
    if not alike:
        return []
    text = f"{count(alike, 'pair')} of identities in {theirs.source} and {known.source} resemble each other as much as "
    return [warning("identities", f"{text}themselves: the same people under other names? Then {_CONSEQUENCES[option]}")]


def shared_pictures(
    one: NDArray[np.float32], other: NDArray[np.float32], *, device: str = "cpu", threads: int | None = None
) -> tuple[int, tuple[int, int] | None]:
    """Count pairs of nearly the same unit vector between two sets, with the rows of the first such pair."""
    pairs, first = 0, None

    def take(hits: Hits) -> None:
        nonlocal pairs, first
        pairs += len(hits)
        if len(hits):
            at = np.lexsort((hits.j, hits.i))[0]
            here = int(hits.i[at]), int(hits.j[at])
            first = here if first is None else min(first, here)

    visit_above(compared(one, other), NEAR_DUPLICATE, take, device=device, threads=threads)
    return pairs, first


def rows_again(one: EmbeddingSet, sets: Sequence[EmbeddingSet]) -> dict[str, int]:
    """How many rows of each of the sets are nearly a row of the first; only of sets that have any."""
    found = {}
    for other in sets:
        rows = np.zeros(len(other), bool)

        def take(hits: Hits, rows: NDArray[np.bool_] = rows) -> None:
            rows[hits.j] = True

        visit_above(compared(one.unit().vectors, other.unit().vectors), NEAR_DUPLICATE, take)
        if rows.any():
            found[other.source] = int(rows.sum())
    return found


def _without_named_copies(theirs: EmbeddingSet, known: EmbeddingSet) -> EmbeddingSet:
    """Without rows that name a picture of the known set as their original."""
    if COPY_COLUMN not in theirs.labels:
        return theirs
    originals = as_text(theirs.labels[COPY_COLUMN], f"{theirs.source}: {COPY_COLUMN!r}")
    there = set(known.ids.tolist())
    return theirs.take(np.array([name not in there for name in originals], bool))
