"""Memory of encode, which must not grow with the number of pictures."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.encode_speed import archive
from benchmarks.ratios import Ratio

FEW, MANY, MODEL = 300, 1500, "sscd-distilled"


def run() -> list[Ratio]:
    """Each size in a process of its own, whose peak is then its own too; pictures are made in a third."""
    with tempfile.TemporaryDirectory() as name:
        few, many = (peak(Path(name), pictures) for pictures in (FEW, MANY))
    detail = f"{few / 2**20:.0f} MB for {FEW} pictures, {many / 2**20:.0f} MB for {MANY:,}"
    return [Ratio(f"peak memory of `encode` for {MANY:,} pictures / for {FEW}", many / few, 1.1, detail=detail)]


def peak(folder: Path, pictures: int) -> float:
    """Bytes that encoding so many pictures took at most."""
    spread = folder / f"{pictures}.zip"
    for step in (["make", str(spread), str(pictures)], ["encode", str(spread)]):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.encode_memory", *step], capture_output=True, check=True, text=True
        )
    return float(done.stdout)


def main() -> None:
    """One step."""
    if sys.argv[1] == "make":
        archive(Path(sys.argv[2]), int(sys.argv[3]))
        return
    from unface.data import read_images
    from unface.encode import encode_images, load_encoder
    from unface.faces import load_detector

    source = Path(sys.argv[2])
    encode_images(
        read_images(source),
        load_encoder(MODEL, threads=1),
        source.with_suffix(".parquet"),
        detector=load_detector("yunet"),
        threads=1,
    )
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
