"""Known truth for ``unface release``: does it stay silent where nothing was copied, and find what was planted?

    python -m studies.release_planted EMBEDDINGS [TRAITS.npz] [--record WHERE]

EMBEDDINGS holds arcface-mbf_celeba9k.parquet, arcface-mbf_copies.parquet (altered copies of pictures of the first 1,600
people) and arcface-mbf_random.parquet (generated faces), the first two also for sscd-int8; TRAITS.npz is what
``studies.release_pictures PICTURES OUT.npz 600`` wrote. People in order of sha256(name). The method (what is usual at a
place, and the squares in the joint list) was chosen on the first 200, on 600 from the 4,001st and 600 from the 7,001st
on. None of them is used here.
"""

import argparse
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from studies.measured import Cell, Table, Value, markdown, write_findings
from unface import EmbeddingSet, read_embeddings, verify
from unface.faces import TRAITS
from unface.release import enrichment, exposed, fused, measure_membership, person_scores
from unface.release.copies import drawn_people
from unface.release.crowding import COHORT, crowding
from unface.release.exposure import Exposure, PersonScores
from unface.release.paper import PaperSet, paper_score
from unface.seeds import stream

Vectors = NDArray[np.float32]
SPLITS, SPLIT = 200, 400  # of nothing planted: how many, and people a side (and synthetic faces)
SHARES = (0.01, 0.05, 0.20)
REPEATS, TRAIT_REPEATS = 20, 30
TRAINING, HOLDOUT, CLEAN, EACH = 500, 1500, 1000, 2
COPIED, FIRST_FRESH, FIRST_CLEAN, LAST_CLEAN, FIRST_HOLDOUT = range(200, 1600), 1600, 4600, 6000, 7600
SURE = 0.01
VIEWS, DRAWN = range(len(TRAITS)), 500  # DRAWN: faces in a set with planted traits
LISTS = (*TRAITS, "all together", *(f"{trait}, similarity alone" for trait in TRAITS[1:]))


def main() -> None:
    """All tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("embeddings", type=Path)
    given.add_argument("traits", type=Path, nargs="?")
    given.add_argument("--record", metavar="WHERE")
    asked = given.parse_args()
    tables, figures = on_vectors(asked.embeddings)
    if asked.traits is not None:
        more, others = on_traits(asked.traits)
        tables |= more
        figures |= others
    for name, found in tables.items():
        print(f"\n{name}\n", *markdown(found), sep="\n")
    print(figures)
    if asked.record:
        command = "python -m studies.release_planted EMBEDDINGS TRAITS.npz"
        write_findings("release_planted", command=command, where=asked.record, tables=tables, figures=figures)


def on_vectors(folder: Path) -> tuple[dict[str, Table], dict[str, Cell]]:
    """Nothing planted, and copies at three shares; the paper's score beside."""
    people = {name: People.read(folder / f"{name}_celeba9k.parquet") for name in ("arcface-mbf", "sscd-int8")}
    random = read_embeddings(folder / "arcface-mbf_random.parquet").unit().vectors
    real = people["arcface-mbf"]
    p, nearest, listed = null(real, random)
    figures: dict[str, Cell] = {
        "null_splits": SPLITS,
        "null_people": SPLIT,
        "null_ks": short(kstest(p, "uniform").statistic),
        "null_ks_p": short(kstest(p, "uniform").pvalue),
        "null_below_5": short(float((p <= 0.05).mean())),
        "null_nearest_below_5": short(float((nearest <= 0.05).mean())),
        "null_nearest_below_1": short(float((nearest < SURE).mean())),
        "null_listing": short(float((listed > 0).mean())),
        "null_quantiles": [short(value) for value in np.quantile(p, (0.1, 0.25, 0.5, 0.75, 0.9))],
    }
    print(figures, flush=True)
    rows: dict[bool, list[list[Cell]]] = {False: [], True: []}
    for name, real in people.items():
        copies = People.read(folder / f"{name}_copies.parquet")
        clean = random if name == "arcface-mbf" else real.some(range(FIRST_CLEAN, LAST_CLEAN), 1).vectors
        words = "generated faces" if name == "arcface-mbf" else "other real people"
        one_holdout = name != "arcface-mbf"
        found = planted_copies(real, copies, clean, one_holdout=one_holdout)
        rows[one_holdout] += [[name, words, *row] for row in found]
        print(name, one_holdout, *found, sep="\n", flush=True)
    columns = {
        "encoder": "",
        "clean set": "",
        "planted": "",
        "share of the set": ".0%",
        "people": "",
        "of them listed": ".0%",
        "of the listed, not planted": ".1%",
        "runs where the permutation test has p < 0.01": ".0%",
        "runs where the nearest people have p < 0.01": ".0%",
    }
    score = paper_table(people["arcface-mbf"], random, People.read(folder / "arcface-mbf_copies.parquet"))
    tables = {
        "copies": Table(columns=columns, rows=rows[False]),
        "copies, one holdout": Table(columns=columns, rows=rows[True]),
        "paper": score,
    }
    return tables, figures


