"""The same files sanitised by a Ray cluster of this machine's cores and in one process: CPU, rows and checksums."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ratios import Ratio
from unface.data import make_identities
from unface.erase import ISP, fit_projection
from unface.output.place import place_at
from unface.scale.cluster import ray_executor
from unface.scale.sanitise import records, sanitise_directory
from unface.seeds import stream

DIM, RANK = 512, 192
FILES, ROWS = 16, 62_500


def run() -> list[Ratio]:
    """1,000,000 × 512 in 16 files; starting workers is counted, the cluster is there before."""
    projection = fit_projection(ISP(RANK), make_identities(400, 4, DIM, rank=256, seed=1).unit())
    with tempfile.TemporaryDirectory() as folder:
        source, alone, clustered = (Path(folder) / name for name in ("raw", "alone", "clustered"))
        write_source(source)
        one = cpu_of_all_processes(lambda: sanitise_directory(projection, source, alone))
        with ray_executor("local") as executor:
            ray = cpu_of_all_processes(lambda: sanitise_directory(projection, source, clustered, executor=executor))
        differing = len(records_of(alone) ^ records_of(clustered))
    return [
        Ratio(
            "`apply` on Ray / in one process, 1,000,000 × 512 in 16 files, CPU",
            ray / one,
            1.5,
            detail=f"{ray:.1f} against {one:.1f} s",
        ),
        Ratio("files whose rows or checksum differ between the two", differing, 0, detail=f"of {FILES}"),
    ]


def write_source(folder: Path) -> None:
    """Vectors are noise, as any are to a disk; two more columns are copied with them."""
    folder.mkdir()
    for number in range(FILES):
        vectors = stream(0, "ray_speed", number).standard_normal((ROWS, DIM), np.float32)
        columns = {
            "id": pa.array([f"{number}-{row}" for row in range(ROWS)]),
            "identity": pa.array(np.arange(ROWS) // 20),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM),
        }
        plain = {"compression": "none", "use_dictionary": False}
        pq.write_table(pa.table(columns), folder / f"part-{number:02d}.parquet", **plain)


def records_of(out: Path) -> set[tuple[str, int, str]]:
    return {(done.name, done.rows, done.sha256) for done in records(place_at(out)).values()}


def cpu_of_all_processes(work: Callable[[], object]) -> float:
    """CPU seconds of this process and all below it, those that ended meanwhile included."""
    before = _cpu_so_far()
    work()
    return _cpu_so_far() - before


def _cpu_so_far() -> float:
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)], ticks[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return sum(spent for process, spent in ticks.items() if is_ours(process)) / os.sysconf("SC_CLK_TCK")
