"""LFW's 6,000 pairs by the 10-fold rule: wrongly prepared pictures would fall short of what is published.

    python -m studies.lfw_pairs PICTURES pairs.txt --encoder arcface-mbf --encoder sface --accept-licence

PICTURES is a folder or archive of <name>/<name>_0001.jpg. With --detector none they are taken to be aligned at 112
pixels already (github.com/georg-jung/lfw-pairs-aligned) and go to the encoder as they are; with --detector aligned the
face is where that alignment put it, for encoders that want another one (dlib). pairs.txt is LFW's own list.
``--record WHERE`` keeps the table of docs/results.md, with the machine in words; give it all encoders at once.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from studies.measured import Cell, Table, write_findings
from unface.data import ImageSet, read_embeddings, read_images
from unface.encode import encode_images, load_encoder
from unface.faces import ARCFACE_112, Detector, Face, load_detector
from unface.protect.pair_sets import read_pairs, ten_fold

PUBLISHED = {"arcface-mbf": 99.53, "sface": 99.50}
COLUMNS = {"encoder": "", "accuracy %": ".2f", "± over folds": ".2f", "published or measured elsewhere": ".2f"}


class Aligned:
    """Not looked for: the landmarks of a picture of 112 pixels that is aligned."""

    name = "aligned"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """One face that fills the picture."""
        return [Face(np.array([0.0, 0.0, image.shape[1], image.shape[0]]), ARCFACE_112 * image.shape[0] / 112, 1.0)]


def main() -> None:
    """Print one line for each encoder."""
    options = _options()
    pairs, mated, folds = read_pairs(options.pairs.read_text(encoding="utf-8"))
    images = _listed(read_images(options.pictures), pairs)
    detector = _detector(options.detector)
    found: list[list[Cell]] = []
    for name in options.encoder:
        encoder = load_encoder(name, accept_licence=options.accept_licence)
        with TemporaryDirectory() as folder:
            out = Path(folder) / "lfw.parquet"
            encoded = encode_images(images, encoder, out, detector=detector)
            embeddings = read_embeddings(out).unit()
        row = {Path(one).stem: number for number, one in enumerate(embeddings.ids)}
        usable = np.array([a in row and b in row for a, b in pairs])
        rows = np.array([(row.get(a, 0), row.get(b, 0)) for a, b in pairs])
        scores = np.einsum("pd,pd->p", embeddings.vectors[rows[:, 0]], embeddings.vectors[rows[:, 1]])
        scores[~usable] = -1.0  # a picture that could not be used matches nobody
        accuracies = ten_fold(scores, mated, folds)
        mean, error = accuracies.mean(), accuracies.std(ddof=1) / np.sqrt(len(accuracies))
        found.append([name, round(100 * mean, 4), round(100 * error, 4), PUBLISHED.get(name)])
        print(
            f"{name}: {mean:.4%} ± {error:.4%}"
            f" ({len(pairs)} pairs, {np.count_nonzero(~usable)} without both pictures, {dict(encoded.skipped)})",
            flush=True,
        )
    if options.record:
        tables = {"accuracy": Table(columns=COLUMNS, rows=found)}
        write_findings("lfw_pairs", command="python -m studies.lfw_pairs", where=options.record, tables=tables)


def _detector(name: str) -> Detector | None:
    if name == "none":
        return None
    return Aligned() if name == "aligned" else load_detector(name, accept_licence=True)


def _listed(images: ImageSet, pairs: list[tuple[str, str]]) -> ImageSet:
    wanted = {name for pair in pairs for name in pair}
    return images.take([row for row, image in enumerate(images) if Path(image.id).stem in wanted])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--encoder", action="append", required=True)
    parser.add_argument("--detector", default="none")
    parser.add_argument("--accept-licence", action="store_true")
    parser.add_argument("--record", metavar="WHERE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
