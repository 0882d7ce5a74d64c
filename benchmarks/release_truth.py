"""Whether ``unface release`` tells the truth on people drawn from models that are known, many times anew.

    python benchmarks/release_truth.py [--runs N] [--only CASE …] [--results FILE] [--before FILE]

Clean sets copy nobody: how often is one told "Do not publish"? Planted sets copy some people: how often is that
noticed? Sets with a known share of copies: how often does the interval hold it? Each run is one line of
benchmarks/results/release-truth.jsonl, so that a run that was interrupted continues; benchmarks/release-truth.txt is
the table. With ``--before`` it has the results of an earlier version beside these.

People are made here and not by unface: Gaussian or heavy-tailed (t with three degrees of freedom) identities, families
of look-alikes, synthetic people who are drawn several times, and any numbers of pictures.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ratios import Ratio
from unface.data import EmbeddingSet
from unface.release.exchangeable import exchangeability, people_needed
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
    """Training people who have one picture copied."""
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
    """The verdict on one draw, and which of its intervals hold the truth."""
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


def kept(names: list[str], path: Path) -> dict[str, dict[int, dict[str, bool]]]:
    """By case and number: the runs that a file holds."""
    there: dict[str, dict[int, dict[str, bool]]] = {name: {} for name in names}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["case"] in there:
                there[row["case"]][row["run"]] = row["told"]
    return there


def results(runs: int, names: list[str], path: Path) -> dict[str, dict[int, dict[str, bool]]]:
    """The same with runs that are missing made and kept."""
    there = kept(names, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for number in range(runs):
            for name in names:
                if number not in there[name]:
                    made = SOURCES[name](number) if name in SOURCES else run_once(CASES[name], number)
                    there[name][number] = made
                    file.write(json.dumps({"case": name, "run": number, "told": made}) + "\n")
                    file.flush()
    return there


def source_of_pictures(number: int, people: int | None) -> dict[str, bool]:
    """The test of the holdout's source, on people who differ by nothing, and by a shift that is an AUC of 0.6."""
    rng = np.random.default_rng([number, people or 0])
    dim, shift = 16, np.sqrt(2) * ndtri(0.6)
    count = people_needed(dim) if people is None else people
    training, holdout = rng.standard_normal((2, count, dim))
    same = exchangeability(_unit(training), _unit(holdout), seed=number)
    holdout[:, 0] += shift
    other = exchangeability(_unit(training), _unit(holdout), seed=number)
    assert same is not None
    assert other is not None
    return {"found": not other.holds, "accused": not same.holds, "testable": same.people >= same.needed}


SOURCES = {
    "same source, 60 people of each side": partial(source_of_pictures, people=60),
    "same source, as many people as are needed": partial(source_of_pictures, people=None),
}


@dataclass(frozen=True)
class Row:
    """How often something was so, and how often it ought to be: between two shares."""

    case: str
    what: str
    times: int
    runs: int
    low: float
    high: float

    @property
    def p(self) -> float:
        """The chance of as few at the lower share, or of as many at the higher one, whichever is less."""
        few = float(binom.cdf(self.times, self.runs, self.low)) if self.low > 0 else 1.0
        many = float(binom.sf(self.times - 1, self.runs, self.high)) if self.high < 1 else 1.0
        return min(few, many)

    def line(self, before: "Row | None") -> str:
        said = f"{100 * self.times / self.runs:5.1f} % of {self.runs:3d}"
        old = "" if before is None else f"{100 * before.times / before.runs:5.1f} % of {before.runs:3d}"
        ought = f"{100 * self.low:g} to {100 * self.high:g}"
        return f"{self.case:68s} {self.what:22s} {old:16s} {said:16s} {ought:10s} {'' if self.p >= LEVEL else 'BROKEN'}"


def rows(found: dict[str, dict[int, dict[str, bool]]]) -> list[Row]:
    made = []
    for name, runs in found.items():
        case = CASES.get(name)

        def tally(what: str, key: str, low: float, high: float, name: str = name, runs: Any = runs) -> None:
            told = [run[key] for run in runs.values() if key in run]
            if told:
                made.append(Row(name, what, sum(told), len(told), low, high))

        if case is None:  # the test of the source
            tally("a shift is found", "found", 0.8 * ("needed" in name), 1)
            tally("nothing is found", "accused", 0, LEVEL)
            continue
        clean = case.planted == 0 and case.share is None
        tally("do not publish", "refused", 0, LEVEL if clean else 1)
        if clean:
            tally("somebody is listed", "listed", 0, 0.05)
        low = 0.92 if case.faces_each > 1 else 0.93
        tally("nearest in training", "share", low, 0.99)
        tally("share of copies", "copies", low, 0.99)
        tally("excess of copies", "excess", low, 0.99)
    return made


def run() -> list[Ratio]:
    """Every row, by the chance of its result if it is as it ought to be."""
    found = results(RUNS, [*CASES, *SOURCES], RESULTS)
    TABLE.write_text(table(rows(found), []), encoding="utf-8")
    return [
        Ratio(f"{row.case}: {row.what}", row.p, LEVEL, True, f"{row.times} of {row.runs} runs") for row in rows(found)
    ]


def table(now: list[Row], before: list[Row]) -> str:
    known = {(row.case, row.what): row for row in before}
    head = f"{'sets':68s} {'how often':22s} {'0.2.0' if before else '':16s} {'now':16s} {'should be':10s}"
    lines = [row.line(known.get((row.case, row.what))) for row in now]
    return "\n".join(["How often, in % of runs with people drawn anew", "", head, *lines]) + "\n"


def main() -> None:
    """Make the runs that are missing, and the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--runs", type=int, default=RUNS)
    given.add_argument("--only", nargs="+", default=[*CASES, *SOURCES])
    given.add_argument("--results", type=Path, default=RESULTS)
    given.add_argument("--before", type=Path)
    asked = given.parse_args()
    found = results(asked.runs, asked.only, asked.results)
    before = {} if asked.before is None else kept([*CASES, *SOURCES], asked.before)
    TABLE.write_text(table(rows(found), rows(before)), encoding="utf-8")


if __name__ == "__main__":
    main()
