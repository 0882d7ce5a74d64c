"""Dose–response of ``unface release``: one generator trained on 250, 1,000, 5,000 and 20,000 pictures of people.

    python -m studies.release_dose PICTURES SAMPLES KEEP [--random FOLDER] [--record WHERE]

PICTURES holds CelebA's aligned pictures as <person>/<picture>. SAMPLES holds what each generator drew: a zip, or a
folder, n250_samples, n1000_samples and so on, and n250_result.json with its steps. n250_early_samples and
n250_late_samples are what the generator drew after less and after more training. The people of T_n are the first
n / 5 in order of sha256(name), five pictures each; the holdout are people from the 7,001st on, not seen by any
generator. At most --people of each side are compared. Real pictures get the generator's crop at 64² first, so that all
three sets are alike. "pixels" are the pictures themselves at 16², less their mean. KEEP holds vectors, so that a second
call encodes nothing again.

--random: FOLDER with generated faces that never saw CelebA (arcface-mbf_random.parquet) and arcface-
mbf_celeba9k.parquet, the negative control; and for retrieval <encoder>_celeba9k and <encoder>_copies.parquet.
"""

import argparse
import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studies.measured import Cell, Table, markdown, write_findings
from unface import EmbeddingSet, load_encoder, read_embeddings
from unface.data import decode, write_embeddings
from unface.encode import framed
from unface.prior.diffusion import CELEBA_FACE
from unface.prior.train import CELEBA_CROP
from unface.release import Labelled, retrieval_risk
from unface.release.paper import PaperSet, paper_score
from unface.release.run import Plan, release
from unface.result.words import in_percent, interval

DOSES = (250, 1_000, 5_000, 20_000)
PIXELS = "pixels"
ENCODERS = ("arcface-mbf", PIXELS, "sscd-int8")
FARS = (1e-4, 1e-5)
EACH, AFTER, SIDE, BATCH = 5, 7_000, 64, 128
SLOW = {"sscd-int8": (50, 200)}  # people of each side, and faces of each generator
RECOGNISERS = ("arcface-mbf",)
Picture = NDArray[np.uint8]


