"""Sanitising and fitting over folders of Parquet against matrix products, the disk, and a plain loop over pyarrow."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ratios import Ratio
from unface.auditing import fit_certified, fit_streamed
from unface.data import Space
from unface.data.parquet import opened_parquet, row_batches
from unface.erase import Projection
from unface.output.place import place_at
from unface.scale import sanitise_directory
from unface.scale.stream import batch_vectors, erase_parquet
from unface.seeds import stream
from unface.threads import available_cores, one_blas_thread, parallel_map

FILES, ROWS, DIM, RANK, IMAGES = 16, 125_000, 512, 192, 20
BATCH, PIECE = 16_384, 1_024


@dataclass(frozen=True)
class Run:
    """Of a process of its own."""

    wall: float
    cpu: float
    peak: float
    """Gigabytes."""


def run() -> list[Ratio]:
    """2,000,000 × 512 in 16 files with an id and two other columns; 100,000 identities of 20."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own: one that is started inherits the peak of the one that starts it.
        alone("make", folder)
        ours = [alone("sanitise", folder / str(files), folder / "ours") for files in (4, 8, 16)]
        plain = alone("plain", folder / "16", folder / "plain")
        shares = stage_shares(folder / "1" / "part-00.parquet", folder / "shares")
        products, disk = product_seconds(), disk_seconds(folder)
        fit, reading, certified = (alone(work, folder / "16") for work in ("fit", "read", "certified"))
        return [
            *apply_ratios(ours, plain, products, disk, shares),
            Ratio(
                "streamed ISP fit of 100,000 identities × 20, without a certificate / reading its Parquet, CPU",
                fit.cpu / reading.cpu,
                2,
                detail=f"{fit.cpu:.1f} against {reading.cpu:.1f} s; {certified.cpu:.1f} s with its certificate",
                figures={
                    "fit_cpu_seconds": fit.cpu,
                    "certificate_cpu_seconds": certified.cpu - fit.cpu,
                    "certified_times_reading": certified.cpu / reading.cpu,
                },
            ),
            Ratio("streamed against in-memory fit, largest difference / 1e-6", fit_difference(folder / "1") / 1e-6, 1),
        ]


def apply_ratios(ours: list[Run], plain: Run, products: float, disk: float, shares: dict[str, float]) -> list[Ratio]:
    whole, floor = ours[-1], max(products, disk)
    peaks = ", ".join(f"{one.peak:.2f}" for one in ours)
    detail = f"{whole.wall:.1f} s, {whole.cpu:.1f} of CPU; products {products:.1f}, disk {disk:.1f}"
    detail += "; CPU by stage: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return [
        Ratio(
            "`apply` of 2,000,000 × 512, Parquet to Parquet, rank 192, wall / the larger of its products and its bytes",
            whole.wall / floor,
            3,
            detail=detail,
            figures={
                "apply_wall_seconds": whole.wall,
                "apply_cpu_seconds": whole.cpu,
                **{f"apply_share_{name}": share for name, share in shares.items()},
            },
        ),
        Ratio(
            "a plain loop of pyarrow and NumPy / the same, wall",
            plain.wall / whole.wall,
            1.4,
            True,
            f"{plain.wall:.1f} against {whole.wall:.1f} s; CPU {plain.cpu:.1f} against {whole.cpu:.1f}",
        ),
        Ratio("its peak memory, GB", whole.peak, 1.2, detail=f"{peaks} GB at 0.5, 1 and 2 M"),
        Ratio(
            "its peak memory at 2,000,000 vectors / at 500,000", whole.peak / ours[0].peak, 1.15, detail=f"{peaks} GB"
        ),
    ]


def stage_shares(source: Path, out: Path) -> dict[str, float]:
    """Of the CPU time of one file, which ``sanitise_directory`` hashes, reads, erases, writes and hashes again."""
    out.mkdir()
    given, sink = projection(), place_at(str(out))
    started = time.process_time()
    place_at(str(source.parent)).sha256(source.name)
    hashing = time.process_time() - started
    started = time.process_time()
    erasing = 0.0
    with source.open("rb") as file, opened_parquet(file, source.name) as opened, one_blas_thread():
        for batch in row_batches(opened, source.name, PIECE):
            before = time.process_time()
            given.kernel.rows(batch_vectors(batch, "vector", DIM, source.name, 0), threads=1)
            erasing += time.process_time() - before
    reading = time.process_time() - started - erasing
    started = time.process_time()
    with source.open("rb") as file, sink.written(source.name) as written:
        erase_parquet(given, file, source.name, written, "vector", 1, ahead=False)
    writing = time.process_time() - started - reading - erasing - hashing
    # The copy is hashed while it is written.
    seconds = {"reading": reading, "erasing": erasing, "writing": writing, "hashing": 2 * hashing}
    return {name: each / sum(seconds.values()) for name, each in seconds.items()}