@dataclass(frozen=True, eq=False)
class Some:
    """Unit vectors and whose they are, people numbered without gaps."""

    vectors: Vectors
    people: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class People:
    """A set whose people stand in order of sha256(name)."""

    faces: EmbeddingSet
    rows: list[NDArray[np.int64]]  # of each person

    @classmethod
    def read(cls, path: Path) -> "People":
        faces = read_embeddings(path).unit()
        order = sorted(range(len(faces.names)), key=lambda code: hashlib.sha256(faces.names[code].encode()).hexdigest())
        first = np.argsort(faces.identities, kind="stable")
        parts = np.split(first, np.cumsum(np.bincount(faces.identities))[:-1])
        return cls(faces, [parts[code] for code in order])

    def some(self, people: Sequence[int], each: int = EACH) -> Some:
        """The first pictures of some people."""
        rows = [self.rows[one][:each] for one in people]
        return Some(
            self.faces.vectors[np.concatenate(rows)], np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        )

    def name(self, person: int) -> str:
        """Of a person by place."""
        return str(self.faces.names[self.faces.identities[self.rows[person][0]]])


@dataclass(frozen=True, eq=False)
class Side:
    """Training or holdout as a synthetic set sees it: the best similarity of each picture, the best of each face."""

    best: Vectors  # of each picture, over all faces
    faces: Vectors  # (faces,), over all pictures
    nearest: NDArray[np.int64]  # (faces,), the person

    @classmethod
    def of(cls, real: Some, faces: Vectors) -> "Side":
        scores = faces @ real.vectors.T
        return cls(scores.max(axis=0), scores.max(axis=1), real.people[scores.argmax(axis=1)])

    def above(self, usual: Vectors) -> "Side":
        """Pictures' similarities above what is usual at their place."""
        return replace(self, best=self.best - usual)


def scored(training: Side, holdout: Side, ours: Some, others: Some, seed: int) -> tuple[PersonScores, PersonScores]:
    return (
        person_scores(training.best, ours.people, int(ours.people.max()) + 1, seed=seed, side="training"),
        person_scores(holdout.best, others.people, int(others.people.max()) + 1, seed=seed, side="holdout"),
    )


def membership_p(training: Side, holdout: Side, ours: Some, others: Some, seed: int) -> float:
    """Of the exact permutation test."""
    count, rest = int(ours.people.max()) + 1, int(others.people.max()) + 1
    nearest = np.where(training.faces >= holdout.faces, training.nearest, count + holdout.nearest)
    return measure_membership(nearest, count, rest, seed=seed).permuted.p


def usual(ours: Some, others: Some) -> tuple[Vectors, Vectors]:
    """What is usual at the place of each training and of each holdout picture, as ``unface release`` computes it."""
    whose = np.concatenate([ours.people, others.people + int(ours.people.max()) + 1])
    both = np.concatenate([ours.vectors, others.vectors])
    drawn = drawn_people(whose, COHORT, 0)
    found = crowding([both], whose, both[drawn], whose[drawn])
    return found[: len(ours.people)], found[len(ours.people) :]


