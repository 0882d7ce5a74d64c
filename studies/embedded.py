"""Makes the vectors that come with unface: portraits of nobody, and things, as real encoders see them.

    unface synth --identities 480 --images 20 --out FOLDER/nobody --accept-licence
    unface encode FOLDER/nobody --encoder NAME --out FOLDER/NAME_nobody.parquet      (each of the three encoders)
    unface encode FOLDER/things.zip --encoder NAME --detector none --out FOLDER/NAME_things.parquet
    python -m studies.embedded FOLDER

things.zip holds ``<class>/train_<number>.png`` and ``<class>/test_<number>.png`` of CIFAR-10.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import unface.data
from unface import EmbeddingSet, read_embeddings, write_embeddings
from unface.data import EMBEDDED_ENCODERS

IMAGES = 12
HOME = Path(unface.data.__file__).parent / "nobody"


def main() -> None:
    """Write both sets of every encoder."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("folder", type=Path)
    folder = given.parse_args().folder
    HOME.mkdir(exist_ok=True)
    everywhere = set.intersection(*(accepted(folder, encoder) for encoder in EMBEDDED_ENCODERS))
    for encoder in EMBEDDED_ENCODERS:
        people = first_images(bare(read_embeddings(folder / f"{encoder}_nobody.parquet").unit(), "nobody"), everywhere)
        objects = bare(read_embeddings(folder / f"{encoder}_things.parquet").unit(), "CIFAR-10")
        split = np.array(["train" if "train" in str(name) else "test" for name in objects.ids])
        for what, found in (("people", people), ("things", replace(objects, labels={"split": split}))):
            path = HOME / f"{what}-{encoder}.parquet"
            write_embeddings(found, path, dtype="float16")
            print(f"{path.name}: {len(found.vectors)} × {found.space.dim}, {path.stat().st_size / 1e6:.2f} MB")


def accepted(folder: Path, encoder: str) -> set[str]:
    """Pictures that an encoder has a vector of: recognisers leave out those without a face."""
    return {str(name) for name in read_embeddings(folder / f"{encoder}_nobody.parquet").ids}


def bare(given: EmbeddingSet, source: str) -> EmbeddingSet:
    """Without the other columns that encode writes."""
    return replace(given, labels={}, source=source)


def first_images(people: EmbeddingSet, everywhere: set[str]) -> EmbeddingSet:
    """The first pictures of everybody, in the order of their names, among those that every encoder has."""
    chosen: list[int] = []
    taken = np.zeros(len(people.names), dtype=int)
    for row in np.argsort(people.ids.astype(str), kind="stable"):
        if str(people.ids[row]) in everywhere and taken[people.identities[row]] < IMAGES:
            taken[people.identities[row]] += 1
            chosen.append(int(row))
    return people.take(np.array(chosen))


if __name__ == "__main__":
    main()
