"""Stores and files that ``apply`` is given, made from ``inputs/stores/``; afterwards what they hold, in ``holds.json``.

Each is a context manager for the ``server`` of a case: it fills stores in the present folder and, when the commands are
through, writes what is in them, in every written Parquet, npz and ONNX file and in each face gate. Stores and files are
then removed: their own bytes, sidecars and records depend on times and places.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.golden.store_contents import fingerprint, points, postgres_rows, read_store, readable
from unface import Projection

_INPUT = Path("in/stores/faces.parquet")
HOLDS = Path("holds.json")


@contextmanager
def files() -> Iterator[str]:
    """No store: what commands write from files."""
    yield ""
    _record()


@contextmanager
def npy() -> Iterator[str]:
    """Arrays of two types; the shorter type loses digits of what it is given."""
    vectors = _faces()[1]
    np.save("faces.npy", vectors)
    np.save("half.npy", vectors.astype("<f2"))
    yield ""
    _record()


@contextmanager
def faiss() -> Iterator[str]:
    """Indexes that keep vectors, and one that keeps codes."""
    import faiss as library

    vectors = _faces()[1]
    threads = library.omp_get_max_threads()
    library.omp_set_num_threads(1)
    for name, kind in (("lists", "IDMap2,IVF2,Flat"), ("graph", "HNSW8"), ("codes", "SQ8")):
        index = library.index_factory(vectors.shape[1], kind, library.METRIC_INNER_PRODUCT)
        index.train(vectors)
        if "IDMap" in kind:
            index.add_with_ids(vectors, np.arange(len(vectors)) * 3 + 1)
        else:
            index.add(vectors)
        library.write_index(index, f"{name}.index")
    yield ""
    _record()
    library.omp_set_num_threads(threads)


@contextmanager
def lance() -> Iterator[str]:
    """A LanceDB table of two fragments with an index."""
    import lancedb

    table, _ = _faces()
    made = lancedb.connect(Path("lance")).create_table("faces", table[:40])
    made.add(table[40:])
    made.create_index("vector", config=lancedb.index.IvfFlat(distance_type="cosine", num_partitions=2))
    yield ""
    _record()


@contextmanager
def qdrant() -> Iterator[str]:
    """A collection of the client's local mode, and one with an alias."""
    from qdrant_client import models

    from tests.stores.cases_qdrant import opened, without_waiting_for_the_disk

    table, vectors = _faces()
    without_waiting_for_the_disk()
    with opened(Path("qdrant")) as client:
        for name in ("faces", "faces of 2026"):
            client.create_collection(name, models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE))
            people = table.column("identity").to_pylist()
            points_of = [
                models.PointStruct(id=row, vector=vector, payload={"identity": people[row], "row": row})
                for row, vector in enumerate(vectors.tolist())
            ]
            client.upsert(name, points_of)
        alias = models.CreateAlias(collection_name="faces of 2026", alias_name="latest")
        client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    yield ""
    _record()


@contextmanager
def postgres() -> Iterator[str]:
    """A table with an index on a server of its own; the address names server and table."""
    import psycopg

    from tests.stores.postgres_server import clear, server

    running = server()
    clear(running.uri)
    table, vectors = _faces()
    dim = vectors.shape[1]
    with psycopg.connect(running.uri, autocommit=True) as opened:
        opened.execute(f"CREATE TABLE faces (id text PRIMARY KEY, identity text, embedding vector({dim}), note text)")
        opened.execute(
            "CREATE INDEX ON faces USING hnsw (embedding vector_cosine_ops) WITH (m = 4, ef_construction = 8)"
        )
        with opened.cursor().copy("COPY faces FROM STDIN") as rows:
            for row, vector in enumerate(vectors.astype(np.float64).tolist()):
                key, person = (table.column(name)[row].as_py() for name in ("id", "identity"))
                rows.write_row((key, person, str(vector), None if row % 3 else f"note {row}"))
    yield f"{running.uri}&table=faces"
    _record({"postgres": lambda: postgres_rows(running.uri, "faces", "embedding")})


def _faces() -> tuple[Any, NDArray[np.float32]]:
    import pyarrow.parquet as pq

    table = pq.read_table(_INPUT)
    vectors = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return table, np.ascontiguousarray(vectors.reshape(len(table), -1))


def _record(more: dict[str, Callable[[], dict[str, Any]]] | None = None) -> None:
    here = Path.cwd()
    holds = {name: read() for name, read in (more or {}).items()}
    written = [path for path in sorted(here.rglob("*")) if "in" not in path.relative_to(here).parts[:1]]
    for path in written:
        if not path.exists():
            continue  # inside one that is read already
        name = path.relative_to(here).as_posix()
        if readable(path):
            holds[name] = read_store(path)
        elif path.suffix == ".onnx":
            holds[name] = _answers(path)
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                holds[name] = {key: _of_array(arrays[key]) for key in arrays.files}
        else:
            if path.suffix == ".safetensors" and (gate := Projection.load(path).gate) is not None:
                holds[name] = {"gate": [gate.offset, *fingerprint(gate.weights)]}
            _make_comparable(path)
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    HOLDS.write_text(json.dumps(holds, ensure_ascii=False), "utf-8")


def _of_array(array: NDArray[Any]) -> Any:
    if array.ndim == 2:
        return {str(row): fingerprint(vector) for row, vector in enumerate(array)}
    return array.tolist()


def _answers(path: Path) -> dict[str, list[float]]:
    """What an exported projection makes of fixed vectors."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    (made,) = session.run(None, {given.name: points(given.shape[1]).astype(np.float32)})
    return {f"point {number}": fingerprint(row) for number, row in enumerate(made)}


def _make_comparable(path: Path) -> None:
    """Of receipts whether what is left is rounding, not how much it was; no records of bytes, times and places."""
    if path.suffix != ".json":
        return
    if path.name.endswith(".unface.json") or ("_unface" in path.parts and path.name != "receipt.json"):
        path.unlink()
        return
    content = json.loads(path.read_bytes())
    verified = content.get("verified")
    if verified is not None:
        within = (
            verified.pop("largest_left") <= verified["allowed"],
            verified.pop("worst_length") <= verified["allowed"],
        )
        content["verified"] = {**verified, "within": all(within)}
        path.write_text(json.dumps(content), "utf-8")
