"""A finished file read back beside its source: the bytes that were written, the same rows, and nothing left."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from unface.data.parquet import opened_parquet, row_batches
from unface.errors import UnfaceError
from unface.output.place import place_at
from unface.scale.check import Check
from unface.scale.part import PartJob, loaded
from unface.scale.receipt import Verified
from unface.scale.stream import batch_rows, batch_vectors, rows_at_once


@dataclass(frozen=True)
class ReadBackJob:
    """What was done, and the hash that its record has."""

    part: PartJob
    sha256: str


def read_back(job: ReadBackJob) -> Verified:
    """Refuse what is not the erased copy of its source."""
    part = job.part
    source, out, projection = place_at(part.source), place_at(part.out), loaded(part.projection)
    if out.sha256(part.name) != job.sha256:
        raise UnfaceError(f"{part.name}: was changed after it was written; remove it and run it again")
    check = Check(projection)
    with source.opened(part.name) as before, out.opened(part.name) as after:
        with opened_parquet(before, part.name) as raw, opened_parquet(after, part.name) as erased:
            expected = raw.metadata.num_rows
            if raw.schema_arrow.names != erased.schema_arrow.names:
                raise UnfaceError(f"{part.name}: its columns are not those of its source; run it again with --force")
            others = [name for name in raw.schema_arrow.names if name != part.vector]
            rows = rows_at_once(raw, projection.dim)
            for batch in row_batches(erased, part.name, batch_rows(projection.dim), [part.vector]):
                check.add(batch_vectors(batch, part.vector, projection.dim, part.name, check.rows))
            check.require(expected, part.name)
        if others:
            with opened_parquet(before, part.name) as raw, opened_parquet(after, part.name) as erased:
                first = 0
                pairs = _aligned(*(row_batches(file, part.name, rows, others) for file in (raw, erased)))
                for theirs, ours in pairs:
                    for name in others:
                        if not _same(theirs.column(name), ours.column(name)):
                            raise UnfaceError(
                                f"{part.name}: {name!r} differs from its source after row {first};"
                                " run it again with --force"
                            )
                    first += theirs.num_rows
    return Verified.by(check)


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
        return _same(a.dictionary_decode(), b.dictionary_decode())
    return bool(a.equals(b))
