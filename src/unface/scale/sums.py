"""Class sums of the files of a collection, and who takes part in them: sums add, identities go by name."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data import Role, split_identities, split_order
from unface.data.arrow import lists_of, matrix_of, text_of
from unface.data.embeddings import object_array
from unface.data.parquet import opened_parquet, row_batches
from unface.errors import UnfaceError
from unface.memory import require_memory
from unface.moments import MomentStream
from unface.output.place import place_at
from unface.progress import Progress
from unface.scale.executor import Executor, overlapped
from unface.scale.stream import NO_IDS, batch_rows, is_large, require_length

NOBODY, FITTED, HELD = range(3)
_ROWS_AT_ONCE = 1 << 16
_BLOCK_BYTES = 1 << 20
_NAME_BYTES = 600
"""Of an identity while roles are given out, measured: its name, its counts, its place in the order."""


@dataclass(frozen=True)
class NamesJob:
    """One file whose identities are counted."""

    source: str
    name: str
    identity: str


@dataclass(frozen=True)
class Cut:
    """Who takes part: identities by their ``split_order``, fitted on below ``fit_below``, held below ``held_below``.

    Two words instead of lists of names, so that it costs nothing to hand it to every file of a collection.
    """

    seed: int
    fit_below: str | None = None
    """None: everyone."""
    held_below: str = ""

    def role(self, name: str | None) -> int:
        """FITTED, HELD or NOBODY, which is also one without a name."""
        if not name:
            return NOBODY
        order = split_order(name, self.seed)
        if self.fit_below is None or order < self.fit_below:
            return FITTED
        return HELD if order < self.held_below else NOBODY


def part_names(job: NamesJob) -> Counter[str]:
    """How many rows each identity of a file has; rows without one are not counted."""
    counts: Counter[str] = Counter()
    with place_at(job.source).opened(job.name) as file, opened_parquet(file, job.name) as opened:
        if job.identity not in opened.schema_arrow.names:
            raise UnfaceError(f"{job.name}: no column {job.identity!r}; give its name by --identity-column")
        for batch in row_batches(opened, job.name, _ROWS_AT_ONCE, [job.identity]):
            names, codes = coded_identities(batch, job.identity, job.name)
            for name, rows in zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True):
                # A dictionary may hold names that no row has.
                if name and rows:
                    counts[name] += rows
            _require_room(len(counts), _NAME_BYTES, job.name)
    return counts


def _require_room(identities: int, each: int, source: str) -> None:
    """A file of some megabytes can hold millions of them."""
    require_memory(identities * each, source, "fit on fewer identities")


def coded_identities(
    batch: pa.RecordBatch, identity: str, source: str
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The names in a batch, None as the last of them, and of each row the number of its own."""
    column = batch.column(identity)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = text_of(pa.chunked_array([coded.dictionary]), f"{source}: {identity!r}")
    rows = coded.indices.cast(pa.int64()).fill_null(len(names)).to_numpy()
    return object_array([*names, None]), rows


def cut_identities(run: Executor, jobs: Sequence[NamesJob], hold_out: float, seed: int, most_rows: int) -> Cut:
    """The same identities held out as ``split_identities`` does, of which whole ones are kept up to ``most_rows``."""
    if hold_out == 0:
        return Cut(seed)
    counts: Counter[str] = Counter()
    for _, result in run(part_names, jobs):
        if isinstance(result, UnfaceError):
            raise result
        counts.update(result)
        _require_room(len(counts), _NAME_BYTES, "the collection")
    fitted = split_identities(counts, shares={Role.FIT: 1 - hold_out, Role.TEST: hold_out}, seed=seed)
    ordered = sorted((split_order(name, seed), rows) for name, rows in counts.items())
    held = ordered[fitted.counts()[Role.FIT] :]
    kept = np.cumsum([rows for _, rows in held]) <= most_rows
    # Above any hash where all are kept: hex has no letter beyond f.
    below = "g" if kept.all() else held[int(np.argmin(kept))][0]
    return Cut(seed, held[0][0], below)


@dataclass(frozen=True)
class SumsJob:
    """One file to sum up. Everything in it can be pickled and means the same on another machine that sees the place."""

    source: str
    """The collection: an absolute path, or a URL."""
    name: str
    """Of the file inside it, with "/" between folders."""
    dim: int
    scatter: bool
    cut: Cut
    vector: str = "vector"
    identity: str = "identity"
    bad_rows: str = "fail"


