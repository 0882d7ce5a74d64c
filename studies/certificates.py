"""What DCTDP, DuetFace and PartialFace let through at 112 × 112 RGB: algebra, pictures, and whose they are.

    python -m studies.certificates PICTURES [--encoder arcface-mbf] [--sheet SHEET] [--record WHERE]

PICTURES holds <person>/<picture> of aligned faces of 112 pixels, at least two of each person
(github.com/georg-jung/lfw-pairs-aligned). ``--sheet`` draws originals above reconstructions, for your own eyes: keep it
as you keep the pictures. ``--record`` keeps the table of docs/protect.md, with the machine in words.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from studies.measured import Cell, Table, markdown, write_findings
from unface.data import read_images
from unface.judge import load_recogniser
from unface.progress import Silent
from unface.protect.certificate import SchemeFrontEnd
from unface.protect.frequency import SCHEMES, VARIANTS, scheme
from unface.protect.measure import Portraits, measure_certificate, portraits
from unface.result.certificate import CertificateResult
from unface.result.numbers import Mean, Share
from unface.seeds import stream

SIZE, SHOWN = 112, 8
COLUMNS = {
    "scheme": "",
    "variant": "",
    "sent / picture": ".1f",
    "dimensions lost": ",.0f",
    "condition": ",.0f",
    "dB under its noise": ".1f",
    "PSNR, dB": ".1f",
    "PSNR of a guess": ".1f",
    "TAR, %": ".1f",
    "TAR of originals": ".1f",
    "TAR of a guess": ".1f",
}


def main() -> None:
    """One row for each scheme and variant."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("--encoder", default="arcface-mbf")
    given.add_argument("--sheet", type=Path)
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    recogniser = load_recogniser(asked.encoder, accept_licence=True)
    people = portraits(read_images(asked.pictures), SIZE, recogniser=None, detector=None, progress=Silent())
    rows: list[list[Cell]] = []
    strips = [people.pixels[:SHOWN]]
    for name in SCHEMES:
        for variant in VARIANTS:
            chosen = scheme(name, variant)
            front_end = SchemeFrontEnd(chosen, SIZE)
            strips.append(reconstructed(front_end, people))
            result = measure_certificate(
                front_end, name=name, variant=variant, given=people, recogniser=recogniser, progress=Silent()
            )
            rows.append(table_row(result))
            print(result.verdict, flush=True)
    if asked.sheet:
        Image.fromarray(np.concatenate([np.concatenate(list(strip), axis=1) for strip in strips])).save(asked.sheet)
    table = Table(columns=COLUMNS, rows=rows)
    print("\n".join(markdown(table)))
    if asked.record:
        figures: dict[str, Cell] = {
            "pictures": len(people.people),
            "people": len(np.unique(people.people)),
            "encoder": asked.encoder,
        }
        write_findings(
            "certificates",
            command="python -m studies.certificates PICTURES",
            where=asked.record,
            tables={"schemes": table},
            figures=figures,
        )


def table_row(result: CertificateResult) -> list[Cell]:
    """Ranges over the maps that a front end may draw."""
    assert result.pictures is not None, "pictures were given"
    pictures, identity = result.pictures, result.pictures.identity
    assert identity is not None, "a recogniser was given"
    conditions = [one.condition or 0.0 for one in result.maps]
    return [
        result.front_end,
        result.variant,
        result.maps[0].outputs / result.inputs,
        ranged(*result.lost),
        ranged(min(conditions), max(conditions)),
        result.noise_psnr,
        mean(pictures.psnr),
        mean(pictures.guess_psnr),
        share(identity.reconstructions),
        share(identity.originals),
        share(identity.guesses),
    ]


def reconstructed(front_end: SchemeFrontEnd, people: Portraits) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """(8, size, size, 3) of the first pictures; the guess is the mean picture of everybody else."""
    pixels = people.pixels.astype(np.float64)
    guesses = np.stack([pixels[people.people != person].mean(axis=0) for person in people.people[:SHOWN]])
    solved, _ = front_end.reconstruct(pixels[:SHOWN], guesses, stream(0, "studies", "certificates"))
    return np.rint(np.clip(solved, 0, 255)).astype(np.uint8)


def ranged(least: float, most: float) -> Cell:
    return least if least == most else [least, most]


def mean(found: Mean) -> Cell:
    return [rounded(found.value), rounded(found.low), rounded(found.high)]


def share(found: Share) -> Cell:
    return [rounded(100 * end) for end in (found.value, found.low, found.high)]


def rounded(number: float) -> float:
    return float(f"{number:.5g}")


if __name__ == "__main__":
    main()