def main() -> None:
    """Encode what is not encoded yet, compare, print, and record if asked."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("pictures", type=Path)
    given.add_argument("samples", type=Path)
    given.add_argument("keep", type=Path)
    given.add_argument("--random", type=Path)
    given.add_argument("--people", type=int, default=500, help="of each side, at most")
    given.add_argument("--samples-of", type=int, default=1_000, help="faces of each generator, at most")
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    folders = sorted(asked.pictures.iterdir(), key=lambda person: hashlib.sha256(person.name.encode()).hexdigest())
    sides = {"training": folders[: asked.people], "holdout": folders[AFTER : AFTER + asked.people]}
    samples = _found(asked.samples)
    if missing := [n for n in DOSES if n not in {n for n, _, _ in samples}]:
        print(f"no samples of generators trained on {', '.join(map(str, missing))} pictures", flush=True)
    rows: list[list[Cell]] = []
    for encoder in ENCODERS if samples else ():
        limits = SLOW.get(encoder, (asked.people, asked.samples_of))
        most, faces = min(limits[0], asked.people), min(limits[1], asked.samples_of)
        real = {side: _real(asked.keep, side, people[:most], encoder) for side, people in sides.items()}
        for n, name, path in samples:
            drawn = _drawn(asked.keep, name, path, encoder, faces)
            first = {one.name for one in sides["training"][: n // EACH]}
            rows.append(
                [
                    encoder,
                    n,
                    *_trained(asked.samples, n, name),
                    *_row(drawn, _of(real["training"], first), real["holdout"]),
                ]
            )
            print(*markdown(_table(rows[-1:])), sep="\n", flush=True)
    if asked.random is not None:
        rows.append(["arcface-mbf", "none of them", None, None, None, *_control(asked.random)])
    tables = {"dose": _table(rows)}
    if asked.random is not None:
        tables["retrieval"] = Table(columns=RETRIEVAL, rows=_retrieval(asked.random))
    for table in tables.values():
        print(*markdown(table), sep="\n")
    if asked.record:
        command = "python -m studies.release_dose PICTURES SAMPLES KEEP --random FOLDER"
        write_findings("release", command=command, where=asked.record, tables=tables)


def _row(drawn: EmbeddingSet, training: EmbeddingSet, holdout: EmbeddingSet) -> list[Cell]:
    training, holdout = _distinct(training, holdout)
    result = release(drawn, training, holdout, plan=Plan(far=FARS)).result
    print(result.verdict, *(finding.text for finding in result.findings), sep="\n", flush=True)
    main, vectors = result.main, PaperSet(training.unit().vectors, drawn.unit().vectors, holdout.unit().vectors)
    (paper,) = paper_score({"face": vectors}, training.identities, holdout.identities)
    member, found, auc = main.membership, main.copies, main.separation.auc
    copies: list[Cell] = [None, None, None]  # where there are too few pairs of strangers
    if found and found[0].far == FARS[0]:
        copies = [found[0].copies.numerator, short(found[0].expected), short(found[0].test.p)]
    share = [short(100 * one) for one in (member.share.value, member.share.low, member.share.high)]
    return [
        result.synthetic.rows,
        result.training.people,
        result.holdout.people,
        None if main.linking is None else short(main.linking.tar.value),
        [*share],
        short(100 * member.null),
        short(member.test.p),
        main.exposure.listed,
        *copies,
        [short(auc.value), short(auc.low), short(auc.high)],
        short(paper.average_precision),
        short(paper.fresh),
        short(paper.fresh_auc),
    ]


def _table(rows: list[list[Cell]]) -> Table:
    columns = {
        "encoder": "",
        "trained on pictures": "",
        "steps": ",",
        "times each picture was seen": ".0f",
        "copies by pixels": ".2%",
        "faces drawn": ",",
        "training people": ",",
        "holdout people": ",",
        "links real people": ".0%",
        "nearest in training, %": ".1f",
        "chance, %": ".1f",
        "p": ".2g",
        "exposed people": ",",
        f"copies at FAR {FARS[0]:g}".replace("0.0001", "1e-4"): ",",
        "expected": ".3g",
        "p of copies": ".2g",
        "AUC, training over holdout people": ".3f",
        "paper's mAP, members": ".3f",
        "paper's mAP, fresh people": ".3f",
        "paper's AUC, members over fresh people": ".3f",
    }
    return Table(columns=columns, rows=rows)


def _trained(folder: Path, n: int, name: str) -> tuple[int | None, float | None, float | None]:
    """Steps of a generator, how often it saw each picture, the share of its faces that are copies.

    Such a face is, by pixels, at most half as far from the nearest training picture as from the second nearest.
    """
    path = next(folder.rglob(f"{name}_result.json"), None)
    if path is None:
        return None, None, None
    facts = json.loads(path.read_text(encoding="utf-8"))
    passes = short(facts["steps"] * BATCH / n)
    return int(facts["steps"]), passes, short(facts["memorised"]["half"])


def _control(folder: Path, people: int = 1_000, after: int = 4_000) -> list[Cell]:
    """Generated faces of a generator that was trained on other people (FFHQ)."""
    real = read_embeddings(folder / "arcface-mbf_celeba9k.parquet")
    names = sorted(real.names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    drawn = read_embeddings(folder / "arcface-mbf_random.parquet", identity=None)
    return _row(drawn, *(_of(real, set(names[start : start + people])) for start in (0, after)))


def _retrieval(folder: Path, people: int = 1_000) -> list[list[Cell]]:
    """R(A, S, 2) of one altered copy of a picture of each person: the queries are the person's real pictures."""
    rows: list[list[Cell]] = []
    for encoder in ("arcface-mbf", "sscd-int8", "mobilenet-v2"):
        real, copies = (read_embeddings(folder / f"{encoder}_{name}.parquet") for name in ("celeba9k", "copies"))
        names = sorted(real.names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:people]
        code = {name: number for number, name in enumerate(names)}
        whose, made_of = (np.array([code.get(one.names[c], -1) for c in one.identities]) for one in (real, copies))
        place = {name: row for row, name in enumerate(real.ids.tolist())}
        source = np.array([place.get(name, -1) for name in copies.labels["copy_of"].tolist()], np.int64)
        known = np.flatnonzero((made_of >= 0) & (source >= 0))
        first = known[np.unique(made_of[known], return_index=True)[1]]
        asked = np.flatnonzero(whose >= 0)
        queries = Labelled(real.unit().vectors[asked], whose[asked], asked)
        released = Labelled(copies.unit().vectors[first], made_of[first], source[first])
        found = {(one.identities, one.pictures): one for one in retrieval_risk(queries, released, (2,))}
        for size in sorted({size for size, _ in found}):
            cells = [
                f"{in_percent(share.value)} {interval(share.low, share.high)}"
                for share in (found[size, "same"].share, found[size, "other"].share)
            ]
            rows.append([encoder, size, *cells, short(100 * found[size, "same"].chance)])
    return rows


