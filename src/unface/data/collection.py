"""A collection that is read in pieces and never changed: all of it, or the people of a sample, whatever its size."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data.arrow import rows_of_table, text_of
from unface.data.embeddings import Columns, RawRows, Space
from unface.errors import UnfaceError
from unface.memory import number_in_use, require_memory

People = frozenset[str]
Counts = Mapping[str, int]
"""Rows by identity; of one piece, so that a name may come again in the next."""
_FEWEST = 2
"""Rows that a person of a sample has at least: with one there is nothing to compare."""


@dataclass(frozen=True)
class Collection:
    """What a store hands out. Pieces are Arrow record batches in which the columns have these names."""

    name: str
    """As messages and results call it: no password, no path."""
    columns: Columns
    rows: int
    dim: int
    people: Callable[[], Iterator[Counts]]
    """Every identity with its rows, piece by piece."""
    batches: Callable[[People | None], Iterator[pa.RecordBatch]]
    """The rows of these people, or all rows."""
    erased_with: str | None = None
    """Hash of the projection that its vectors went through."""
    notes: tuple[str, ...] = ()


def read_collection(collection: Collection, sample: int | None, seed: int) -> RawRows:
    """Its rows before any check; refused where they need more memory than there is."""
    name, columns = collection.name, collection.columns
    people = None
    if sample is not None:
        people = sampled_people(collection.people, sample, seed, name)
    else:
        require_memory(
            collection.rows * collection.dim * (4 + number_in_use()), name, "read fewer people: --sample 5000"
        )
    tables, held = [], 0
    for batch in collection.batches(people):
        held += batch.nbytes + number_in_use() * collection.dim * batch.num_rows
        require_memory(held, name, "read fewer people with --sample")
        tables.append(pa.Table.from_batches([batch]))
    if not tables:
        raise UnfaceError(f"{name}: holds no vectors; nothing to read")
    raw = rows_of_table(pa.concat_tables(tables, promote_options="default"), columns, name, collection.notes)
    if collection.erased_with is None:
        return raw
    space = Space(None, collection.erased_with, raw.vectors.shape[1], normalised=False)
    # The rest of what it went through a store does not say.
    return replace(raw, space=space, erased=json.dumps({"projection_sha256": collection.erased_with}))


def sampled_people(people: Callable[[], Iterator[Counts]], number: int, seed: int, source: str) -> People:
    """``number`` people with at least two rows, drawn by a hash of seed and name; fewer if there are no more.

    Holds a few times ``number`` names, whatever the number of people. Each pass keeps the names with the smallest
    hashes above those of the pass before, with exact counts: a name that was let go never comes back. One pass is
    enough unless most people have one row only.
    """
    if number < 2:
        raise UnfaceError(f"--sample {number}: is a number of people; give at least 2")
    room, above, chosen = 4 * number + 1000, "", list[str]()
    while True:
        kept: dict[str, tuple[str, int]] = {}
        below = "g"  # hex has no letter beyond f
        for counts in people():
            for name, rows in counts.items():
                order = hashlib.sha256(f"{seed}\x1fsample\x1f{name}".encode()).hexdigest()
                if above < order < below:
                    kept[order] = (name, rows + kept[order][1] if order in kept else rows)
            if len(kept) > 2 * room:
                kept, below = _smallest(kept, room)
        chosen += [name for _, (name, rows) in sorted(kept.items()) if rows >= _FEWEST]
        if len(chosen) >= number or below == "g":
            break
        above = max(kept)
    if len(chosen) < 2:
        raise UnfaceError(f"{source}: {len(chosen)} people have 2 pictures or more; a sample needs at least 2 of them")
    return frozenset(chosen[:number])


def _smallest(kept: dict[str, tuple[str, int]], room: int) -> tuple[dict[str, tuple[str, int]], str]:
    """The entries with the smallest hashes, and the first hash that is let go."""
    ordered = sorted(kept)
    return {order: kept[order] for order in ordered[:room]}, ordered[room]


def sample_note(number: int, people: int, seed: int) -> str:
    """What a sample is, for whoever reads the result."""
    drawn = f"a sample of {people:,} people with at least 2 rows each, drawn with seed {seed}"
    return drawn if people == number else f"{drawn}; there are no more ({number:,} were asked for)"


def counted(column: pa.Array, what: str) -> Counter[str]:
    """Rows by identity; those without one are not counted."""
    names, codes = _coded(column, what)
    rows = np.bincount(codes, minlength=len(names) + 1).tolist()
    # A dictionary may hold names that no row has, and the same name twice.
    counts: Counter[str] = Counter()
    for name, number in zip(names, rows, strict=False):
        if name and number:
            counts[name] += number
    return counts


def of_people(batch: pa.RecordBatch, identity: str, people: People, what: str) -> pa.RecordBatch:
    """The rows of these people."""
    names, codes = _coded(batch.column(identity), what)
    wanted = np.array([*(name in people for name in names), False])
    return batch.filter(pa.array(wanted[codes]))


def of_counts(counts: Iterable[str | None]) -> Callable[[], Iterator[Counts]]:
    """Identities that are in memory already, as one piece."""
    whole = Counter(name for name in counts if name)
    return lambda: iter([whole])


def _coded(column: pa.Array, what: str) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The names in a column, and of each row the number of its own; that of none is one beyond the last."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = text_of(pa.chunked_array([coded.dictionary]), what)
    return names, coded.indices.cast(pa.int64()).fill_null(len(names)).to_numpy()
