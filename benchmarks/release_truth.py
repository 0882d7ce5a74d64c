"""Whether ``unface release`` tells the truth on people drawn from models that are known, many times anew.

    python benchmarks/release_truth.py [--runs N] [--only CASE …] [--results FILE]

Clean sets copy nobody: how often is one told "Do not publish"? Planted sets copy some people: how often is that
noticed? Sets with a known share of copies: how often does the interval hold it? Each run is one line of
benchmarks/results/release-truth.jsonl, so that a run that was interrupted continues; benchmarks/release-truth.txt is
the table. The people are made here and not by unface: Gaussian or heavy-tailed (t with three degrees of freedom)
identities, families of look-alikes, synthetic people who are drawn several times, and any numbers of pictures.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from unface.data import EmbeddingSet
from unface.release.run import Plan, release
from unface.result.release import ReleaseResult

RUNS, LEVEL = 400, 0.01
DIM, FACES, WITHIN = 64, 300, 0.6
RESULTS = Path(__file__).parent / "results" / "release-truth.jsonl"
TABLE = Path(__file__).with_name("release-truth.txt")

Vectors = NDArray[np.float64]
Counts = Callable[[np.random.Generator, int], NDArray[np.int64]]


def each(pictures: int) -> Counts:
    return lambda rng, people: np.full(people, pictures)


def between(low: int, high: int) -> Counts:
    return lambda rng, people: rng.integers(low, high + 1, people)


def few_have_many(rng: np.random.Generator, people: int) -> NDArray[np.int64]:
    """Most people have one or two pictures, some twenty."""
    return np.where(rng.random(people) < 0.1, 20, rng.integers(1, 3, people))


@dataclass(frozen=True)
class Case:
    """One kind of people and of synthetic set."""

    name: str
    training: Counts
    holdout: Counts
    people: tuple[int, int] = (100, 300)
    law: str = "Gaussian"
    faces_each: int = 1
    """Faces of each synthetic person."""
    planted: int = 0
    """Training people of whom one picture is copied."""
    noise: float = 0.15
    share: float | None = None
    """The chance of a synthetic person to be a copy, for the coverage of intervals."""
    labelled: bool = False
    """Whether the synthetic rows say whose they are."""


def identities(case: Case, rng: np.random.Generator, people: int) -> Vectors:
    made = rng.standard_normal((people, DIM))
    if case.law == "heavy":
        return made / np.sqrt(rng.chisquare(3, (people, 1)) / 3)
    if case.law == "families":  # half of the people in families of five
        family = rng.integers(0, max(people // 10, 1), people)
        alike = rng.random(people) < 0.5
        parents = rng.standard_normal((people, DIM))
        made = np.where(alike[:, None], 0.8 * parents[family] + 0.6 * made, made)
    return made


def pictures(rng: np.random.Generator, of: Vectors, counts: NDArray[np.int64]) -> tuple[Vectors, NDArray[np.int64]]:
    whose = np.repeat(np.arange(len(of)), counts)
    return of[whose] + WITHIN * rng.standard_normal((len(whose), DIM)), whose


def a_set(vectors: Vectors, whose: NDArray[np.int64], name: str) -> EmbeddingSet:
    ids = [f"{name}{row}" for row in range(len(vectors))]
    people = [f"{name} {person:05d}" for person in whose]
    return EmbeddingSet.from_arrays(vectors.astype(np.float32), people, ids=ids, source=name)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Three sets, and the synthetic faces that copy nobody."""

    synthetic: EmbeddingSet
    training: EmbeddingSet
    holdout: EmbeddingSet


def draw(case: Case, rng: np.random.Generator) -> Drawn:
    sides, first = [], identities(case, rng, sum(case.people))  # one pool, then dealt: families may be split
    for name, of, counts in (
        ("training", first[: case.people[0]], case.training),
        ("holdout", first[case.people[0] :], case.holdout),
    ):
        sides.append((*pictures(rng, of, counts(rng, len(of))), name))
    real, whose, _ = sides[0]
    people = FACES // case.faces_each
    synthetic, drawn = pictures(rng, identities(case, rng, people), np.full(people, case.faces_each))
    copied = np.zeros(people, bool)
    if case.share is not None:
        copied = rng.random(people) < case.share
    copied[: case.planted] = True
    order = rng.permutation(case.people[0])
    for place, person in enumerate(np.flatnonzero(copied)):
        rows = np.flatnonzero(whose == order[place % len(order)])
        faces = drawn == person
        noise = case.noise * rng.standard_normal((int(faces.sum()), DIM))
        synthetic[faces] = real[rng.choice(rows)] + noise
    return Drawn(a_set(synthetic, drawn, "synthetic"), *(a_set(*side) for side in sides))


