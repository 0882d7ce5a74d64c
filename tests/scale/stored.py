"""Files as people have them: vectors among columns that must come through untouched."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data import Space, make_identities
from unface.data.embeddings import METADATA_KEY
from unface.erase import ISP, LEACE, Projection, fit_projection

DIM = 16
PEOPLE = make_identities(30, 4, DIM, rank=3, between=3.0, seed=3)
ARCFACE = Space("arcface", "ab" * 32, DIM, normalised=False)
UNNAMED = Space(None, None, DIM, normalised=True)


def projection(space: Space = ARCFACE) -> Projection:
    people = replace(PEOPLE, space=space).unit()
    return fit_projection(ISP(5), people)


def oblique() -> Projection:
    """With a mean, so that zero does not stay zero by itself."""
    return fit_projection(LEACE(5), PEOPLE.unit())


def table(vectors: NDArray[np.generic] | None = None, space: Space | None = ARCFACE) -> pa.Table:
    """Rows in no order, columns on both sides of the vectors, nulls, nesting, and metadata of somebody else's."""
    given = PEOPLE.vectors if vectors is None else vectors
    count = len(given)
    order = np.random.default_rng(1).permutation(count)
    columns = {
        "taken": pa.array(np.arange(count).astype("datetime64[s]")),
        "id": pa.array([f"id-{row}" for row in order], pa.large_string()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(given.reshape(-1)), given.shape[1]),
        "tags": pa.array([None if row % 5 == 0 else [str(row), "ü"] for row in range(count)]),
        "price": pa.array([None if row % 7 == 0 else row / 3 for row in range(count)], pa.float64()),
        "kind": pa.array([f"k{row % 3}" for row in range(count)]).dictionary_encode(),
    }
    metadata = {b"theirs": b"\x00\xff kept"}
    if space is not None:
        metadata[METADATA_KEY] = space.to_json().encode()
    return pa.table(columns).replace_schema_metadata(metadata)


def written(content: pa.Table, path: Path, **options: object) -> Path:
    pq.write_table(content, path, **options)
    return path


def vectors_in(path: Path, column: str = "vector") -> NDArray[np.generic]:
    """(n, d) in the type it is stored in."""
    stored = pq.read_table(path).column(column).combine_chunks()
    flat: NDArray[np.generic] = stored.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(stored), -1)