def null(real: People, random: Vectors) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(splits,) where nobody was trained on, random people and random faces: p-values of the permutation test and of
    the nearest people, and how many people are listed."""
    p, nearest, listed = np.empty(SPLITS), np.empty(SPLITS), np.empty(SPLITS, dtype=np.int64)
    people = np.r_[COPIED, FIRST_FRESH:4000, FIRST_CLEAN:7000, FIRST_HOLDOUT : len(real.rows)]
    for number in range(SPLITS):
        rng = stream(number, "release null", "above usual")
        chosen = rng.permutation(people)[: 2 * SPLIT].tolist()
        faces = random[rng.permutation(len(random))[:SPLIT]]
        ours, others = real.some(chosen[:SPLIT]), real.some(chosen[SPLIT:])
        sides = Side.of(ours, faces), Side.of(others, faces)
        p[number] = membership_p(*sides, ours, others, number)
        above = [side.above(one) for side, one in zip(sides, usual(ours, others), strict=True)]
        scores = scored(above[0], above[1], ours, others, number)
        nearest[number], listed[number] = enrichment(*scores).p, exposed(*scores).people
    return p, nearest, listed


def planted_copies(real: People, copies: People, clean: Vectors, *, one_holdout: bool) -> list[list[Cell]]:
    """By kind and share: how many people, the share of them listed, of the listed who were not planted, of runs where
    the permutation test is sure, and where the nearest people are."""
    if any(real.name(person) != copies.name(person) for person in COPIED):
        raise SystemExit("copies: not of the first 1,600 people in order of sha256(name)")
    # The rate of false discoveries is an average over holdouts; with one for all runs it is that holdout's.
    last = real.some(range(FIRST_HOLDOUT, len(real.rows)))
    fresh = np.r_[FIRST_FRESH:4000, FIRST_HOLDOUT : len(real.rows)]
    outcomes: dict[tuple[str, float], list[tuple[float, float, bool, bool]]] = {}
    for repeat in range(REPEATS):
        rng = stream(repeat, "release planted", "above usual")
        chosen = rng.permutation(COPIED)[:TRAINING].tolist()
        ours = real.some(chosen)
        others = last if one_holdout else real.some(rng.permutation(fresh)[:HOLDOUT].tolist())
        ordinary = usual(ours, others)
        for kind in ("exact copies", "altered copies"):
            for share in SHARES:
                count = round(share * CLEAN)
                base = clean[rng.permutation(len(clean))[: CLEAN - count]]
                picked = rng.permutation(TRAINING)[:count]
                source = real if kind == "exact copies" else copies
                planted = np.stack([source.some([chosen[one]], 1).vectors[0] for one in picked.tolist()])
                faces = np.concatenate([base, planted])
                sides = Side.of(ours, faces), Side.of(others, faces)
                above = [side.above(one) for side, one in zip(sides, ordinary, strict=True)]
                scores = scored(above[0], above[1], ours, others, repeat)
                sure = membership_p(*sides, ours, others, repeat) < SURE, enrichment(*scores).p < SURE
                outcomes.setdefault((kind, share), []).append((*outcome(exposed(*scores), picked), *sure))
    return [[kind, share, round(share * CLEAN), *summary(found)] for (kind, share), found in outcomes.items()]


def outcome(found: Exposure, planted: NDArray[np.int64]) -> tuple[float, float]:
    """Share of the planted people who are listed, and of the listed those who were not planted."""
    true = np.isin(np.flatnonzero(found.listed), planted)
    return float(true.sum() / len(planted)), float((~true).mean()) if len(true) else 0.0


def summary(outcomes: Sequence[tuple[float, ...]]) -> list[Cell]:
    """Means over repeats, the first two with the 95 % interval of the mean."""
    power, accident, *sure = (np.array(column, dtype=float) for column in zip(*outcomes, strict=True))
    draws = stream(0, "release repeats").integers(0, len(power), (2000, len(power)))
    ends = [np.quantile(one[draws].mean(axis=1), (0.025, 0.975)) for one in (power, accident)]
    means: list[Cell] = [
        [short(one.mean()), *map(short, two)] for one, two in zip((power, accident), ends, strict=True)
    ]
    return [*means, *(short(one.mean()) for one in sure)]


def paper_table(real: People, random: Vectors, copies: People) -> Table:
    """The paper's score on the same people, whole faces: clean, with copies, and with real people as "synthetic"."""
    ours, fresh = real.some(range(1000), 5), real.some(range(7000, 8000), 5)
    altered = copies.some(range(400), 1).vectors
    strangers = real.some(range(4000, 6000), 1).vectors
    exact = real.some(range(400), 1).vectors
    sets = {
        "generated faces": random[:2000],
        "generated, 20 % exact copies": np.concatenate([random[:1600], exact]),
        "generated, 20 % altered copies": np.concatenate([random[:1600], altered]),
        "real people who were never trained on": strangers,
    }
    rows: list[list[Cell]] = []
    for name, synthetic in sets.items():
        (face,) = paper_score({"face": PaperSet(ours.vectors, synthetic, fresh.vectors)}, ours.people, fresh.people)
        rows.append([name, *paper_cells(face)])
    return Table(columns={"synthetic set": "", **PAPER_COLUMNS}, rows=rows)


