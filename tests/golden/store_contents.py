"""What a store or a Parquet file holds, as numbers that tell one content from another: for the numbers guard.

Read with the store's own tools and nothing of unface. Hashes, times and the files' own layout are left out.
"""

import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = bool | int | float | str | None
Rows = Mapping[Hashable, Mapping[str, object]]
"""By id: the columns of each row; a vector is an array."""

_PARTS = ("dim", "length", "to point 0", "to point 1", "to point 2")
_LEFT_OUT = ("sha256", "sanitised_with", "unface.sanitised_with", "ARROW:schema")


def contents(path: Path) -> dict[str, Value]:
    """Path → value for what lies at ``path``: ``<id>/<column>`` of each row, and metadata without hashes."""
    return dict(_leaves("", read_store(path)))


def read_store(path: Path) -> dict[str, Any]:
    """The same as nested content; the numbers of a vector are one list."""
    rows, more = _reader(path)(path)
    return {"rows": len(rows), **more, "row": {str(key): _plain(row) for key, row in rows.items()}}


def readable(path: Path) -> bool:
    """Whether ``contents`` reads what lies there."""
    try:
        _reader(path)
    except KeyError:
        return False
    return True


def fingerprint(vector: NDArray[Any]) -> list[float]:
    """The length of a vector and its distances to three fixed points.

    They differ where vectors differ, and none is near zero, so that relative tolerances hold.
    """
    exact = vector.astype(np.float64)
    away = np.linalg.norm(points(len(exact)) - exact, axis=1)
    return [float(len(exact)), float(np.linalg.norm(exact)), *map(float, away)]


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return fingerprint(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    # A value with a space in it would be taken for prose.
    return value if value is None or isinstance(value, bool | int | float) else str(value).replace(" ", "_")


def _leaves(path: str, content: object) -> Iterator[tuple[str, Value]]:
    if isinstance(content, Mapping):
        for name, inner in content.items():
            yield from _leaves(f"{path}/{name}".lstrip("/"), inner)
    elif isinstance(content, list):
        for name, number in zip(_PARTS, content, strict=True):
            yield f"{path}/{name}", number
    else:
        assert content is None or isinstance(content, bool | int | float | str)
        yield path, content.replace(" ", "_") if isinstance(content, str) else content


def _reader(path: Path) -> Callable[[Path], tuple[Rows, dict[str, Value]]]:
    if path.is_dir():
        if path.suffix == ".lance":
            return _lance
        if (path / "meta.json").is_file() and (path / "collection").is_dir():
            return _qdrant
        raise KeyError(path)
    return {".parquet": _parquet, ".npy": _npy, ".raw": _raw, ".index": _faiss}[path.suffix]


def points(dim: int) -> NDArray[np.float64]:
    """(3, dim) fixed points of length two; not drawn, so that they depend on no generator."""
    squares = np.arange(1, dim + 1, dtype=np.float64) ** 2
    drawn = np.cos(np.outer(np.sqrt([2.0, 3.0, 5.0]), squares))
    fixed: NDArray[np.float64] = 2 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return fixed


def _parquet(path: Path) -> tuple[Rows, dict[str, Value]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    said = {key.decode(): text.decode() for key, text in (table.schema.metadata or {}).items()}
    more = {f"metadata {key}": _metadata(text) for key, text in said.items() if key not in _LEFT_OUT}
    rows, found = _of_arrow(table), {f"{key}/{name}": v for key, fields in more.items() for name, v in fields.items()}
    return rows, {**found, "order": ",".join(map(str, rows))}


def _lance(path: Path) -> tuple[Rows, dict[str, Value]]:
    import lance

    data = lance.dataset(path)
    metadata = data.schema.field("vector").metadata or {}
    more: dict[str, Value] = {
        f"metadata {key.decode()}": text.decode() for key, text in metadata.items() if key.decode() not in _LEFT_OUT
    }
    more["indices"] = " ".join(sorted(index.name for index in data.describe_indices()))
    more["detached versions"] = len(list((path / "_versions").glob("d*")))
    return _of_arrow(data.to_table()), more


def _of_arrow(table: Any) -> Rows:
    names = table.schema.names
    keys = table.column("id").to_pylist() if "id" in names else list(range(len(table)))
    columns = {name: table.column(name).to_pylist() for name in names if name != "id"}
    rows = [
        {name: np.array(column[at]) if isinstance(column[at], list) else column[at] for name, column in columns.items()}
        for at in range(len(keys))
    ]
    return _by_id(keys, rows)


def _by_id(keys: Sequence[Hashable], rows: Sequence[Mapping[str, object]]) -> Rows:
    found = dict(zip(keys, rows, strict=True))
    assert len(found) == len(keys), "a row is there twice"
    return found


def _npy(path: Path) -> tuple[Rows, dict[str, Value]]:
    vectors = np.load(path)
    return dict(enumerate({"vector": vector} for vector in vectors)), {"type": vectors.dtype.str}


def _raw(path: Path) -> tuple[Rows, dict[str, Value]]:
    """The raw file that is kept beside an erased one."""
    return {".npy": _npy, ".index": _faiss}[Path(path.stem).suffix](path)


def _faiss(path: Path) -> tuple[Rows, dict[str, Value]]:
    import faiss

    index = faiss.read_index(str(path))
    inner, keys, kind = index, list(range(index.ntotal)), type(index).__name__
    if isinstance(index, faiss.IndexIDMap | faiss.IndexIDMap2):
        inner, keys = faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map).tolist()
        kind += f" of {type(inner).__name__}"
    if isinstance(inner, faiss.IndexIVF):
        inner.make_direct_map(True)
    vectors = [{"vector": inner.reconstruct(at)} for at in range(index.ntotal)]
    return _by_id(keys, vectors), {"type": kind, "metric": index.metric_type}


def _qdrant(path: Path) -> tuple[Rows, dict[str, Value]]:
    """All collections, and which alias leads where: names of staged collections hold a hash, which is left out."""
    from qdrant_client import QdrantClient

    rows: dict[Hashable, Mapping[str, object]] = {}
    more: dict[str, Value] = {}
    with closing(QdrantClient(path=str(path))) as client:
        names = sorted(each.name for each in client.get_collections().collections)
        shown = {name: re.sub("__unface_[0-9a-f]{8}$", "__unface_HASH", name) for name in names}
        for alias in client.get_aliases().aliases:
            more[f"alias {alias.alias_name}"] = shown[alias.collection_name]
        for name in names:
            described = client.get_collection(name)
            params = described.config.params.vectors
            more[f"{shown[name]}/distance"] = str(getattr(params, "distance", params))
            records, _ = client.scroll(name, limit=10_000, with_vectors=True)
            for record in records:
                rows[f"{shown[name]}/{record.id}"] = {"vector": np.array(record.vector), **(record.payload or {})}
    return rows, more


def postgres_rows(uri: str, table: str, column: str) -> dict[str, Any]:
    """Of a table of a server; ``column`` holds vectors and the first column the key."""
    import psycopg

    def asked(query: str) -> list[tuple[Any, ...]]:
        return list(opened.execute(query).fetchall())

    with psycopg.connect(uri) as opened:
        named = (
            f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
        )
        names = [str(name) for (name,) in asked(named) if name != column]
        fetched = asked(f"SELECT {', '.join(names)}, {column}::text FROM {table}")
        indices = asked(f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}' ORDER BY 1")
        left = asked("SELECT count(*) FROM pg_class WHERE starts_with(relname, 'unface')")
    vectors = [None if row[-1] is None else np.array(row[-1][1:-1].split(","), np.float64) for row in fetched]
    rows = [
        {**dict(zip(names[1:], row[1:-1], strict=True)), column: vector}
        for row, vector in zip(fetched, vectors, strict=True)
    ]
    found = _by_id([row[0] for row in fetched], rows)
    more = {f"index {number}": str(text).replace(" ", "_") for number, (text,) in enumerate(indices)}
    more["objects of unface"] = left[0][0]
    return {"rows": len(found), **more, "row": {str(key): _plain(row) for key, row in found.items()}}


def _metadata(text: str) -> dict[str, Value]:
    """The fields of a text, if it is JSON; without hashes and what is salted with one."""
    try:
        content = json.loads(text)
    except ValueError:
        content = text
    return {
        where.rpartition("/")[2] or "text": value
        for where, value in _flat(content)
        if where.rpartition("/")[2] not in ("projection_sha256", "weights_sha256", "salt", "bits")
    }


def _flat(content: object, path: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(content, Mapping):
        for name, inner in content.items():
            yield from _flat(inner, f"{path}/{name}")
    elif isinstance(content, list):
        for place, inner in enumerate(content):
            yield from _flat(inner, f"{path}/{place}")
    else:
        assert content is None or isinstance(content, bool | int | float | str)
        yield path, content.replace(" ", "_") if isinstance(content, str) else content
