"""One file of vectors, erased in memory: the vectors change, every other column, array and row stays as it was."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unface.data import read_vector_file, write_vector_file
from unface.data.files import short_name
from unface.erase import Projection
from unface.errors import UnfaceError
from unface.scale.released import is_named, released_space, released_vectors, require_raw


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

    def sentence(self) -> str:
        """For the terminal."""
        done = f"{self.out}: {self.rows:,} vectors, {self.rank} of {self.dim} dimensions removed ({self.kind})"
        if self.degenerate:
            done += f"; {self.degenerate:,} have nothing left and are zero"
        if not self.named:
            done += "; the source does not say which encoder it is from, so this could not be checked"
        return done


def sanitise_file(projection: Projection, source: Path, out: Path, *, vector: str = "vector") -> Sanitised:
    """Read, erase, write; ``out`` appears by a rename once all of it is written."""
    if source.resolve() == out.resolve():
        raise UnfaceError(f"{short_name(out)}: is the source itself; write to another file")
    given = read_vector_file(source, vector)
    kinds = {".parquet": "parquet", ".npz": "npz"}
    kind = "npz" if isinstance(given.whole, dict) else "parquet"
    if kinds.get(out.suffix.lower(), kind) != kind:
        raise UnfaceError(f"{short_name(out)}: {short_name(source)} is {kind}, and so is what is written; name it so")
    require_raw(projection, given.space)
    erased = released_vectors(projection, given.vectors, short_name(source))
    write_vector_file(given, erased, released_space(projection, given.space), out)
    return Sanitised(
        out=short_name(out),
        rows=len(erased),
        dim=projection.dim,
        kind=projection.kind,
        rank=projection.rank,
        degenerate=int(np.count_nonzero(~erased.any(axis=1))),
        named=is_named(given.space),
    )