PAPER_COLUMNS = {
    "mAP, members": ".3f",
    "mAP, fresh people in their place": ".3f",
    "AUC, members over fresh people": ".3f",
    "mAP, own person left out": ".3f",
    "flagged as in training": ".0%",
}


def paper_cells(face: object) -> list[Value]:
    names = ("average_precision", "fresh", "fresh_auc", "person_left_out", "flagged")
    return [short(getattr(face, name)) for name in names]


def on_traits(path: Path) -> tuple[dict[str, Table], dict[str, Cell]]:
    """Traits: how well each links people, what was planted in which trait, and the paper's Tables 2 and 3."""
    with np.load(path, allow_pickle=False) as stored:
        parts = {name: stored[name] for name in stored.files}
    failed = parts.pop("failed").tolist()
    vectors = {name: rows.astype(np.float32) for name, rows in parts.items() if not name.startswith("people of ")}
    whose = {name: parts[f"people of {name}"] for name in vectors}
    sides = [gapless(vectors[name], whose[name]) for name in ("training", "holdout")]
    tables = {
        "linking": linking(*sides),
        "transplants": transplanted(vectors, whose, *sides),
        "table 3": third_table(vectors["clean"], *sides),
    }
    figures: dict[str, Cell] = {
        "traits_failed": ", ".join(failed),
        "traits_training": len(np.unique(sides[0].people)),
        "traits_holdout": len(np.unique(sides[1].people)),
        "traits_clean": len(vectors["clean"]),
        **unplanted(vectors["clean"], *sides),
    }
    return tables, figures


def gapless(vectors: Vectors, people: NDArray[np.int64]) -> Some:
    """Vectors are (n, traits, d); people without a usable picture are gone."""
    return Some(vectors, np.unique(people, return_inverse=True)[1].astype(np.int64))


def linking(ours: Some, others: Some) -> Table:
    """TAR at FAR 1e-2, and retrieval mAP, of each trait; Table 2 of the paper beside."""
    published = {"face": 0.3941, "eyes": 0.2278, "mouth": 0.1674, "nose": 0.1307}
    vectors = np.concatenate([ours.vectors, others.vectors])
    people = np.concatenate([ours.people, others.people + ours.people.max() + 1])
    rows: list[list[Cell]] = []
    for number, trait in enumerate(TRAITS):
        one = np.ascontiguousarray(vectors[:, number])
        tar = verify(one, people, far=(1e-2,)).at[1e-2].value
        rows.append([trait, short(tar), short(mean_average_precision(one, people)), published[trait]])
    columns = {"trait": "", "TAR at FAR 1e-2": ".2f", "identity mAP here": ".3f", "identity mAP, paper": ".3f"}
    return Table(columns=columns, rows=rows)


