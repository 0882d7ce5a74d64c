"""Embeddings as Parquet: readable by anything, space in the metadata, and never half a file."""

import os
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unface.data.embeddings import EmbeddingSet
from unface.data.files import reason, short_name, written_whole
from unface.data.space import METADATA_KEY
from unface.errors import UnfaceError

_ROW_GROUP_BYTES = 64 << 20


def write_embeddings(
    embeddings: EmbeddingSet, path: str | os.PathLike[str], *, dtype: Literal["float32", "float16"] = "float32"
) -> None:
    """Columns id, identity, vector and the labels; replaces what is there, by a rename once all is written."""
    target = Path(path)
    name = short_name(target)
    table = _table(embeddings, dtype, name)
    row_bytes = embeddings.vectors.shape[1] * np.dtype(dtype).itemsize
    try:
        with written_whole(target) as unfinished:
            pq.write_table(
                table,
                unfinished,
                row_group_size=max(1, _ROW_GROUP_BYTES // max(1, row_bytes)),
                # Vectors and ids do not repeat: a dictionary of them would only cost.
                use_dictionary=["identity", *(name for name, column in embeddings.labels.items() if column.ndim == 1)],
                write_statistics=["identity"],
                write_page_checksum=True,
            )
    except pa.ArrowException as error:
        raise UnfaceError(f"{name}: cannot be written ({reason(error)})") from None


def _table(embeddings: EmbeddingSet, dtype: Literal["float32", "float16"], name: str) -> pa.Table:
    vectors = _narrowed(embeddings.vectors, name) if dtype == "float16" else embeddings.vectors
    codes = pa.array(embeddings.identities.astype(np.int32))
    columns = {
        "id": pa.array(embeddings.ids, type=pa.string()),
        "identity": pa.DictionaryArray.from_arrays(
            codes, pa.array(embeddings.names, type=pa.string())
        ).dictionary_decode(),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    for label, values in embeddings.labels.items():
        if label in columns:
            raise UnfaceError(f"{name}: a label is called {label!r}, which is a column of its own; rename it")
        try:
            flat = pa.array(values.reshape(-1))
            columns[label] = flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UnfaceError(f"{name}: label {label!r} cannot be written ({reason(error)})") from None
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: embeddings.space.to_json()})


def _narrowed(vectors: NDArray[np.float32], name: str) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):
        narrow = vectors.astype(np.float16)
    if not np.isfinite(narrow).all():
        raise UnfaceError(f"{name}: float16 ends at 65504, a vector has {np.abs(vectors).max():.6g}; write float32")
    if not narrow.any(axis=1).all():
        row = int(np.flatnonzero(~narrow.any(axis=1))[0])
        raise UnfaceError(f"{name}: row {row} would be all zeros in float16; write float32")
    return narrow
