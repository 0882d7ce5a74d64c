"""The nearest person of every synthetic face, streamed from Parquet, against the bare product; and a million on a GPU.

python -m benchmarks.release_search gpu     # one JSON line: 10⁶ × 10⁶ random unit vectors on a GPU
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Ratio, cpu_seconds
from unface.data import EmbeddingSet, write_embeddings
from unface.data.embeddings import Columns
from unface.pairs import compared, nearest_between
from unface.release.faces import compare, parquet_faces
from unface.threads import one_blas_thread

DIMENSION, FACES, PEOPLE = 512, 100_000, 100_000


def run() -> list[Ratio]:
    """10⁵ × 10⁵ with both sides streamed from Parquet: time in one run, memory in a process of its own."""
    with _two_files(FACES, PEOPLE) as (left, right):
        ours = cpu_seconds(lambda: search(left, right))
        bare = cpu_seconds(lambda: bare_products(_vectors(FACES, 1), _vectors(PEOPLE, 2)))
        pairs = FACES * PEOPLE
        return [
            Ratio(
                "nearest on both sides of 10⁵ × 10⁵ vectors streamed from Parquet / the bare product, CPU",
                ours / bare,
                1.2,
                detail=f"{1e9 * ours / pairs:.1f} against {1e9 * bare / pairs:.1f} ns a pair, {ours:.0f} s of CPU",
                figures={"cpu_seconds": ours, "bare_cpu_seconds": bare},
            ),
            Ratio("peak memory of 10⁵ × 10⁵ streamed from Parquet, MB", peak_megabytes(left, right), 1000),
        ]


def search(left: Path, right: Path) -> tuple[float, float]:
    """The mean best score of either side, so that nothing is left out."""
    one, other = compare(*(parquet_faces(path, Columns(identity=None)) for path in (left, right)))
    return float(one.scores.mean()), float(other.scores.mean())


def bare_products(left: NDArray[np.float32], right: NDArray[np.float32], side: int = 2048) -> None:
    """The scores and nothing else, from vectors in memory, in the block shape that is fastest here."""
    out = np.empty((side, side), np.float32)
    with one_blas_thread():
        for i in range(0, len(left), side):
            for j in range(0, len(right), side):
                one, other = left[i : i + side], right[j : j + side]
                np.matmul(one, other.T, out=out[: len(one), : len(other)])


def peak_megabytes(left: Path, right: Path) -> float:
    """Peak resident memory of a process that does only this."""
    program = "import sys; from pathlib import Path; from benchmarks.release_search import search;"
    program += "search(*map(Path, sys.argv[1:])); print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    command = [sys.executable, "-c", program, str(left), str(right)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1024


def gpu(rows: int = 1_000_000, checked: int = 2_000) -> dict[str, float | int | str]:
    """Random unit vectors made on the device; exact nearest on both sides; some rows against float64 by hand."""
    import torch

    def made(seed: int) -> NDArray[np.float32]:
        generator = torch.Generator("cuda").manual_seed(seed)
        vectors = torch.randn(rows, DIMENSION, device="cuda", generator=generator)
        unit: NDArray[np.float32] = (vectors / vectors.norm(dim=1, keepdim=True)).cpu().numpy()
        return unit

    small = compared(made(3)[:40_000], made(4)[:40_000])
    nearest_between(small, device="cuda")  # libraries are loaded and kernels chosen
    left, right = made(1), made(2)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    began = time.monotonic()
    one, other = nearest_between(compared(left, right), device="cuda")
    seconds = time.monotonic() - began
    again_left, again_right = compared(left[:4096], right[:4096]), compared(left[:4096], right[:4096])
    agree = all(
        np.array_equal(a.rows, b.rows) and np.array_equal(a.scores, b.scores)
        for a, b in zip(nearest_between(again_left, device="cuda"), nearest_between(again_right), strict=True)
    )
    wrong = 0
    everyone = torch.from_numpy(right).cuda().double()
    for start in range(0, checked, 250):
        scores = torch.from_numpy(left[start : start + 250]).cuda().double() @ everyone.T
        wrong += int((scores.argmax(dim=1).cpu().numpy() != one.rows[start : start + 250]).sum())
    return {
        "rows": rows,
        "dimension": DIMENSION,
        "seconds": round(seconds, 2),
        "pairs_a_second": rows * rows / seconds,
        "bare_tf32_seconds": round(_bare_gpu(left, right), 2),
        "differences_from_float64_argmax": wrong,
        "checked_rows": checked,
        "same_as_cpu_on_4096": str(agree),
        "gpu_memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        "mean_best": float(one.scores.mean()),
        "mean_best_other_side": float(other.scores.mean()),
        "device": torch.cuda.get_device_name(),
    }


def _bare_gpu(left: NDArray[np.float32], right: NDArray[np.float32], side: int = 32_768) -> float:
    """Seconds of the TF32 products alone."""
    import torch

    torch.set_float32_matmul_precision("high")
    one, other = (torch.from_numpy(each).cuda() for each in (left, right))
    out = torch.empty(side, side, device="cuda")
    torch.cuda.synchronize()
    began = time.monotonic()
    for i in range(0, len(one), side):
        for j in range(0, len(other), side):
            rows, columns = one[i : i + side], other[j : j + side]
            torch.matmul(rows, columns.T, out=out.view(-1)[: len(rows) * len(columns)].view(len(rows), len(columns)))
    torch.cuda.synchronize()
    return time.monotonic() - began


@contextmanager
def _two_files(left: int, right: int) -> Iterator[tuple[Path, Path]]:
    with TemporaryDirectory() as folder:
        paths = []
        for number, rows in enumerate((left, right), 1):
            path = Path(folder) / f"{number}.parquet"
            vectors = _vectors(rows, number)
            write_embeddings(EmbeddingSet.from_arrays(vectors, np.arange(rows) // 2), path)
            paths.append(path)
        yield paths[0], paths[1]


def _vectors(rows: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((rows, DIMENSION), np.float32)


def record(file: Path, where: str) -> None:
    """What ``gpu`` printed, as a claim under docs/measured/speed."""
    from studies.measured import Cell, Table, write_findings

    from benchmarks.record import COLUMNS

    found = json.loads(file.read_text(encoding="utf-8"))
    seen = f"the bare TF32 product {found['bare_tf32_seconds']} s, {found['gpu_memory_gb']} GB of GPU memory"
    claim = "seconds of 10⁶ × 10⁶ vectors of 512 dimensions, nearest on both sides, GPU"
    rows: list[list[Cell]] = [
        [claim, found["seconds"], 60, "at most", seen],
        ["rows of 2,000 that differ from float64", found["differences_from_float64_argmax"], 0, "at most", ""],
    ]
    command = "python -m benchmarks.release_search gpu"
    tables = {"ratios": Table(columns=COLUMNS, rows=rows)}
    write_findings("speed/release_search_gpu", command=command, where=where, tables=tables)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["gpu"]:
            print(json.dumps(gpu()))
        case ["record", file, where]:
            record(Path(file), where)
        case _:
            sys.exit(__doc__)