def third_table(clean: Vectors, ours: Some, others: Some) -> Table:
    """The paper's score for each trait, with real people who were never trained on as the "synthetic" set; k = 1."""
    published = {"face": 0.9417, "eyes": 0.9085, "mouth": 0.8201, "nose": 0.8674, "fusion": 0.9534}
    sets = {
        trait: PaperSet(ours.vectors[:, number], clean[:, number], others.vectors[:, number])
        for number, trait in enumerate(TRAITS)
    }
    scores = paper_score(sets, ours.people, others.people, k=1)
    rows: list[list[Cell]] = [[one.trait, published[one.trait], *paper_cells(one)] for one in scores]
    return Table(columns={"trait": "", "mAP, paper (StyleGAN2, CelebA)": ".3f", **PAPER_COLUMNS}, rows=rows)


def mean_average_precision(vectors: Vectors, people: NDArray[np.int64]) -> float:
    """Of finding a person's other pictures by cosine, over all pictures that have any."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    found = []
    for row in range(len(vectors)):
        order = np.argsort(-scores[row])[:-1]
        hits = np.flatnonzero(people[order] == people[row])
        if len(hits):
            found.append(((1 + np.arange(len(hits))) / (1 + hits)).mean())
    return float(np.mean(found))


def transplanted(
    vectors: Mapping[str, Vectors], whose: Mapping[str, NDArray[np.int64]], ours: Some, others: Some
) -> Table:
    """Share of planted people that each trait lists, and all traits together; and runs where the verdict changes.

    People without planted pictures are dealt to training and holdout again in each run.
    """
    kinds = [name for name in vectors if name not in ("training", "holdout", "clean")]
    names = np.unique(whose["training"])
    donors = np.flatnonzero(np.isin(names, np.concatenate([whose[kind] for kind in kinds])))
    deals = [Deal.of(ours, others, donors, repeat) for repeat in range(TRAIT_REPEATS)]
    rows: list[list[Cell]] = []
    clean = vectors["clean"]
    for kind in kinds:
        usable = np.flatnonzero(np.isin(whose[kind], names))
        right = {kind.removesuffix(" transplant")} & set(TRAITS) or set(TRAITS)
        for share in SHARES:
            count = round(share * DRAWN)
            outcomes: dict[str, list[tuple[float, ...]]] = {name: [] for name in LISTS}
            changed = []
            for repeat in range(TRAIT_REPEATS):
                rng = stream(repeat, "release transplants", kind)
                base = clean[rng.permutation(len(clean))[: DRAWN - count]]
                picked = usable[rng.permutation(len(usable))[:count]]
                people = np.searchsorted(names[donors], whose[kind][picked])
                scores: tuple[dict[str, PersonScores], dict[str, PersonScores]] = ({}, {})
                for at, trait in enumerate(TRAITS):
                    faces = np.concatenate([base[:, at], vectors[kind][picked, at]])
                    mine, rest = deals[repeat].views[at]
                    sides = Side.of(mine, faces), Side.of(rest, faces)
                    raw = exposed(*scored(*sides, mine, rest, repeat))
                    above = [side.above(one) for side, one in zip(sides, deals[repeat].usual[at], strict=True)]
                    scores[0][trait], scores[1][trait] = scored(above[0], above[1], mine, rest, repeat)
                    found = exposed(scores[0][trait], scores[1][trait])
                    outcomes[trait].append(outcome(found, people))
                    if trait != "face":
                        outcomes[f"{trait}, similarity alone"].append(outcome(raw, people))
                outcomes["all together"].append(outcome(fused(*scores), people))
                sure = enriched(scores)
                changed.append((bool(sure), bool(sure) and sure <= right))
            done = [summary(outcomes[name]) for name in LISTS]
            verdicts = [short(float(np.mean(column))) for column in zip(*changed, strict=True)]
            rows.append([kind, share, count, *(power for power, *_ in done), done[len(TRAITS)][1], *verdicts])
    first, last = {"planted": "", "share of the set": ".0%", "people": ""}, {"of all listed, not planted": ".1%"}
    verdict = {"verdict changes": ".0%", "by the right trait alone": ".0%"}
    return Table(columns={**first, **dict.fromkeys(LISTS, ".0%"), **last, **verdict}, rows=rows)


@dataclass(frozen=True, eq=False)
class Deal:
    """Training and holdout by view, and what is usual at their places."""

    views: list[tuple[Some, Some]]
    usual: list[tuple[Vectors, Vectors]]

    @classmethod
    def of(cls, ours: Some, others: Some, donors: NDArray[np.int64], number: int) -> "Deal":
        """Donors are training, numbered in their order; of the others as many as before are, drawn at random."""
        count = int(ours.people.max()) + 1
        total = count + int(others.people.max()) + 1
        people = np.concatenate([ours.people, others.people + count])
        vectors = np.concatenate([ours.vectors, others.vectors])
        dealt = np.setdiff1d(np.arange(total), donors)
        place = np.empty(total, np.int64)
        place[donors] = np.arange(len(donors))
        place[stream(number, "release transplants", "deal").permutation(dealt)] = np.arange(len(donors), total)
        place = place[people]
        inside = place < count
        views = []
        for at in VIEWS:
            one = np.ascontiguousarray(vectors[:, at])
            views.append((Some(one[inside], place[inside]), Some(one[~inside], place[~inside] - count)))
        return cls(views, [usual(*view) for view in views])


def enriched(scores: tuple[Mapping[str, PersonScores], Mapping[str, PersonScores]]) -> set[str]:
    """Traits whose nearest people are training people, after Holm's correction, as ``ReleaseResult.enriched``."""
    tests = sorted((enrichment(scores[0][trait], scores[1][trait]).p, trait) for trait in TRAITS)
    found: set[str] = set()
    for rank, (p, trait) in enumerate(tests):
        if p * (len(tests) - rank) >= SURE:
            break
        found.add(trait)
    return found


