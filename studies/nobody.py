"""How people who do not exist compare with real ones: how their scores lie, and whether anybody real is among them.

    python -m studies.nobody NOBODY REAL [--record WHERE]

NOBODY holds <encoder>_nobody.parquet, REAL <encoder>_<set>.parquet for the sets celeba20, celeba5 and lfw, as `unface
encode` writes them; what of sscd-int8 is not there is left out. Prints both tables; ``--record`` keeps them for
docs/data.md, with the machine in words.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.measured import Cell, Table, Value, markdown, write_findings
from unface import EmbeddingSet, read_embeddings, tar_at_far
from unface.seeds import stream

SETS = {"nobody": "nobody", "celeba20": "CelebA (20 each)", "celeba5": "CelebA (5 each)", "lfw": "LFW"}
DRAWN = ("sface", "arcface-mbf", "sscd-int8")
RECOGNISERS = ("sface", "arcface-mbf")
QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99, 0.999)
FAR = 1e-3
BLOCK = 1024


def main() -> None:
    """Both tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("nobody", type=Path)
    given.add_argument("real", type=Path)
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    tables = {
        "scores": distributions(asked.nobody, asked.real),
        "nearest": nearest_people(asked.nobody, asked.real),
    }
    print("\n".join([*markdown(tables["scores"]), "", *markdown(tables["nearest"])]))
    if asked.record:
        write_findings("nobody", command="python -m studies.nobody NOBODY REAL", where=asked.record, tables=tables)


def distributions(nobody: Path, real: Path) -> Table:
    """Quantiles of all mated and all impostor cosines of each set, and the TAR that follows from them."""
    rows: list[list[Cell]] = []
    for encoder in DRAWN:
        for name, people in sets_of(encoder, nobody, real, leave_out="celeba5").items():
            mated, impostor = cosines(people)
            tar = tar_at_far(mated, impostor, FAR).value
            for kind, scores, last in (("mated", mated, tar), ("impostor", impostor, None)):
                found = (short(score) for score in np.quantile(scores, QUANTILES))
                rows.append([encoder, SETS[name], f"{len(scores):,} {kind}", *found, last and short(last)])
    shares = {f"{100 * share:g} %": ".2f" for share in QUANTILES}
    return Table(columns={"encoder": "", "set": "", "pairs": "", **shares, f"TAR at {FAR:g}": ".3f"}, rows=rows)


def nearest_people(nobody: Path, real: Path) -> Table:
    """Highest cosine of each person to anybody in a gallery: median, 95 % and highest, made-up beside real people.

    The highest of many grows with their number: people and pictures of each are equally many, the gallery is the same.
    """
    rows: list[list[Cell]] = []
    for encoder in RECOGNISERS:
        found = sets_of(encoder, nobody, real)
        images = min(int(np.bincount(one.identities).min()) for one in found.values())
        people = min(len(one.names) for one in found.values())
        probes = {name: some(one, people, images) for name, one in found.items()}
        everybody = found.pop("nobody")
        for gallery, shown in found.items():
            cells = [spread(highest([shown], probes[name])) if name != gallery else None for name in SETS]
            rows.append([encoder, SETS[gallery], len(shown), f"{people} × {images}", *cells])
        size, all_images = sum(len(one) for one in found.values()), len(everybody) // len(everybody.names)
        best = spread(highest(list(found.values()), everybody))
        rows.append([encoder, "all", size, f"{len(everybody.names)} × {all_images}", best, None, None, None])
    sets = dict.fromkeys(SETS.values(), ".2f/")
    columns = {"encoder": "", "gallery": "", "pictures": ",", "people × pictures": "", **sets}
    return Table(columns=columns, rows=rows)


def sets_of(encoder: str, nobody: Path, real: Path, leave_out: str = "") -> dict[str, EmbeddingSet]:
    """Unit vectors of every set that is there."""
    paths = {name: (nobody if name == "nobody" else real) / f"{encoder}_{name}.parquet" for name in SETS}
    return {name: read_embeddings(path).unit() for name, path in paths.items() if name != leave_out and path.exists()}


def cosines(people: EmbeddingSet) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of all mated and of all impostor pairs."""
    mated, impostor = [], []
    for start in range(0, len(people), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(people)))
        scores = people.vectors[rows] @ people.vectors.T
        later = np.arange(len(people)) > rows[:, None]
        same = people.identities[rows][:, None] == people.identities
        mated.append(scores[later & same])
        impostor.append(scores[later & ~same])
    return np.concatenate(mated), np.concatenate(impostor)


def some(people: EmbeddingSet, count: int, images: int) -> EmbeddingSet:
    """So many people by lot, the first pictures of each."""
    chosen = stream(0, "studies", "nobody", "people").permutation(len(people.names))[:count]
    return people.take(np.concatenate([np.flatnonzero(people.identities == code)[:images] for code in np.sort(chosen)]))


def highest(galleries: Sequence[EmbeddingSet], people: EmbeddingSet) -> NDArray[np.float64]:
    """(identities,) the highest cosine of any picture of a person to any of the galleries."""
    best = np.full(len(people.names), -1.0)
    for gallery in galleries:
        for start in range(0, len(people), BLOCK):
            part = slice(start, start + BLOCK)
            np.maximum.at(best, people.identities[part], (people.vectors[part] @ gallery.vectors.T).max(axis=1))
    return best


def spread(best: NDArray[np.float64]) -> list[Value]:
    return [short(score) for score in (*np.quantile(best, (0.5, 0.95)), best.max())]


def short(score: float) -> float:
    return float(f"{score:.8g}")


if __name__ == "__main__":
    main()
