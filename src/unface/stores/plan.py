"""What sanitising a store would do, without doing it: the same refusals, its steps in words, and how long it takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from unface.data.arrow import matrix_of
from unface.data.embeddings import Columns
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.scale import released_vectors
from unface.scale.receipt import Check
from unface.scale.stream import NO_IDS
from unface.stores.ports import Foreseeable, Holding, Readable, Store
from unface.stores.run import require_continuable, require_erasable

_SAMPLED = 10_000


@dataclass(frozen=True)
class StorePlan:
    """Of a run that was not made."""

    projection: Projection
    held: Holding
    steps: tuple[str, ...]
    sampled: int = 0
    seconds: float = 0.0
    """To read, erase and check so many vectors."""

    def lines(self) -> Iterator[str]:
        """For the terminal."""
        held, projection = self.held, self.projection
        yield "Dry run: nothing is changed."
        removed = f"{projection.rank} of {projection.dim} dimensions removed ({projection.kind})"
        released = f"they keep {held.dim} dimensions"
        if projection.released_dim != projection.dim:
            released = f"{held.dim} dimensions become {projection.released_dim}"
        yield f"{held.where}: {held.rows:,} vectors, {removed}; {released}"
        for number, step in enumerate(self.steps, 1):
            yield f"{number}. {step}"
        if self.sampled:
            whole = self.seconds * held.rows / self.sampled
            rest = "writing them and building indexes comes on top"
            yield f"Time: about {_duration(whole)} to read, erase and check, from {self.sampled:,} vectors; {rest}"
        yield "The store does not record its encoder: make sure that the projection was fitted on the same one."


def plan_store(projection: Projection, store: Store, *, purge: bool = False) -> StorePlan:
    """What ``sanitise_store`` would do with the same arguments; refuses what that would refuse at its start."""
    held = store.inspect()
    if held.sanitised_with is not None:
        require_continuable(projection, held)
        if not held.raw_kept or not purge:
            kept = "raw vectors are still kept, --purge removes them" if held.raw_kept else "nothing to do"
            raise UnfaceError(f"{held.where}: already sanitised with this projection; {kept}")
        return StorePlan(projection, held, ("Purge: the raw vectors that an earlier run kept are removed.",))
    require_erasable(projection, held)
    steps = store.foresee(projection.released_dim, purge=purge) if isinstance(store, Foreseeable) else []
    if not isinstance(store, Readable) or held.swapped:
        return StorePlan(projection, held, tuple(steps))
    return StorePlan(projection, held, tuple(steps), *_timed(projection, store, held))


def _timed(projection: Projection, store: Readable, held: Holding) -> tuple[int, float]:
    """Of the first vectors: how many, and the seconds they take."""
    started, rows, check = perf_counter(), 0, Check(projection)
    with store.reading(Columns(identity=None)) as collection:
        for batch in collection.batches(None):
            column = batch.slice(0, _SAMPLED - rows).column(collection.columns.vector)
            vectors, nulls = matrix_of(pa.chunked_array([column]), NO_IDS, held.where, "vector")
            erased = released_vectors(projection, vectors if nulls is None else vectors[~nulls], held.where)
            check.add(erased)
            rows += len(erased)
            if rows >= _SAMPLED:
                break
    return rows, perf_counter() - started


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