def run_once(case: Case, number: int) -> dict[str, bool]:
    """What one draw is told, and which intervals hold their truth."""
    name = int.from_bytes(case.name.encode(), "little")
    rng = np.random.default_rng([number, name])
    given = draw(case, rng)
    plan = Plan(far=(1e-2, 1e-3, 1e-4), k=(1,), seed=number, threads=1)
    result = release(given.synthetic, given.training, given.holdout, named=case.labelled, plan=plan).result
    told: dict[str, bool] = {"refused": result.verdict.startswith("Do not publish")}
    exposed = result.main.exposure.exposed
    told["listed"] = exposed is not None and exposed.numerator > 0
    told["member"] = result.main.membership.test.p < LEVEL
    told["comparable"] = result.decision != "not comparable"
    if case.planted == 0 and case.share is None:
        share = result.main.membership.share
        told["share"] = share.low <= result.main.membership.null <= share.high
    if case.share is not None:
        told |= _coverage(case, rng, given, result)
    return told


def _coverage(case: Case, rng: np.random.Generator, given: Drawn, result: ReleaseResult) -> dict[str, bool]:
    """Copies at FAR 1e-4: the share among all faces that could be drawn, and what is beyond chance."""
    found = next(one for one in result.main.copies if one.far == 1e-4)
    fresh = _unit(pictures(rng, identities(case, rng, 20_000), np.full(20_000, 1))[0])
    by_chance = (fresh @ _unit(given.training.vectors).T >= found.cosine).any(axis=1).mean()
    share = float(case.share or 0)
    truth = share + (1 - share) * by_chance
    others = []  # of training people who might have been drawn instead
    for _ in range(20):
        people = identities(case, rng, case.people[0])
        there = _unit(pictures(rng, people, case.training(rng, len(people)))[0])
        others.append((fresh[:2_000] @ there.T >= found.cosine).any(axis=1).mean())
    excess = share * (1 - float(np.mean(others)))
    return {
        "copies": bool(found.copies.low <= truth <= found.copies.high),
        "excess": bool(found.excess.low <= excess <= found.excess.high),
    }


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _cases() -> Iterator[Case]:
    counts = {
        "3 pictures, 3 in the holdout": (each(3), each(3)),
        "5 pictures, 2 in the holdout": (each(5), each(2)),
        "2 pictures, 5 in the holdout": (each(2), each(5)),
        "1 to 8 pictures, 1 to 3 in the holdout": (between(1, 8), between(1, 3)),
        "a few people with 20 pictures": (few_have_many, each(2)),
    }
    for name, sides in counts.items():
        yield Case(f"clean, {name}", *sides)
    for name in ("3 pictures, 3 in the holdout", "5 pictures, 2 in the holdout"):
        yield Case(f"clean, {name}, 10 faces a synthetic person", *counts[name], faces_each=10)
    five = counts["5 pictures, 2 in the holdout"]
    yield Case("clean, 5 pictures, 2 in the holdout, heavy tails", *five, law="heavy")
    yield Case("clean, 5 pictures, 2 in the holdout, families", *five, law="families", faces_each=5)
    yield Case("clean, 5 pictures, 2 in the holdout, 300 against 60 people", *five, people=(300, 60))
    for planted in (3, 5, 8, 15):
        yield Case(f"{planted} of 100 people copied, 3 pictures each", each(3), each(3), planted=planted)
    for planted in (5, 10):
        name = f"{planted} of 100 people copied, 3 pictures each, 100 in the holdout"
        yield Case(name, each(3), each(3), planted=planted, people=(100, 100))
    for planted in (20, 40):
        name = f"{planted} of 100 people drawn from afar, 3 pictures each"
        yield Case(name, each(3), each(3), planted=planted, noise=1.0)
    for planted in (8, 15):
        for name in list(counts)[1:3]:
            yield Case(f"{planted} of 100 people copied, {name}", *counts[name], planted=planted)
    for said, share in (("a tenth", 0.1), ("one in 50", 0.02)):
        for faces in (1, 10):
            for labelled in (False, True)[: 1 + (faces > 1)]:
                name = f"{said} copied, {faces} faces a synthetic person{', labelled' * labelled}"
                yield Case(name, each(3), each(3), share=share, faces_each=faces, labelled=labelled)


CASES = {case.name: case for case in _cases()}


def results(runs: int, names: list[str], path: Path) -> dict[str, dict[int, dict[str, bool]]]:
    """By case and number; runs that are missing are made and kept."""
    there: dict[str, dict[int, dict[str, bool]]] = {name: {} for name in names}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["case"] in there and row["run"] < runs:
                there[row["case"]][row["run"]] = row["told"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number in range(runs):
            for name in names:
                if number not in there[name]:
                    there[name][number] = run_once(CASES[name], number)
                    file.write(json.dumps({"case": name, "run": number, "told": there[name][number]}) + "\n")
                    file.flush()
    return there


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--runs", type=int, default=RUNS)
    given.add_argument("--only", nargs="+", default=list(CASES))
    given.add_argument("--results", type=Path, default=RESULTS)
    asked = given.parse_args()
    results(asked.runs, asked.only, asked.results)


if __name__ == "__main__":
    main()
