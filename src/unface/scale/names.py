"""The identities of a collection, from that column alone: who is fitted on, and who is held out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unface.data import Role, split_identities, split_order
from unface.data.arrow import text_of
from unface.data.embeddings import object_array
from unface.data.parquet import opened_parquet, row_batches
from unface.errors import UnfaceError
from unface.output.place import place_at
from unface.scale.executor import Executor

NOBODY, FITTED, HELD = range(3)
_ROWS_AT_ONCE = 1 << 16


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
    return counts


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
    for _, found in run(part_names, jobs):
        if isinstance(found, UnfaceError):
            raise found
        counts.update(found)
    fitted = split_identities(counts, shares={Role.FIT: 1 - hold_out, Role.TEST: hold_out}, seed=seed)
    ordered = sorted((split_order(name, seed), rows) for name, rows in counts.items())
    held = ordered[fitted.counts()[Role.FIT] :]
    kept = np.cumsum([rows for _, rows in held]) <= most_rows
    # Above any hash where all are kept: hex has no letter beyond f.
    below = "g" if kept.all() else held[int(np.argmin(kept))][0]
    return Cut(seed, held[0][0], below)