def make(folder: Path) -> None:
    """The files once, and folders with 1, 4, 8 and all of them."""
    base = stream(0, "vectors").standard_normal((ROWS, DIM), dtype=np.float32)
    base += np.repeat(stream(0, "means").standard_normal((ROWS // IMAGES, DIM), dtype=np.float32), IMAGES, axis=0)
    for name in ("1", "4", "8", "16"):
        (folder / name).mkdir()
    for number in range(FILES):
        row = np.arange(number * ROWS, (number + 1) * ROWS)
        vectors = np.roll(base, 7 * number, axis=1)
        table = pa.table(
            {
                "id": pa.array(np.char.add("row-", row.astype(str))),
                "identity": pa.array((row // IMAGES).astype(str)),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM),
                "price": pa.array(row / 3),
            }
        )
        path = folder / "16" / f"part-{number:02d}.parquet"
        pq.write_table(table, path)
        for name in ("1", "4", "8"):
            if number < int(name):
                (folder / name / path.name).hardlink_to(path)


def projection() -> Projection:
    basis = np.linalg.qr(stream(0, "basis").standard_normal((DIM, RANK)))[0]
    return Projection("isp", np.ascontiguousarray(basis), np.ones(RANK), Space(None, None, DIM, True))


def sanitise(source: Path, out: Path) -> None:
    sanitise_directory(projection(), source, out, force=True)


def plain(source: Path, out: Path) -> None:
    """What one would write first: batches, the same arithmetic, and every default."""
    basis = projection().directions
    out.mkdir()
    for path in sorted(source.iterdir()):
        file = pq.ParquetFile(path)
        with pq.ParquetWriter(out / path.name, file.schema_arrow) as writer:
            for batch in file.iter_batches(BATCH):
                column = batch.schema.get_field_index("vector")
                vectors = batch.column(column).flatten().to_numpy().reshape(-1, DIM).astype(np.float64)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                vectors -= (vectors @ basis) @ basis.T
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                erased = pa.array(vectors.astype(np.float32).reshape(-1))
                kept = batch.set_column(column, "vector", pa.FixedSizeListArray.from_arrays(erased, DIM))
                writer.write_batch(kept.cast(file.schema_arrow))


def fit(source: Path) -> None:
    """Without a certificate, whose cost does not grow with the collection."""
    fit_streamed(source, "isp", rank=RANK, hold_out=0)


def certified(source: Path) -> None:
    fit_streamed(source, "isp", rank=RANK)


def read(source: Path) -> None:
    for path in sorted(source.iterdir()):
        for _ in pq.ParquetFile(path).iter_batches(BATCH, columns=["vector", "identity"]):
            pass


WORK: dict[str, Callable[..., None]] = {
    "make": make,
    "sanitise": sanitise,
    "plain": plain,
    "fit": fit,
    "certified": certified,
    "read": read,
}


def alone(work: str, *folders: Path) -> Run:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale_speed", work, *map(str, folders)],
        cwd=Path(__file__).resolve().parent.parent,
        stdout=subprocess.PIPE,
        check=True,
    )
    return Run(**json.loads(done.stdout))


def product_seconds() -> float:
    """Of the two thin products of all rows in float64 on all cores, from a sixteenth of them."""
    left = projection().directions
    right = np.ascontiguousarray(left.T)
    block = stream(0, "block").standard_normal((256, DIM))

    def work(_: int) -> None:
        for _ in range(ROWS // 256 // (2 * available_cores())):
            (block @ left) @ right

    with one_blas_thread():
        best = min(wall_seconds(lambda: parallel_map(work, range(2 * available_cores()))) for _ in range(3))
    return best * FILES


def disk_seconds(folder: Path) -> float:
    """Of reading and writing as many bytes as there are, from a sixteenth of them, to the disk and not to memory."""
    size = ROWS * DIM * 4
    content = os.urandom(1 << 20)
    path = folder / "disk"

    def write() -> None:
        with path.open("wb") as file:
            for _ in range(size >> 20):
                file.write(content)
            os.fsync(file.fileno())

    def read_back() -> None:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while file.read(1 << 20):
                pass

    seconds = wall_seconds(write) + wall_seconds(read_back)
    path.unlink()
    return seconds * FILES


def fit_difference(folder: Path) -> float:
    streamed, whole = fit_streamed(folder, rank=RANK), fit_certified(folder, rank=RANK)
    maps = [one.directions @ one.directions.T for one in (streamed, whole)]
    return float(np.abs(maps[0] - maps[1]).max())


def wall_seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """One piece of work in this process, measured."""
    work, *folders = sys.argv[1:]
    before = time.process_time()
    wall = wall_seconds(lambda: WORK[work](*map(Path, folders)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"wall": wall, "cpu": time.process_time() - before, "peak": peak}))


if __name__ == "__main__":
    main()
