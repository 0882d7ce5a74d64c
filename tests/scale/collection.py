"""A small collection as people have them: files of different sizes, one in a folder, one of no rows."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.scale.stored import ARCFACE, table, vectors_in, written
from unface.data import Space

NAMES = ["a.parquet", "b.parquet", "deep/er/c.parquet", "empty.parquet"]
CUTS = [0, 50, 51, 120, 120]


def collection(folder: Path, space: Space | None = ARCFACE) -> Path:
    """120 rows in four files; also what writers leave beside, which is no data."""
    whole = table(space=space)
    for name, start, end in zip(NAMES, CUTS[:-1], CUTS[1:], strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        written(whole.slice(start, end - start), folder / name, row_group_size=23)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.parquet").write_text("not data")
    return folder


def all_vectors(folder: Path) -> NDArray[np.generic]:
    """In the order of the files."""
    return np.concatenate([vectors_in(folder / name) for name in NAMES if name != "empty.parquet"])


def all_others(folder: Path) -> pa.Table:
    return pa.concat_tables(
        [pq.read_table(folder / name).drop(["vector"]) for name in NAMES], promote_options="default"
    )


def hashes(folder: Path) -> dict[str, str]:
    """Of every data file, and nothing else."""
    paths = [path for path in sorted(folder.rglob("*.parquet")) if "_unface" not in path.parts]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
