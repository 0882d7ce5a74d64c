"""Two runs on one store at the same time: the second begins while the first is held inside its swap."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.fire.held_run import Announce, Ended, HeldRun
from tests.progress_line import ProgressLine
from tests.stores import cases_faiss, cases_lance, cases_npy, cases_postgres, cases_qdrant
from tests.stores.contract import Maker, StoreCase, Vectors, projection, raw_vectors
from tests.stores.postgres_server import server
from unface.scale import released_vectors

ROWS = 300
PROJECTIONS = {"one": projection(), "other": projection(seed=1)}
Rows = dict[Hashable, NDArray[np.floating]]


@dataclass(frozen=True)
class Kind:
    """How a store is made and read with its own tools, and sanitised."""

    maker: Maker
    url: str
    """In which FOLDER stands for its folder; without one, the arguments SRC and OUT."""
    wrap: Callable[[Announce], None]
    raw: Callable[[Path], Rows | None] = lambda folder: None
    """Raw vectors that are kept beside, for those that can be restored."""
    patience: float = 20.0
    """Seconds after which a run that comes to no step waits for the other one; most never wait."""


@dataclass
class Tally:
    pairs: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    overlaps: Counter[str] = field(default_factory=Counter)
    """Steps of the first run at which the second one began."""
    violations: list[str] = field(default_factory=list)


def fire_pairs(name: str, pairs: int, seed: int, folder: Path, say: Callable[[str], None] = lambda line: None) -> Tally:
    kind, tally = KINDS[name], Tally()
    for which, by in PROJECTIONS.items():
        by.save(folder / f"{which}.safetensors")
    steps = _steps(kind, folder)
    first = next((number for number, step in enumerate(steps) if step.endswith("swap")), 1)
    last = next((number for number, step in enumerate(steps) if step.endswith("swap done")), len(steps) - 1)
    line = ProgressLine(f"pairs on {name}", pairs)
    for number in range(pairs):
        line.tell(number, len(tally.violations))
        rng = np.random.default_rng([seed, number])
        before = len(tally.violations)
        at = int(rng.integers(first, last + 1) if rng.random() < 0.8 else rng.integers(1, len(steps)))
        tally.overlaps[steps[at]] += 1
        tally.violations += [f"pair {number}: {fault}" for fault in _pair(kind, folder, at, rng, tally)]
        tally.pairs += 1
        for violation in tally.violations[before:]:
            say(f"  {name} {violation}")
    return tally


def _steps(kind: Kind, folder: Path) -> list[str]:
    case = _filled(kind, folder)[0]
    run = _run(kind, folder, "one", True, 0)
    steps = [step.name for step in run]
    ended = run.ended()
    assert ended.code == 0, ended
    assert case.read()
    return steps


def _pair(kind: Kind, folder: Path, at: int, rng: np.random.Generator, tally: Tally) -> list[str]:
    case, raw = _filled(kind, folder)
    names = ["one", "one" if rng.random() < 0.5 else "other"]
    purges = [bool(rng.integers(2)) for _ in names]
    runs = [_run(kind, folder, names[0], purges[0], 0)]
    for _ in range(at + 1):
        if runs[0].next() is None:
            break
    runs.append(_run(kind, folder, names[1], purges[1], 1))
    runs[1].next()
    if rng.random() < 0.6:
        _advance(runs[1], 10_000, kind.patience)  # as far as it comes while the first is held
    while any(not run.is_over for run in runs):
        one, other = (runs[0], runs[1]) if rng.random() < 0.5 else (runs[1], runs[0])
        if not _advance(one, int(rng.integers(1, 20)), kind.patience):
            _advance(other, int(rng.integers(1, 20)), kind.patience)
    ends = [run.ended() for run in runs]
    receipts = [_receipt(folder, number) for number in range(2)]
    tally.ends[" and ".join(_short(end) for end in ends)] += 1
    story = (
        f"   [{names} {purges} at {at}: " + " | ".join(f"{end.code} {end.errors.strip()[-200:]}" for end in ends) + "]"
    )
    faults = [fault for end in ends if (fault := end.fault())]
    try:
        faults += _state_faults(kind, folder, case, raw, names, purges, ends, receipts)
    except Exception as error:  # it cannot be read any more
        faults.append(f"{type(error).__name__}: {error}"[:500])
    return [fault + story for fault in faults]


def _advance(run: HeldRun, steps: int, patience: float) -> bool:
    """So many steps on, or until it waits for the other; whether it made one."""
    for number in range(steps):
        run.go()
        if not run.is_held_or_over(patience):
            return number > 0
        if run.next() is None:
            return True
    return True


def _state_faults(
    kind: Kind,
    folder: Path,
    case: StoreCase,
    raw: Rows,
    names: list[str],
    purges: list[bool],
    ends: list[Ended],
    receipts: list[dict[str, Any] | None],
) -> list[str]:
    faults = []
    winners = {name for name, end in zip(names, ends, strict=True) if end.code == 0}
    if len(winners) > 1:
        return ["two projections were both applied, says the exit code"]
    again = None
    if not winners:  # both were refused: the same command must still finish
        run = _run(kind, folder, names[0], purges[0], 0)
        again = run.ended()
        if again.code and "already sanitised" not in again.errors and "finished already" not in again.errors:
            run = _run(kind, folder, names[1], purges[1], 0)
            again = run.ended()
            if again.code and "already sanitised" not in again.errors:
                return [f"both were refused, and so is the next: {again.errors.strip()}"]
        receipts = [*receipts, _receipt(folder, 0)]
    now = case.read()
    matching = [
        name
        for name in PROJECTIONS
        if now.keys() == raw.keys() and all(np.allclose(now[key], _erased(name, raw[key]), atol=2e-6) for key in raw)
    ]
    if len(matching) != 1 or (winners and matching != list(winners)):
        return [f"holds the state of {matching or 'neither projection'}, and {list(winners)} ended well"]
    purged = any(receipt["raw_purged"] for receipt in receipts if receipt)
    kept = kind.raw(folder)
    if purged:
        patterns = [pattern for key in list(raw)[::60] for pattern in case.patterns(raw[key].astype(np.float32))]
        held = [path.name for path in case.files() if any(pattern in path.read_bytes() for pattern in patterns)]
        notes = " ".join(note for receipt in receipts if receipt for note in receipt["notes"])
        faults += [f"{name} holds raw vectors after a purge" for name in held if name not in notes]
        faults += ["raw vectors are kept after a purge"] * (kept is not None)
    elif kind.url and kind.raw is not _nothing:
        same = (
            kept is not None and kept.keys() == raw.keys() and all(np.array_equal(kept[key], raw[key]) for key in raw)
        )
        faults += ["the raw vectors that it says it keeps are gone"] * (not same)
    return faults


def _short(end: Ended) -> str:
    return "done" if end.code == 0 else end.errors.strip().partition(": ")[2].partition(": ")[2][:60]


def _erased(name: str, vector: NDArray[np.floating]) -> NDArray[np.float32]:
    erased: NDArray[np.float32] = released_vectors(PROJECTIONS[name], vector[None], "here")[0]
    return erased


def _filled(kind: Kind, folder: Path) -> tuple[StoreCase, Rows]:
    place = folder / "store"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    case, vectors = kind.maker(place), raw_vectors(ROWS, seed=int.from_bytes(os.urandom(4)))
    ids = case.fill(vectors)
    return case, dict(zip(ids, vectors, strict=True))


def _run(kind: Kind, folder: Path, name: str, purge: bool, number: int) -> HeldRun:
    receipt = folder / f"{number}.json"
    receipt.unlink(missing_ok=True)
    command = ["apply", str(folder / f"{name}.safetensors")]
    if not kind.url:
        source = folder / "store" / "faces"
        source = source if source.is_dir() else source.with_suffix(".parquet")
        return HeldRun([*command, str(source), str(source.with_stem("out")), "--quiet"], kind.wrap, folder)
    url = kind.url.replace("FOLDER", str(folder / "store"))
    if url == "postgresql":
        url = f"{server().uri}&table=faces&column=seen"
    arguments = [*command, "--store", url, "--receipt", str(receipt), "--quiet"]
    return HeldRun(arguments + ["--purge"] * purge, kind.wrap, folder)


def _receipt(folder: Path, number: int) -> dict[str, Any] | None:
    path = folder / f"{number}.json"
    return json.loads(path.read_bytes()) if path.exists() else None


def _wrap_files(announce: Announce) -> None:
    """Every change of a name, and every flush."""
    from unface.stores.beside import BesideFile

    for name in ("swap", "purge"):
        announce.around(BesideFile, name)
    for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "link"), (os, "replace"), (os, "fsync")):
        announce.around(owner, name)


def _wrap_qdrant(announce: Announce) -> None:
    from qdrant_client import QdrantClient

    from unface.stores.qdrant import QdrantStore

    cases_qdrant.without_waiting_for_the_disk()
    for name in ("inspect", "stage", "unmatched", "swap", "purge"):
        announce.around(QdrantStore, name)
    for name in ("upsert", "create_collection", "delete_collection", "update_collection_aliases", "update_collection"):
        announce.around(QdrantClient, name)


def _wrap_lance(announce: Announce) -> None:
    from tests.fire.lance_steps import wrap

    wrap(announce)


def _wrap_postgres(announce: Announce) -> None:
    from tests.fire.postgres import wrap

    wrap(announce)


def _nothing(folder: Path) -> Rows | None:
    return None


def _raw_npy(folder: Path) -> Rows | None:
    path = folder / "store" / "faces.npy.raw"
    return dict(enumerate(np.load(path))) if path.exists() else None


def _raw_faiss(folder: Path) -> Rows | None:
    import faiss

    path = folder / "store" / "faces.index.raw"
    if not path.exists():
        return None
    index = faiss.read_index(str(path))
    return dict(enumerate(index.reconstruct_n(0, index.ntotal)))


def _raw_qdrant(folder: Path) -> Rows | None:
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder / "store"))
    try:
        copies = [each.name for each in client.get_collections().collections if each.name == "faces__unface_raw"]
        if not copies:
            return None
        records, _ = client.scroll(copies[0], limit=10_000, with_vectors=True)
        return {record.id: np.array(record.vector, np.float32) for record in records}
    finally:
        client.close()


def _raw_postgres(folder: Path) -> Rows | None:
    import psycopg

    with psycopg.connect(server().uri) as opened:
        names = "SELECT relname FROM pg_class WHERE starts_with(relname, 'unface_raw') AND relkind = 'r'"
        found = opened.execute(names).fetchall()
        if not found:
            return None
        rows = opened.execute(f"SELECT name, seen::text FROM {found[0][0]}").fetchall()
    return {name: np.array(seen[1:-1].split(","), np.float32) for name, seen in rows}


def _parquet(one_file: bool, folder: Path) -> StoreCase:
    """The source stays as it is; what is read is the output."""

    def fill(vectors: Vectors) -> list[Hashable]:
        ids: list[Hashable] = [f"id {row}" for row in range(len(vectors))]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = pa.table({"id": pa.array(ids, pa.string()), "vector": lists})
        if one_file:
            pq.write_table(table, folder / "faces.parquet")
            return ids
        (folder / "faces").mkdir()
        for part in range(3):
            pq.write_table(table[part * 100 : (part + 1) * 100], folder / "faces" / f"{part}.parquet")
        return ids

    def read() -> Rows:
        table = pq.read_table(folder / ("out.parquet" if one_file else "out"), columns=["id", "vector"])
        found = table.column("vector").combine_chunks().flatten().to_numpy().reshape(len(table), -1)
        return dict(zip(table.column("id").to_pylist(), found, strict=True))

    def no(*_: object) -> Any:
        raise NotImplementedError

    return StoreCase(fill, no, read, no, list)


KINDS = {
    "postgres": Kind(cases_postgres.MAKERS["pgvector, indexed"], "postgresql", _wrap_postgres, _raw_postgres, 0.5),
    "lance": Kind(cases_lance.MAKERS["LanceDB with an index"], "lancedb:FOLDER?table=faces", _wrap_lance, _nothing),
    "qdrant": Kind(cases_qdrant.MAKERS["Qdrant"], "qdrant:FOLDER?collection=faces", _wrap_qdrant, _raw_qdrant),
    "faiss": Kind(cases_faiss.MAKERS["faiss HNSW16"], "faiss:FOLDER/faces.index", _wrap_files, _raw_faiss),
    "npy": Kind(cases_npy.MAKERS["npy float32"], "npy:FOLDER/faces.npy", _wrap_files, _raw_npy),
    "parquet file": Kind(lambda folder: _parquet(True, folder), "", _wrap_files, _nothing),
    "parquet folder": Kind(lambda folder: _parquet(False, folder), "", _wrap_files, _nothing),
}