@dataclass
class PartSums:
    """Sums over unit vectors of those who are fitted on, and the unit vectors of those who are held out."""

    moments: MomentStream
    rows: int = 0
    skipped: int = 0
    held: list[NDArray[np.float32]] = field(default_factory=list)
    held_names: list[NDArray[np.object_]] = field(default_factory=list)


Gather = Callable[[Sequence[SumsJob], Progress], PartSums]
"""The sums of all files: in this process one file after the other, or as a tree over machines."""


def part_sums(job: SumsJob) -> PartSums:
    """Stream one file."""
    sums = PartSums(MomentStream(job.dim, scatter=job.scatter))
    add_part(job, sums)
    return sums


def merge_sums(a: PartSums, b: PartSums) -> PartSums:
    """Both together, as something new; associative up to rounding."""
    return PartSums(
        a.moments.merged(b.moments),
        a.rows + b.rows,
        a.skipped + b.skipped,
        [*a.held, *b.held],
        [*a.held_names, *b.held_names],
    )


def gather_here(jobs: Sequence[SumsJob], progress: Progress) -> PartSums:
    """All files into one sum, in order: nothing is held for each of them."""
    sums = PartSums(MomentStream(jobs[0].dim, scatter=jobs[0].scatter))
    progress.start("files", len(jobs))
    for job in jobs:
        add_part(job, sums)
        progress.advance("files")
    return sums


def add_part(job: SumsJob, sums: PartSums) -> None:
    """One file more."""
    with place_at(job.source).opened(job.name) as file, opened_parquet(file, job.name) as opened:
        # The next batch is read while this one is summed up.
        given = row_batches(opened, job.name, batch_rows(job.dim), [job.vector, job.identity])
        first = 0
        for batch in overlapped(given, lambda read: read, 1, is_large):
            _add_batch(job, sums, batch, first)
            first += batch.num_rows
            _require_room(sums.moments.identities, 8 * job.dim, job.name)
            del batch


def _add_batch(job: SumsJob, sums: PartSums, batch: pa.RecordBatch, first: int) -> None:
    known, codes = coded_identities(batch, job.identity, job.name)
    vectors, nulls = _vectors(job, batch, first)
    lengths = _lengths(vectors)
    roles = np.array([job.cut.role(name) for name in known])[codes]
    nameless = np.array([not name for name in known])[codes]
    bad = ~(np.isfinite(lengths) & (lengths > 0)) | nameless
    if nulls is not None:
        bad |= nulls
    if bad.any() and job.bad_rows == "fail":
        row = int(np.argmax(bad))
        fault = "no identity" if nameless[row] else "no vector, NaN, Inf or only zeros"
        raise UnfaceError(f"{job.name}: row {first + row} has {fault}; drop it or pass --bad-rows drop")
    roles[bad] = NOBODY
    sums.rows += len(codes)
    sums.skipped += int(np.count_nonzero(bad))
    weights = np.zeros(len(codes))
    np.divide(1, lengths, out=weights, where=roles == FITTED)
    sums.moments.add(vectors, known[codes], weights)
    held = np.flatnonzero(roles == HELD)
    if len(held):
        sums.held.append((vectors[held] / lengths[held, None]).astype(np.float32))
        sums.held_names.append(known[codes[held]])


def _vectors(job: SumsJob, batch: pa.RecordBatch, first: int) -> tuple[NDArray[np.float32], NDArray[np.bool_] | None]:
    column = lists_of(batch.column(job.vector))
    require_length(column, job.vector, job.dim, job.name, first)
    vectors, nulls = matrix_of(pa.chunked_array([column]), NO_IDS, job.name, job.vector)
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes Inf and is refused as such
        return vectors.reshape(len(column), job.dim).astype(np.float32, copy=False), nulls


def _lengths(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """In blocks that stay in a core's own cache; not finite where a number is not."""
    squares = np.empty(len(vectors))
    step = max(1, _BLOCK_BYTES // (8 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        exact = vectors[start : start + step].astype(np.float64)
        np.einsum("ij,ij->i", exact, exact, out=squares[start : start + step])
    return np.sqrt(squares)
