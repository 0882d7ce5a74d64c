"""PostgreSQL tables with pgvector columns, for the contract tests: indexed and not, vector and halfvec."""

from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.stores.contract import DIM, Maker, StoreCase, Vectors
from tests.stores.postgres_server import clear, server
from unface.stores import Store
from unface.stores.postgres import PostgresStore

HNSW = "CREATE INDEX faces_seen ON faces USING hnsw (seen vector_l2_ops) WITH (m = 8, ef_construction = 40)"


def table(kind: str, index: str | None = None) -> Maker:
    """Text in and text out, by psycopg alone."""

    def maker(_: Path) -> StoreCase:
        running = server()
        import psycopg

        def execute(statement: str, given: Sequence[str] = ()) -> list[tuple[object, ...]]:
            with psycopg.connect(running.uri, autocommit=True) as opened:
                done = opened.execute(statement, given)
                return done.fetchall() if done.description else []

        def fill(vectors: Vectors) -> Sequence[Hashable]:
            with psycopg.connect(running.uri, autocommit=True) as opened:
                opened.execute(f"CREATE TABLE faces (name text PRIMARY KEY, seen {kind}({DIM}))")
                if index:
                    opened.execute(index)
                ids = [f"face {row}" for row in range(len(vectors))]
                with opened.cursor().copy("COPY faces FROM STDIN") as rows:
                    for name, vector in zip(ids, vectors, strict=True):
                        rows.write_row((name, str(vector.astype(np.float64).tolist())))
                # Until then a vector is only in the write-ahead log, where a page boundary may split its bytes.
                opened.execute("CHECKPOINT")
            return ids

        def read() -> dict[Hashable, NDArray[np.floating]]:
            found = execute("SELECT name, seen::text FROM faces")
            return {str(name): np.array(str(seen)[1:-1].split(","), np.float32) for name, seen in found}

        def search(vector: Vectors) -> Hashable:
            ordered = f"SELECT name FROM faces ORDER BY seen <-> %s::{kind}({len(vector)}) LIMIT 1"
            return str(execute(ordered, (str(vector.astype(np.float64).tolist()),))[0][0])

        def files() -> Sequence[Path]:
            return [path for path in running.folder.rglob("*") if path.is_file()]

        def patterns(vector: Vectors) -> list[bytes]:
            stored = "<f2" if kind == "halfvec" else "<f4"
            return [vector.astype(stored).tobytes()]

        def reopen() -> Store:
            return PostgresStore(running.uri, "faces", "seen")

        clear(running.uri)
        return StoreCase(
            fill, reopen, read, search, files, patterns, "float16" if kind == "halfvec" else "float32", holds_nan=False
        )

    return maker


MAKERS: dict[str, Maker] = {
    "pgvector, indexed": table("vector", HNSW),
    "pgvector halfvec": table("halfvec"),
}
