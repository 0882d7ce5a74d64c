"""The sets that a release is about, and the pass over all their pairs: in memory, or streamed in pieces.

A stream is a Parquet file or a store that is read a piece at a time, again for each pass. Memory holds one piece of
each side, and for each row its best score and where: it does not grow with the vectors.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Space
from unface.data.arrow import lists_of, matrix_of, text_of
from unface.data.embeddings import Columns, row_numbers
from unface.data.files import short_name
from unface.data.parquet import opened_parquet, read_columns, row_batches
from unface.errors import MissingColumn, UnfaceError
from unface.pairs import Hits, Nearest, compared, nearest_between, pairs_above, visit_above

_PIECE = {"cpu": 16_384, "cuda": 262_144}
_READ_BYTES = 16 << 20
_PAIRS_AT_ONCE = 5_000_000
STREAMED = "streamed: its vectors were read in pieces"


class Vectors(Protocol):
    """(rows, dim) unit vectors, to be read in order as often as needed."""

    @property
    def rows(self) -> int: ...

    @property
    def dim(self) -> int: ...

    def blocks(self, rows: int) -> Iterator[NDArray[np.float32]]:
        """At most ``rows`` at a time."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """Vectors in memory."""

    array: NDArray[np.float32]

    @property
    def rows(self) -> int:
        return len(self.array)

    @property
    def dim(self) -> int:
        return int(self.array.shape[1])

    def blocks(self, rows: int) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(self.array), rows):
            yield self.array[start : start + rows]


@dataclass(frozen=True, eq=False)
class Streamed:
    """Vectors of a file or a store: batches of any size in, unit vectors in even pieces out."""

    source: str
    rows: int
    dim: int
    batches: Callable[[], Iterator[NDArray[np.generic]]] = field(repr=False)

    def blocks(self, rows: int) -> Iterator[NDArray[np.float32]]:
        waiting: list[NDArray[np.float32]] = []
        held = seen = 0
        for batch in self.batches():
            vectors = _unit(batch, self.source, seen)
            seen += len(vectors)
            while held + len(vectors) >= rows:
                take = rows - held
                yield np.concatenate([*waiting, vectors[:take]])
                vectors, waiting, held = vectors[take:], [], 0
            if len(vectors):
                waiting.append(vectors)
                held += len(vectors)
        if waiting:
            yield np.concatenate(waiting)
        if seen != self.rows:
            raise UnfaceError(f"{self.source}: had {self.rows:,} vectors and now has {seen:,}; stop writers, run again")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some rows of a stream, which rise: it is read whole, and the others are passed over."""

    whole: Vectors
    chosen: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.chosen)

    @property
    def dim(self) -> int:
        return self.whole.dim

    def blocks(self, rows: int) -> Iterator[NDArray[np.float32]]:
        first = 0
        for block in self.whole.blocks(rows):
            low, high = np.searchsorted(self.chosen, (first, first + len(block)))
            if low < high:
                yield block[self.chosen[low:high] - first]
            first += len(block)


@dataclass(frozen=True, eq=False)
class Faces:
    """One set: its vectors, and for each row an id and a person (by number); names are sorted, and may be numbers."""

    source: str
    vectors: Vectors
    ids: NDArray[np.object_]
    people: NDArray[np.int64]
    names: tuple[str, ...]
    space: Space
    labelled: bool = True
    """Whether people come from the set; otherwise every row stands for itself until people are clustered."""
    notes: tuple[str, ...] = ()
    made_of: NDArray[np.object_] | None = None
    """The id of the picture that each synthetic face was made of, where the set says so."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(len(rows), dim) vectors of these rows, which rise."""
        if isinstance(self.vectors, Held):
            return self.vectors.array[rows]
        taken = np.empty((len(rows), self.vectors.dim), np.float32)
        first = 0
        for block in self.vectors.blocks(_PIECE["cpu"]):
            low, high = np.searchsorted(rows, (first, first + len(block)))
            taken[low:high] = block[rows[low:high] - first]
            first += len(block)
        return taken

    def some(self, rows: NDArray[np.int64]) -> "Faces":
        """These rows, which rise; people keep their numbers."""
        if len(rows) == len(self):
            return self
        made_of = None if self.made_of is None else self.made_of[rows]
        vectors: Vectors = (
            Held(self.vectors.array[rows]) if isinstance(self.vectors, Held) else Chosen(self.vectors, rows)
        )
        return replace(self, vectors=vectors, ids=self.ids[rows], people=self.people[rows], made_of=made_of)

    def sha256(self) -> str:
        """Of vectors, people and ids, whether held or streamed."""
        digest = hashlib.sha256(f"{len(self)} {self.vectors.dim}".encode())
        for block in self.vectors.blocks(_PIECE["cpu"]):
            digest.update(np.ascontiguousarray(block, "<f4").data)
        digest.update(np.ascontiguousarray(self.people, "<i8").data)
        digest.update("\x1f".join([*self.names, *self.ids.tolist()]).encode())
        return digest.hexdigest()


