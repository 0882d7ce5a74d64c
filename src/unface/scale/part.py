"""One file of a collection: erased, recorded and read back; running it again changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from unface.data.embeddings import OnBadRows
from unface.data.parquet import opened_parquet, row_batches
from unface.erase import Projection
from unface.erase.file import from_bytes
from unface.errors import UnfaceError
from unface.output.place import OWN, Entry, place_at
from unface.scale.receipt import Check, Verified
from unface.scale.stream import batch_rows, batch_vectors, erase_parquet, rows_at_once, usable

DONE = f"{OWN}/done"


@dataclass(frozen=True)
class PartJob:
    """One file to erase. Everything in it can be pickled and means the same on another machine that sees the places."""

    projection: bytes
    """As Projection.save writes it."""
    source: str
    """The collection: an absolute path, or a URL."""
    out: str
    """Where its sanitised copy is made: likewise."""
    name: str
    """Of the file inside both, with "/" between folders."""
    vector: str = "vector"
    threads: int = 1
    on_bad: OnBadRows = "fail"


class PartDone(BaseModel):
    """The record of a finished file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    rows: int
    degenerate: int
    not_faces: int = 0
    bad: int = 0
    named_space: bool
    source_sha256: str
    source_bytes: int
    source_changed_ns: int | None
    """When the source was last written to, where its file system says."""
    sha256: str
    bytes: int


def sanitise_part(job: PartJob) -> PartDone:
    """Read, erase, write, rename, record. Refused with UnfaceError, or OutputError where writing failed."""
    source, out, projection = place_at(job.source), place_at(job.out), loaded(job.projection)
    before = source.look(job.name)
    if before is None:
        raise UnfaceError(f"{job.name}: no such file or directory; was it removed meanwhile?")
    digest = source.sha256(job.name)
    # Where there are files for all cores, reading ahead only helps those who wait for a network.
    ahead = job.threads > 1 or not (source.local and out.local)
    with source.opened(job.name) as file, out.written(job.name) as sink:
        erased = erase_parquet(
            projection, file, job.name, sink, job.vector, job.threads, ahead=ahead, on_bad=job.on_bad
        )
        if source.look(job.name) != before:
            raise UnfaceError(f"{job.name}: changed while it was read; run it again when nobody writes to it")
    done = PartDone(
        name=job.name,
        rows=erased.rows,
        degenerate=erased.degenerate,
        not_faces=erased.not_faces,
        bad=erased.bad,
        named_space=erased.named,
        source_sha256=digest,
        source_bytes=before.bytes,
        source_changed_ns=before.changed_ns,
        sha256=sink.sha256(),
        bytes=sink.bytes,
    )
    out.write(f"{DONE}/{job.name}.json", done.model_dump_json(indent=2).encode())
    return done


def still_done(done: PartDone, job: PartJob, source: Entry, out: Entry | None) -> bool:
    """Whether a record still describes these files; a source is read again only if it was touched since."""
    if out is None or out.bytes != done.bytes or source.bytes != done.source_bytes:
        return False
    if source.changed_ns is not None and source.changed_ns == done.source_changed_ns:
        return True
    return place_at(job.source).sha256(job.name) == done.source_sha256


@dataclass(frozen=True)
class ReadBackJob:
    """What was done, and the hash that its record has."""

    part: PartJob
    sha256: str
    bad: int = 0
    """Rows without a vector that can be erased."""


def read_back(job: ReadBackJob) -> Verified:
    """Refuse what is not the erased copy of its source."""
    part = job.part
    source, out, projection = place_at(part.source), place_at(part.out), loaded(part.projection)
    if out.sha256(part.name) != job.sha256:
        raise UnfaceError(f"{part.name}: was changed after it was written; remove it and run it again")
    check = Check(projection)
    with source.opened(part.name) as before, out.opened(part.name) as after:
        with opened_parquet(before, part.name) as raw, opened_parquet(after, part.name) as erased:
            expected = raw.metadata.num_rows - job.bad
            if raw.schema_arrow.names != erased.schema_arrow.names:
                raise UnfaceError(f"{part.name}: its columns are not those of its source; run it again with --force")
            others = [name for name in raw.schema_arrow.names if name != part.vector]
            rows = rows_at_once(raw, projection.dim)
            dim = projection.released_dim
            for batch in row_batches(erased, part.name, batch_rows(dim), [part.vector]):
                check.add(batch_vectors(filled(batch, part.vector), part.vector, dim, part.name, check.rows))
            check.require(expected, part.name)
        if others:
            with opened_parquet(before, part.name) as raw, opened_parquet(after, part.name) as erased:
                first = 0
                kept = row_batches(raw, part.name, rows, others)
                if part.on_bad == "drop" and job.bad:
                    kept = _usable(row_batches(raw, part.name, rows), part, projection.dim)
                pairs = _aligned(kept, row_batches(erased, part.name, rows, others))
                for theirs, ours in pairs:
                    for name in others:
                        if not _same(theirs.column(name), ours.column(name)):
                            raise UnfaceError(
                                f"{part.name}: {name!r} differs from its source after row {first};"
                                " run it again with --force"
                            )
                    first += theirs.num_rows
    return Verified.by(check)


def filled(batch: pa.RecordBatch, vector: str) -> pa.RecordBatch:
    """Rows that have a vector: bad ones may have been given up for null."""
    column = batch.column(vector)
    return batch.filter(column.is_valid()) if column.null_count else batch


def _usable(batches: Iterator[pa.RecordBatch], part: PartJob, dim: int) -> Iterator[pa.RecordBatch]:
    """A source without its bad rows."""
    first = 0
    for batch in batches:
        yield batch.filter(pa.array(usable(batch, part.vector, dim, part.name, first)))
        first += batch.num_rows


@lru_cache(maxsize=4)
def loaded(projection: bytes) -> Projection:
    """The projection of a job, read once for all jobs of a process."""
    return from_bytes(projection, "projection")


def _aligned(
    a: Iterator[pa.RecordBatch], b: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Two files' rows in equal steps, wherever their batches end."""
    left, right = next(a, None), next(b, None)
    while left is not None and right is not None:
        rows = min(left.num_rows, right.num_rows)
        yield left.slice(0, rows), right.slice(0, rows)
        left = left.slice(rows) if left.num_rows > rows else next(a, None)
        right = right.slice(rows) if right.num_rows > rows else next(b, None)


def _same(a: pa.Array, b: pa.Array) -> bool:
    """Equal in type, nulls and values, where NaN is equal to itself."""
    kind = a.type
    if kind != b.type or not a.is_null().equals(b.is_null()):
        return False
    if pa.types.is_map(kind):
        kind = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        a, b = a.cast(kind), b.cast(kind)
    if pa.types.is_floating(kind):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        return bool(a.view(bits).equals(b.view(bits)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _same(pc.list_value_length(a), pc.list_value_length(b)) and _same(a.flatten(), b.flatten())
    if pa.types.is_struct(kind):
        return all(_same(one, other) for one, other in zip(a.flatten(), b.flatten(), strict=True))
    if pa.types.is_dictionary(kind):
        # Not decoded: a text may be long, and all rows may share it.
        words = pa.concat_arrays([a.dictionary, b.dictionary])
        number = pc.index_in(words, value_set=words)
        ours, theirs = number[: len(a.dictionary)], number[len(a.dictionary) :]
        return bool(ours.take(a.indices).equals(theirs.take(b.indices)))
    return bool(a.equals(b))
