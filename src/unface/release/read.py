"""The sets as they are given: files of vectors, or stores; held in memory if they fit, else streamed."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from unface.data import EmbeddingSet, read_embeddings
from unface.data.embeddings import Columns, TooFewIdentities
from unface.data.files import kind_of, short_name
from unface.data.parquet import opened_parquet
from unface.data.read import is_store
from unface.errors import MissingColumn
from unface.memory import memory_budget
from unface.release.faces import Faces, faces_of, parquet_faces, store_faces
from unface.stores import open_collection

MADE_OF = "copy_of"
"""Column of a synthetic set: the id of the training picture that a face was made of."""
_SHARE_OF_MEMORY = 6
"""A set that takes more than this part of the budget is streamed; three sets are held, twice while they are read."""


def read_faces(source: str, columns: Columns, *, role: str, bad_rows: str = "fail") -> Faces:
    """A set by path or by the URL of a store. Rows without an identity column stand for themselves.

    Real people whose column was named by the user must have it; a synthetic set seldom has. With ids it is the other
    way round: the column that names synthetic pictures is seldom in the other sets, whose rows are then numbered.
    """
    try:
        return _read(source, columns, bad_rows)
    except MissingColumn as error:
        if error.column == columns.id and role != "synthetic":
            return read_faces(source, replace(columns, id=Columns.id), role=role, bad_rows=bad_rows)
        if error.column != columns.identity or (role != "synthetic" and columns.identity != Columns.identity):
            raise
    except TooFewIdentities:
        # One identity for all synthetic faces is the name of a folder, and says nothing; of real people it is refused.
        if role != "synthetic":
            raise
    return _read(source, replace(columns, identity=None), bad_rows)


def _read(source: str, columns: Columns, bad_rows: str) -> Faces:
    if is_store(source):
        with open_collection(source, columns) as collection:
            size = collection.rows * collection.dim * 4
        if _is_large(size):
            return store_faces(source, columns)
    elif kind_of(Path(source)) == "parquet" and _is_large(_vector_bytes(Path(source), columns.vector)):
        return parquet_faces(Path(source), columns)
    embeddings: EmbeddingSet = read_embeddings(
        source, vector=columns.vector, identity=columns.identity, id=columns.id, bad_rows=bad_rows
    )
    return faces_of(embeddings, labelled=columns.identity is not None, made_of=MADE_OF)


def _is_large(size: int) -> bool:
    return size > memory_budget() // _SHARE_OF_MEMORY


def _vector_bytes(path: Path, vector: str) -> int:
    with opened_parquet(path, short_name(path)) as opened:
        schema = opened.schema_arrow
        if vector not in schema.names or not pa.types.is_fixed_size_list(schema.field(vector).type):
            return 0
        return int(opened.metadata.num_rows) * int(schema.field(vector).type.list_size) * 4