def faces_of(embeddings: EmbeddingSet, *, labelled: bool = True, made_of: str | None = None) -> Faces:
    """A set in memory. ``made_of`` names the label that holds the id of each row's original."""
    unit = embeddings.unit()
    column = None if made_of is None or made_of not in unit.labels else np.asarray(unit.labels[made_of], object)
    return Faces(
        unit.source,
        Held(unit.vectors),
        unit.ids,
        unit.identities,
        unit.names,
        unit.space,
        labelled,
        unit.notes,
        column,
    )


def parquet_faces(path: Path, columns: Columns) -> Faces:
    """A Parquet file that is streamed: ids and identities are held, vectors are not."""
    from unface.data.embeddings import METADATA_KEY, codes_of, space_from_json

    source = short_name(path)
    with opened_parquet(path, source) as file:
        schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    wanted = [name for name in (columns.id, columns.identity) if name is not None and name in schema.names]
    for name in (columns.vector, *([] if columns.identity is None else [columns.identity])):
        if name not in schema.names:
            raise MissingColumn(f"{source}: has no column {name!r}; there are {', '.join(schema.names)}", name)
    table = read_columns(path, source, wanted) if wanted else None
    text = (schema.metadata or {}).get(METADATA_KEY)
    kind = schema.field(columns.vector).type
    dim = kind.list_size if pa.types.is_fixed_size_list(kind) else None
    if dim is None:
        raise UnfaceError(f"{source}: {columns.vector!r} is {kind}; streaming needs a fixed_size_list of numbers")

    def column(name: str | None) -> NDArray[np.object_] | None:
        if table is None or name is None or name not in table.column_names:
            return None
        return text_of(table.column(name), f"{source}: {name!r}")

    def batches() -> Iterator[NDArray[np.generic]]:
        with opened_parquet(path, source) as file:
            at_once = max(1, _READ_BYTES // (4 * dim))
            for batch in row_batches(file, source, at_once, [columns.vector]):
                made, nulls = matrix_of(
                    pa.chunked_array([lists_of(batch.column(0))]), row_numbers(batch.num_rows), source, columns.vector
                )
                if nulls is not None:
                    raise UnfaceError(f"{source}: a row has no vector; fill or drop such rows")
                yield made

    ids, identities = column(columns.id), column(columns.identity)
    missing = None if identities is None else next((at for at, name in enumerate(identities) if not name), None)
    if missing is not None:
        raise UnfaceError(f"{source}: row {missing} has no identity in {columns.identity!r}; fill or drop such rows")
    ids = row_numbers(rows) if ids is None else ids
    codes, names = codes_of((row_numbers(rows) if identities is None else identities).tolist())
    space = Space(None, None, dim, False) if text is None else space_from_json(text, source)
    return Faces(
        source,
        Streamed(source, rows, dim, batches),
        ids,
        codes,
        names,
        replace(space, normalised=True),
        labelled=identities is not None,
        notes=(STREAMED,),
    )


def store_faces(url: str, columns: Columns) -> Faces:
    """A store that is streamed, read only: ids and identities are held, vectors are not."""
    from unface.data.embeddings import codes_of, object_array
    from unface.stores import open_collection

    with open_collection(url, columns) as collection:
        name, rows, dim, erased = collection.name, collection.rows, collection.dim, collection.erased_with
        kept: dict[str, list[str | None]] = {"id": [], "identity": []}
        for batch in collection.batches(None):
            for what, column in (("id", columns.id), ("identity", columns.identity)):
                if column is not None and column in batch.schema.names:
                    kept[what] += text_of(pa.chunked_array([batch.column(column)]), f"{name}: {column!r}").tolist()
    labelled = len(kept["identity"]) == rows
    ids = object_array(kept["id"]) if len(kept["id"]) == rows else row_numbers(rows)
    if None in kept["identity"]:
        at = kept["identity"].index(None)
        raise UnfaceError(f"{name}: {ids[at]!r} has no identity in {columns.identity!r}; fill or drop such rows")

    def batches() -> Iterator[NDArray[np.generic]]:
        with open_collection(url, columns) as again:
            first = 0
            for batch in again.batches(None):
                made, nulls = matrix_of(
                    pa.chunked_array([lists_of(batch.column(columns.vector))]),
                    row_numbers(batch.num_rows),
                    name,
                    "vector",
                )
                here = kept["id"][first : first + batch.num_rows]
                if here and text_of(pa.chunked_array([batch.column(columns.id)]), name).tolist() != here:
                    raise UnfaceError(f"{name}: its rows changed while it was read; stop writers and run it again")
                if nulls is not None:
                    raise UnfaceError(f"{name}: a row has no vector; fill or drop such rows")
                first += batch.num_rows
                yield made

    codes, names = codes_of(kept["identity"] if labelled else ids.tolist())  # type: ignore[arg-type]
    return Faces(
        name,
        Streamed(name, rows, dim, batches),
        ids,
        codes,
        names,
        Space(None, erased, dim, True),
        labelled=labelled,
        notes=(STREAMED,),
    )


def compare(
    left: Faces,
    right: Faces,
    *,
    own: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> tuple[Nearest, Nearest]:
    """Of each left row among the right ones, and of each right row among the left ones.

    The left set is read once, the right one once for each piece of the left.
    """
    if isinstance(left.vectors, Held) and isinstance(right.vectors, Held):
        space = compared(left.vectors.array, right.vectors.array)
        return nearest_between(space, own=own, device=device, threads=threads)
    piece = _PIECE[device.partition(":")[0]]
    of_left: list[Nearest] = []
    of_right = Nearest.nothing(len(right))
    i = 0
    for ours in left.vectors.blocks(2 * piece):
        found, j = Nearest.nothing(len(ours)), 0
        for others in right.vectors.blocks(piece):
            here = slice(j, j + len(others))
            codes = None if own is None else (own[0][i : i + len(ours)], own[1][here])
            known = Nearest(of_right.scores[here], of_right.rows[here])
            one, other = nearest_between(
                compared(ours, others), own=codes, floors=(found.scores, known.scores), device=device, threads=threads
            )
            found = found.merged(_moved(one, j))
            better = known.merged(_moved(other, i))
            of_right.scores[here], of_right.rows[here] = better.scores, better.rows
            j += len(others)
        of_left.append(found)
        i += len(ours)
    whole = (np.concatenate([getattr(one, name) for one in of_left]) for name in ("scores", "rows"))
    return Nearest(*whole), of_right


def near_pairs(
    left: Faces, vectors: NDArray[np.float32], cut: float, *, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Every (row of ``left``, row of ``vectors``, score) from ``cut`` on, reading ``left`` once."""
    found, first = [], 0
    for block in left.vectors.blocks(2 * _PIECE["cpu"]):
        i, j, scores = pairs_above(compared(block, vectors), cut, threads=threads)
        found.append((i + first, j, scores))
        first += len(block)
    i, j, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return i, j, scores


def people_reached(
    left: Faces,
    whose: NDArray[np.int64],
    vectors: NDArray[np.float32],
    cut: float,
    *,
    own: NDArray[np.int64] | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> NDArray[np.bool_]:
    """(len(vectors), people) who of ``left`` has a picture from ``cut`` on, ``whose`` pictures they are; not the own.

    However many pairs reach it, memory holds those of one small block and a bit for each vector and person.
    """
    seen = np.zeros((len(vectors), int(whose.max()) + 1), bool)
    first = 0
    for block in left.vectors.blocks(max(_PAIRS_AT_ONCE // len(vectors), 1)):

        def mark(hits: Hits, first: int = first) -> None:
            seen[hits.j, whose[hits.i + first]] = True

        visit_above(compared(block, vectors), cut, mark, device=device, threads=threads)
        first += len(block)
    if own is not None:
        named = np.flatnonzero(own >= 0)
        seen[named, own[named]] = False
    return seen


def _moved(nearest: Nearest, by: int) -> Nearest:
    return Nearest(nearest.scores, np.where(nearest.rows < 0, -1, nearest.rows + by))


def _unit(batch: NDArray[np.generic], source: str, first: int) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(batch, np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    bad = ~np.isfinite(norms) | (norms == 0)
    if bad.any():
        row = int(np.argmax(bad))
        what = "only zeros" if norms[row] == 0 else "NaN or Inf"
        raise UnfaceError(f"{source}: row {first + row} has {what} in its vector; drop it")
    made = np.empty_like(vectors)
    np.divide(vectors, norms[:, None], out=made, casting="same_kind")
    return made