RETRIEVAL = {"encoder": "", "people": ",", "the same picture, %": "", "another picture, %": "", "chance, %": "g"}


def _of(real: EmbeddingSet, names: set[str]) -> EmbeddingSet:
    return real.take(np.array([real.names[code] in names for code in real.identities], bool))


def _distinct(training: EmbeddingSet, holdout: EmbeddingSet) -> tuple[EmbeddingSet, EmbeddingSet]:
    """Without pictures that CelebA has under two names."""
    both = np.concatenate([training.vectors, holdout.vectors])
    _, first, times = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    once = times[first.ravel()] == 1
    return training.take(once[: len(training)]), holdout.take(once[len(training) :])


def _real(keep: Path, side: str, people: list[Path], encoder: str) -> EmbeddingSet:
    """Pictures of real people as the generator saw them: cut to its square, at 64², as JPEG."""

    def pictures() -> Iterator[tuple[str, str, Picture]]:
        for person in people:
            for path in sorted(person.iterdir())[:EACH]:
                yield f"{person.name}/{path.name}", person.name, small(path)

    return _encoded(keep / f"{side}{len(people)}_{encoder}.parquet", pictures(), encoder)


def small(path: Path) -> Picture:
    """A picture of CelebA as the generator saw it."""
    left, top, size = CELEBA_CROP
    image = Image.fromarray(decode(path.read_bytes()))
    cut = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + size, top + size))
    content = BytesIO()
    cut.save(content, "JPEG", quality=95, subsampling=0)
    return decode(content.getvalue())


def _drawn(keep: Path, name: str, path: Path, encoder: str, most: int) -> EmbeddingSet:
    """The first pictures that a generator drew."""

    def pictures() -> Iterator[tuple[str, str, Picture]]:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in (".jpg", ".png"))
            for one in files[:most]:
                yield one.name, one.name, decode(one.read_bytes())
            return
        with zipfile.ZipFile(path) as archive:
            for file in sorted(one for one in archive.namelist() if one.endswith(".jpg"))[:most]:
                yield file, file, decode(archive.read(file))

    return _encoded(keep / f"{name}_{most}_{encoder}.parquet", pictures(), encoder)


def _encoded(path: Path, pictures: Iterator[tuple[str, str, Picture]], name: str) -> EmbeddingSet:
    """Encode, or read what an earlier call has encoded."""
    if path.exists():
        return read_embeddings(path)
    ids, people, vectors, waiting = [], [], [], []
    encoder = None if name == PIXELS else load_encoder(name, accept_licence=True, threads=1)
    for row, (picture_id, person, picture) in enumerate(pictures):
        ids.append(picture_id)
        people.append(person)
        if encoder is None:
            coarse = np.asarray(
                Image.fromarray(picture).resize((SIDE // 4, SIDE // 4), Image.Resampling.BOX), np.float32
            )
            vectors.append((coarse - coarse.mean()).reshape(1, -1))
            continue
        waiting.append(framed(_face(picture) if name in RECOGNISERS else picture, encoder.card.input))
        if len(waiting) == 32:
            vectors.append(encoder.encode(waiting))
            waiting = []
        if row % 1000 == 999:
            print(path.name, row + 1, flush=True)
    if waiting and encoder is not None:
        vectors.append(encoder.encode(waiting))
    made = EmbeddingSet.from_arrays(np.concatenate(vectors), people, ids=ids, source=path.stem)
    write_embeddings(made, path)
    return made


def _face(picture: Picture) -> Picture:
    """The window in which ArcFace's aligned crop lies: pictures of this set are all aligned alike."""
    left, top, side = (share * SIDE for share in CELEBA_FACE)
    box = (left, top, left + side, top + side)
    return np.asarray(Image.fromarray(picture).resize((112, 112), Image.Resampling.BICUBIC, box=box))


def _found(folder: Path) -> list[tuple[int, str, Path]]:
    """(pictures, name, where) of what each generator drew, the fewest pictures and the shortest training first."""
    named = (
        (re.fullmatch(r"(n(\d+)(_early|_late)?)_samples(\.zip)?", path.name), path)
        for path in folder.rglob("n*_samples*")
    )
    found = [(int(match[2]), match[1], path) for match, path in named if match]
    places = {"_early": 0, "": 1, "_late": 2}
    return sorted(found, key=lambda one: (one[0], places[one[1].removeprefix(f"n{one[0]}")]))


def short(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")


if __name__ == "__main__":
    main()
