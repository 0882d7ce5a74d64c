"""One file of vectors, erased: the vectors change, every other column, array and row stays as it was."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unface.data import read_vector_arrays, write_vector_arrays
from unface.data.files import SEE_TO_IT, kind_of, short_name, written_whole
from unface.data.parquet import opened_parquet, row_batches
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.output.place import Sink
from unface.output.write import OutputError
from unface.scale.check import Check
from unface.scale.receipt import Verified
from unface.scale.released import released_vectors
from unface.scale.stream import batch_rows, batch_vectors, erase_parquet
from unface.threads import available_cores


@dataclass(frozen=True)
class Sanitised:
    """What was done."""

    out: str
    rows: int
    dim: int
    kind: str
    rank: int
    degenerate: int
    named: bool
    """Whether the file said which encoder it is from."""
    verified: Verified | None = None

    def sentence(self) -> str:
        """For the terminal."""
        done = f"{self.out}: {self.rows:,} vectors, {self.rank} of {self.dim} dimensions removed ({self.kind})"
        if self.degenerate:
            done += f"; {self.degenerate:,} have nothing left and are zero"
        if self.verified is not None:
            done += f"; read back: at most {self.verified.largest_left:.1g} left along what was removed"
        if not self.named:
            done += "; the source does not say which encoder it is from, so this could not be checked"
        return done


def sanitise_file(
    projection: Projection,
    source: Path,
    out: Path,
    *,
    vector: str = "vector",
    verify: bool = False,
    threads: int | None = None,
) -> Sanitised:
    """Read, erase, write; ``out`` appears by a rename once all of it is written, and was read back with ``verify``."""
    kind = kind_of(source)
    if out.exists() and out.samefile(source):
        raise UnfaceError(f"{short_name(out)}: is the source itself; write to another file")
    if kind == "directory":
        raise UnfaceError(f"{short_name(source)}: is a folder; give one file")
    if {".parquet": "parquet", ".npz": "npz"}.get(out.suffix.lower(), kind) != kind:
        raise UnfaceError(f"{short_name(out)}: {short_name(source)} is {kind}, and so is what is written; name it so")
    check = Check(projection) if verify else None
    with written_whole(out) as unfinished:
        if kind == "npz":
            rows, degenerate, named = _arrays(projection, source, unfinished, vector, check)
        else:
            rows, degenerate, named = _parquet(projection, source, unfinished, short_name(out), vector, threads, check)
        if check is not None:
            check.require(rows, short_name(out))
    return Sanitised(
        out=short_name(out),
        rows=rows,
        dim=projection.dim,
        kind=projection.kind,
        rank=projection.rank,
        degenerate=degenerate,
        named=named,
        verified=None if check is None else Verified.by(check),
    )


def _parquet(
    projection: Projection,
    source: Path,
    unfinished: Path,
    out: str,
    vector: str,
    threads: int | None,
    check: Check | None,
) -> tuple[int, int, bool]:
    with unfinished.open("wb") as file:
        sink = Sink(file, out)
        try:
            done = erase_parquet(projection, source, short_name(source), sink, vector, threads or available_cores())
        except OutputError as error:
            raise UnfaceError(f"{error}; {SEE_TO_IT}") from None
    if check is not None:
        with opened_parquet(unfinished, out) as opened:
            for batch in row_batches(opened, out, batch_rows(projection.dim), [vector]):
                check.add(batch_vectors(batch, vector, projection.dim, out, check.rows))
    return done.rows, done.degenerate, done.named


def _arrays(
    projection: Projection, source: Path, unfinished: Path, vector: str, check: Check | None
) -> tuple[int, int, bool]:
    name, arrays = read_vector_arrays(source, vector)
    erased = released_vectors(projection, arrays[name], short_name(source))
    write_vector_arrays(arrays, name, erased, unfinished)
    if check is not None:
        name, arrays = read_vector_arrays(unfinished, name)
        check.add(arrays[name])
    return len(erased), int(np.count_nonzero(~erased.any(axis=1))), False
