"""Where identity lives on real faces: FII, CPI and B* of encoders, raw and after ISP, as one JSON file and a table.

    python -m studies.attribution IMAGES OUT.json --encoder arcface-mbf --encoder sscd-int8 [--record WHERE]

IMAGES is a folder or archive of <identity>/<image>. ISP is fitted on the whole canvases of one half of the
identities, the measures are taken on the other half, and which half is whose is the same for every encoder.
``--record`` keeps the table of docs/results.md, with the machine in words; give it all encoders at once.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from studies.measured import Cell, Table, Value, markdown, write_findings
from unface.attribute import (
    Attribution,
    Canvas,
    LocatedPicture,
    Reader,
    attribute,
    canvas_of,
    locate,
    reader_of,
)
from unface.data import EmbeddingSet, ImageSet, Role, Space, Split, read_images, split_identities
from unface.encode import Encoder, load_encoder
from unface.erase import ISP, Projection, fit_projection
from unface.faces import Detector, Remembered, load_detector
from unface.faces.face_swap import swap_face
from unface.result.numbers import Estimate

HALVES = {Role.FIT: 0.5, Role.TEST: 0.5}
RANK = 192
BATCH = 32
COLUMNS = {"encoder": "", "space": "", **dict.fromkeys(("FII", "CPI(0)", "CPI(8)"), ".3f"), "B*": ""}
COLUMNS |= dict.fromkeys(("B* = 0", "B* = 1"), ".3f")


def main() -> None:
    """Measure each encoder, write what is there after each, and print the table."""
    asked = options()
    images = read_images(asked.images)
    halves = split_identities((image.identity for image in images), shares=HALVES, seed=asked.seed)
    fit, test = (of_role(images, halves, role) for role in (Role.FIT, Role.TEST))
    detector = Remembered(load_detector(asked.detector, accept_licence=asked.accept_licence))
    found: list[Attribution] = []
    for name in asked.encoder:
        encoder = load_encoder(name, accept_licence=asked.accept_licence, threads=asked.threads)
        found.append(study(encoder, fit, test, detector, asked.seed))
        asked.out.write_text(json.dumps([plain(one) for one in found], indent=1) + "\n", encoding="utf-8")
    print("\n".join(markdown(table(found))))
    if asked.record:
        command = "python -m studies.attribution IMAGES OUT.json"
        tables, figures = {"spaces": table(found)}, rests_on(found)
        write_findings("attribution", command=command, where=asked.record, tables=tables, figures=figures)


def study(encoder: Encoder, fit: ImageSet, test: ImageSet, detector: Detector, seed: int) -> Attribution:
    """One encoder."""
    reader = reader_of(encoder)
    eraser = isp_of(encoder, reader, locate(fit, detector))
    return attribute(locate(test, detector), reader, swap_face, projections={"ISP": eraser}, seed=seed)


def isp_of(encoder: Encoder, reader: Reader, pictures: Iterable[LocatedPicture]) -> Projection:
    """Fitted on canvases as they are, seen as attribution will see them."""
    canvases = [made for picture in pictures if isinstance(made := canvas_of(picture, reader.size), Canvas)]
    frames = [reader.view(canvas.image, canvas.face) for canvas in canvases]
    vectors = [reader.encode(frames[start : start + BATCH]) for start in range(0, len(frames), BATCH)]
    space = Space(encoder.name, encoder.card.sha256 or None, encoder.dim, normalised=False)
    names = np.array([canvas.identity for canvas in canvases])
    people = EmbeddingSet.from_arrays(np.concatenate(vectors), names, source="fit half", space=space).unit()
    rank = min(RANK, 3 * encoder.dim // 8, len(people.names) - 1)
    return fit_projection(ISP(rank), people)


def of_role(images: ImageSet, halves: Split, role: Role) -> ImageSet:
    """The pictures of the identities of one role."""
    return images.take([row for row, image in enumerate(images) if halves.role_of(image.identity) is role])


def plain(result: Attribution) -> dict[str, object]:
    """For JSON: all but the names of pictures, of which only the counts by reason are kept."""
    return {
        "encoder": result.encoder,
        "size": result.size,
        "axes": result.axes,
        "quality": result.quality.model_dump(),
        "spaces": [space.model_dump() for space in result.spaces],
        "seed": result.seed,
        "replicates": result.replicates,
    }


def table(results: Sequence[Attribution]) -> Table:
    """A row for each encoder and space."""
    rows: list[list[Cell]] = []
    for result in results:
        for space in result.spaces:
            fii = None if space.fii is None else cell(space.fii.index)
            if space.cpi is None or space.b_star is None:
                rows.append([result.encoder, space.name, fii, *["not measured"] * 5])
                continue
            at, b_star = space.cpi.at, space.b_star
            median = f"{b_star.median.value:g} ({b_star.crossing.value:.2f})"
            ends = map(cell, (at[0].preferred, at[-1].preferred))
            rows.append([result.encoder, space.name, fii, *ends, median, cell(b_star.at_zero), cell(b_star.at_one)])
    return Table(columns=COLUMNS, rows=rows)


def rests_on(results: Sequence[Attribution]) -> dict[str, Cell]:
    """What the numbers were counted on, and how many swaps each encoder takes for the donor."""
    quality = results[0].quality
    counts: dict[str, Cell] = {"pictures": quality.pictures, "usable": quality.usable, "pairs": quality.pairs}
    donors = {f"donor_{one.encoder}": one.spaces[0].cpi.donor_nearer.value for one in results if one.spaces[0].cpi}
    return {**counts, "swaps": quality.swaps, **donors}


def cell(number: Estimate) -> list[Value]:
    """Value and interval."""
    return [round(one, 5) for one in (number.value, number.low, number.high)]


def options() -> argparse.Namespace:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("images", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--encoder", action="append", required=True)
    given.add_argument("--detector", default="yunet")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--threads", type=int, default=None)
    given.add_argument("--accept-licence", action="store_true")
    given.add_argument("--record", metavar="WHERE")
    return given.parse_args()


if __name__ == "__main__":
    main()
