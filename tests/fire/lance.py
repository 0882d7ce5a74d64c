"""A LanceDB table under fire: the run is killed while clients of lancedb append, update and delete."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tests.fire.held_run import HeldRun, Step
from tests.fire.lance_steps import wrap
from tests.fire.target import Found
from tests.fire.traffic import Pool
from tests.stores.contract import DIM

TABLE = "faces"


class LanceSession:
    """Lance repeats a commit that met another one by itself; what it then raises was not committed."""

    def __init__(self, folder: Path) -> None:
        self._table: Any = lancedb.connect(folder).open_table(TABLE)

    def insert(self, row: int, version: int, vector: NDArray[np.float32]) -> None:
        self._latest().add(_rows([row], [version], vector[None]))

    def update(self, row: int, version: int, vector: NDArray[np.float32]) -> None:
        self._latest().update(where=f"id = {row}", values={"version": version, "vector": vector.tolist()})

    def relabel(self, row: int) -> None:
        self._latest().update(where=f"id = {row}", values_sql={"label": "concat(label, '.')"})

    def delete(self, row: int) -> None:
        self._latest().delete(f"id = {row}")

    def version_of(self, row: int) -> int | None:
        found = self._latest().search().where(f"id = {row}").select(["version"]).to_list()
        assert len(found) < 2, f"row {row} is there {len(found)} times"
        return int(found[0]["version"]) if found else None

    def close(self) -> None: ...

    def _latest(self) -> Any:
        self._table.checkout_latest()
        return self._table


class LanceTarget:
    rows, clients, pause = 2000, 2, 0.002
    wrap = staticmethod(wrap)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def url(self) -> str:
        return f"lancedb:{self._folder}?table={TABLE}"

    def fill(self, pool: Pool) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        rows = list(range(self.rows))
        parts = _rows(rows, [0] * len(rows), np.stack([pool.raw(row, 0) for row in rows]))
        table = lancedb.connect(self._folder).create_table(TABLE, parts[:700])
        table.add(parts[700:1400])
        table.add(parts[1400:])
        table.create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))

    def connect(self) -> LanceSession:
        return LanceSession(self._folder)

    def read(self) -> dict[int, Found]:
        rows = lancedb.connect(self._folder).open_table(TABLE).to_arrow()
        vectors = rows.column("vector").combine_chunks().flatten().to_numpy().reshape(-1, DIM)
        pairs = zip(rows.column("id").to_pylist(), rows.column("version").to_pylist(), vectors, strict=True)
        found = {row: Found(version, vector) for row, version, vector in pairs}
        assert len(found) == len(vectors), "a row is there twice"
        return found

    def kept(self) -> None:
        return None

    def faults(self, purged: bool) -> list[str]:
        table: Any = lancedb.connect(self._folder).open_table(TABLE)
        names = [index.name for index in table.list_indices()]
        versions = self._folder / f"{TABLE}.lance" / "_versions"
        left = [path.name for path in [*self._folder.glob(".*"), *versions.glob("d*")]]
        vectors = table.to_arrow().slice(0, 20)
        asked = vectors.column("vector").combine_chunks().flatten().to_numpy().reshape(-1, DIM)
        ids = vectors.column("id").to_pylist()
        missed = [
            row
            for row, vector in zip(ids, asked, strict=True)
            if table.search(vector).nprobes(2).limit(1).to_list()[0]["id"] != row
        ]
        faults = [f"left over: {', '.join(left)}"] * bool(left) + [f"not found by search: {missed}"] * bool(missed)
        return faults + ["no index"] * (names != ["vector_idx"])

    def files(self) -> Iterable[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]

    def lists(self, notes: str, path: Path) -> bool:
        return path.name in notes

    def hit(self, run: HeldRun, step: Step, rng: np.random.Generator, pause: Callable[[], None]) -> None:
        pause()
        run.kill()


def _rows(ids: list[int], versions: list[int], vectors: NDArray[np.float32]) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    labels = pa.array(["new"] * len(ids))
    return pa.table({"id": ids, "version": versions, "vector": lists, "label": labels})