def unplanted(clean: Vectors, ours: Some, others: Some) -> dict[str, Cell]:
    """People dealt anew to training and holdout: how often anything is found by traits where nothing is there."""
    count, total = int(ours.people.max()) + 1, int(ours.people.max() + others.people.max()) + 2
    people = np.concatenate([ours.people, others.people + count])
    both = np.concatenate([ours.vectors, others.vectors])
    best = []
    for at in VIEWS:
        one = np.ascontiguousarray(both[:, at])
        best.append((clean[:DRAWN, at] @ one.T).max(axis=0) - crowding([one], people, one, people))
    sure, listing, together = [], [], []
    for number in range(SPLITS):
        place = stream(number, "release traits null").permutation(total)[people]  # the first are training
        inside = place < count
        scores: tuple[dict[str, PersonScores], dict[str, PersonScores]] = ({}, {})
        for trait, values in zip(TRAITS, best, strict=True):
            scores[0][trait] = person_scores(values[inside], place[inside], count, seed=number, side="training")
            scores[1][trait] = person_scores(
                values[~inside], place[~inside] - count, total - count, seed=number, side="holdout"
            )
        sure.append(bool(enriched(scores)))
        listing.append(exposed(scores[0]["face"], scores[1]["face"]).people > 0)
        together.append(fused(*scores).people > 0)
    return {
        "traits_null_verdict": short(float(np.mean(sure))),
        "traits_null_listing": short(float(np.mean(listing))),
        "traits_null_together": short(float(np.mean(together))),
    }


def short(number: float) -> float:
    return float(f"{number:.6g}")


if __name__ == "__main__":
    main()
