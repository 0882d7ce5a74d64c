"""How often the intervals of an audit's parts hold a truth that is known: search, differences, groups and context.

    python -m benchmarks.audit_coverage [redraws [case …]]

People are drawn anew many times from populations that know nothing of the code: Gaussian, heavy-tailed (t with three
degrees of freedom), with correlated shoots, with families of look-alikes (clusters), and with faces that resemble many
(wolves); pictures of a person are as many as each, or 2 to 6. Truths come from a population of thousands, by plain
NumPy. A run that is interrupted continues: what was drawn is kept in ``benchmarks/results``, and the table is written
to ``benchmarks/audit-coverage.txt``.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import binom, binomtest

import unface.auditing.exposure.run as exposure_room
import unface.auditing.search.run as search_room
import unface.probe.context as context_room
from benchmarks.ratios import Ratio
from unface.auditing.attack import Attack
from unface.auditing.exposure.run import group_tars
from unface.auditing.search.run import FPIR, search_by
from unface.metrics import Scheme, intervals
from unface.pairs import all_mated, cosine_space, pair_up
from unface.probe import (
    ContextAdjusted,
    Plan,
    RoleRows,
    Roles,
    SignatureContext,
    adjust_for_context,
    draw_bootstrap,
    run_panel,
)
from unface.probe.cosine import Cosine
from unface.score import Draws, Mated, rate_at, thresholds, verify

HERE = Path(__file__).resolve().parent
REDRAWS, REPLICATES, DIM, EVERYBODY = 400, 1000, 24, 2500
_JUDGED = {
    "search": (search_room, verify),
    "difference": (verify,),
    "gap": (exposure_room, verify),
    "context": (context_room,),
}
KINDS = ("Gaussian", "heavy", "shoots", "clusters", "wolves")


@dataclass(frozen=True)
class Population:
    """Where people come from."""

    kind: str
    between: float = 1.0
    """How far people lie from each other, in units of how far pictures of one lie from each other."""
    fewest: int = 6
    most: int = 6
    """Pictures of a person."""
    dim: int = DIM

    def draw(self, people: int, *seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Unit vectors and who is on them."""
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(people), rng.integers(self.fewest, self.most + 1, people))
        faces = self.between * rng.standard_normal((people, self.dim))
        noise = rng.standard_normal((len(codes), self.dim))
        if self.kind == "heavy":
            faces *= np.sqrt(3 / rng.chisquare(3, people))[:, None]
        elif self.kind == "shoots":  # two pictures of each
            number = np.arange(len(codes)) - np.searchsorted(codes, codes)
            shoot = np.unique(codes * self.most + number // 2, return_inverse=True)[1]
            noise = np.sqrt(0.5) * (noise + rng.standard_normal((shoot.max() + 1, self.dim))[shoot])
        elif self.kind == "clusters":  # every other person belongs to a family of five
            families = self.between * rng.standard_normal((people, self.dim))
            faces[::2] = np.sqrt(0.5) * (faces[::2] + families[np.arange(len(faces[::2])) // 5])
        elif self.kind == "wolves":  # one in ten resembles a face that all wolves resemble
            common = self.between * np.random.default_rng(99).standard_normal(self.dim)
            faces = np.where(rng.random(people)[:, None] < 0.1, 0.6 * faces + 0.8 * common, faces)
        vectors = faces[codes] + noise
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), codes


@dataclass(frozen=True)
class Case:
    """One row of the table: ``held`` says of one redraw whether the interval held the truth, or the claim was false."""

    name: str
    held: Callable[[int], bool]
    false_claims: bool = False
    least: float = 0.93

    def probability(self, held: int, redraws: int) -> float:
        """Of a share as far off, were the nearest allowed one true: 93 (clusters, wolves: 92) to 99 %, 5 % claims."""
        share = held / redraws
        if self.false_claims:
            return float(binom.sf(held - 1, redraws, 0.05)) if share > 0.05 else 1.0
        if share < self.least:
            return float(binom.cdf(held, redraws, self.least))
        return float(binom.sf(held - 1, redraws, 0.99)) if share > 0.99 else 1.0


def cases() -> Iterator[Case]:
    """Every row."""
    for kind in KINDS:
        least = 0.92 if kind in ("clusters", "wolves") else 0.93
        for people in (80, 300):
            population = Population(kind, 1.2, 3, 8) if people == 80 else Population(kind, 1.0)
            yield Case(f"search, {kind}, {people} people", partial(search_holds, population, people), least=least)
        for pictures, far in ((2, 1e-3), (6, 1e-3), (6, 1e-2)):
            population = Population(kind, 0.6, pictures, pictures)
            name = f"difference, {kind}, {pictures} pictures, FAR {far:g}"
            yield Case(name, partial(difference_holds, population, far), least=least)
        population = Population(kind, 0.3, 2, 2)
        yield Case(f"difference, {kind}, hardly an accept", partial(difference_holds, population, 1e-3), least=least)
        population = Population(kind, 1.2, 2, 6)
        yield Case(f"difference, {kind}, many accepts", partial(difference_holds, population, 1e-2), least=least)
        for groups in (2, 5, 10):
            for far in (1e-3, 1e-2):
                name = f"gap, {kind}, {groups} groups, FAR {far:g}"
                yield Case(name, partial(gap_is_claimed, Population(kind, 0.8, 2, 6), groups, far), false_claims=True)
    for shoots in SHOOTS:
        name = f"context, {shoots.dim} numbers, place {shoots.place:g}, noise {shoots.noise:g}, FAR {shoots.far:g}"
        yield Case(name, shoots.holds)


def roles(calibrate: NDArray[np.int64], test: NDArray[np.int64]) -> Roles:
    """Of vectors that lie one behind the other; nobody is learned from."""
    learned = RoleRows(np.arange(2), np.arange(2), 2)
    rows = np.arange(len(calibrate) + len(test))
    first, second = rows[: len(calibrate)], rows[len(calibrate) :]
    count = int(calibrate.max()) + 1, int(test.max()) + 1
    return Roles(learned, RoleRows(first, calibrate, count[0]), RoleRows(second, test, count[1]))


def attack_on(calibrate: NDArray[np.int64], test: NDArray[np.int64], far: float) -> Attack:
    """Plain cosine."""
    whose = roles(calibrate, test)
    plan = Plan(fars=(far,), ks=(1,), seeds=1, threads=1)
    people = whose.calibrate.count, whose.test.count
    return Attack(whose, [Cosine()], plan, draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, *people, REPLICATES, 0))


def search_holds(population: Population, people: int, number: int) -> bool:
    """The share found at FPIR 1e-2 among so many people."""
    (known, calibrate), (asked, test) = (population.draw(people, 1, number, role) for role in range(2))
    attack = attack_on(calibrate, test, 1e-2)
    _, found = search_by(Cosine(), {}, np.concatenate([known, asked]), attack)
    assert found is not None
    return found.found.low <= found_of_everybody(population, people) <= found.found.high


@cache
def found_of_everybody(population: Population, people: int) -> float:
    """In a gallery of ``people`` drawn from everybody, a query returns one of k of N strangers unless none is drawn."""
    vectors, codes = population.draw(EVERYBODY, 2)
    starts = np.unique(codes, return_index=True)[1]
    best = np.maximum.reduceat(vectors[starts] @ vectors.T, starts, axis=1)
    np.fill_diagonal(best, -1)
    best.sort(axis=1)

    def returned(threshold: float) -> float:
        near = EVERYBODY - np.array([np.searchsorted(row, threshold) for row in best], np.float64)
        others, drawn = EVERYBODY - 1, people - 1
        left = np.maximum(others - near - drawn, 0)
        missed = gammaln(others - near + 1) - gammaln(left + 1) - gammaln(others + 1) + gammaln(others - drawn + 1)
        return float(1 - np.where(others - near >= drawn, np.exp(missed), 0).mean())

    low, high = -1.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if returned(middle) > FPIR else (low, middle)
    mates = []
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
        among = vectors[start:stop] @ vectors[start:stop].T
        np.fill_diagonal(among, -1)
        mates.append(among.max(axis=1))
    return float(np.mean(np.concatenate(mates) >= high))


def difference_holds(population: Population, far: float, number: int) -> bool:
    """The first half of the coordinates less all of them; the thresholds of both are measured on 80 other people."""
    (known, calibrate), (asked, test) = (population.draw(80, 3, number, role) for role in range(2))
    measured, draws = [], Draws(replicates=REPLICATES)
    for dim in (population.dim, population.dim // 2):
        (limit,) = thresholds(pair_up(cosine_space(known[:, :dim]), calibrate), [far], people=80, threads=1)
        mated = all_mated(pair_up(cosine_space(asked[:, :dim]), test))
        measured.append(rate_at([(Mated(mated.identities, mated.scores, 80), limit)], draws))
    _, ends = measured[1].less(measured[0])
    return ends.low <= change_of_everybody(population, far) <= ends.high


@cache
def change_of_everybody(population: Population, far: float) -> float:
    """Both true TARs at their exact thresholds, from every pair of thousands."""
    vectors, codes = population.draw(EVERYBODY, 4)
    tars = []
    for dim in (population.dim, population.dim // 2):
        unit = vectors[:, :dim] / np.linalg.norm(vectors[:, :dim], axis=1, keepdims=True)
        some = unit[:6000]
        scores = (some @ some.T)[codes[:6000, None] < codes[None, :6000]]
        threshold = np.quantile(scores, 1 - far)
        first, second = pairs_within(codes)
        tars.append(float(np.mean((unit[first] * unit[second]).sum(axis=1) >= threshold)))
    return tars[1] - tars[0]


def pairs_within(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of every two pictures of one person."""
    _, starts, sizes = np.unique(codes, return_index=True, return_counts=True)
    pairs = [start + np.stack(np.triu_indices(size, 1)) for start, size in zip(starts, sizes, strict=True)]
    first, second = np.concatenate(pairs, axis=1)
    return first, second


def gap_is_claimed(population: Population, groups: int, far: float, number: int) -> bool:
    """Whether groups that do not differ are said to: 20 to 40 people each, with one threshold of 80 others."""
    sizes = np.random.default_rng((5, number)).integers(20, 41, groups)
    people = int(sizes.sum())
    (known, calibrate), (asked, test) = population.draw(80, 6, number, 0), population.draw(people, 6, number, 1)
    (limit,) = thresholds(pair_up(cosine_space(known), calibrate), [far], people=80, threads=1)
    mated = all_mated(pair_up(cosine_space(asked), test))
    of = np.random.default_rng((7, number)).permutation(np.repeat(np.arange(groups), sizes))
    _, gap = group_tars(of, Mated(mated.identities, mated.scores, people), limit, Draws(replicates=REPLICATES))
    assert gap is not None
    return gap.low > 0


@dataclass(frozen=True)
class Shoots:
    """Vectors that are their shoot and noise, and nothing of anybody: alike in that, TAR is the false-accept rate.

    Everybody is in three shoots, twice in each.
    """

    dim: int
    place: float
    """How much the shoots of one person share."""
    within: float
    """How far two pictures of a shoot lie apart in what is known of the shoot."""
    noise: float
    """How far in the vectors."""
    far: float = 1e-3

    def adjusted(self, number: int) -> ContextAdjusted:
        """What is left of one redraw of 80 calibrate and 80 test people."""
        people, rng = 80, np.random.default_rng((8, number))
        places = np.repeat(rng.standard_normal((2 * people, self.dim)), 3, axis=0)
        shoots = self.place * places + np.sqrt(1 - self.place**2) * rng.standard_normal(places.shape)
        signatures = np.repeat(shoots, 2, axis=0)
        signatures += self.within * rng.standard_normal(signatures.shape)
        signatures -= signatures.mean(axis=1, keepdims=True)
        vectors = signatures / np.linalg.norm(signatures, axis=1, keepdims=True)
        vectors = vectors + self.noise / np.sqrt(self.dim) * rng.standard_normal(vectors.shape)
        unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        codes = np.repeat(np.arange(people), 6)
        attack = attack_on(codes, codes, self.far)
        trial = run_panel(unit, attack.roles, attack.probes, attack.plan).trials["cosine", 1]
        context = SignatureContext("backdrop", signatures.astype(np.float32))
        found = adjust_for_context(trial, self.far, context, attack.roles.test, attack.bootstrap, number)
        assert found is not None
        return found

    def holds(self, number: int) -> bool:
        """Whether its interval holds the false-accept rate."""
        found = self.adjusted(number).interval
        return found.low <= self.far <= found.high


SHOOTS = (
    Shoots(48, 0.5, 0.1, 0.3),
    Shoots(12, 0.7, 0.3, 0.5),
    Shoots(12, 0.0, 0.1, 0.3),
    Shoots(24, 0.0, 0.3, 0.5, 1e-2),
)


def redrawn(case: Case, redraws: int) -> NDArray[np.bool_]:
    """Whether it held in each redraw, continued from where an earlier run stopped.

    What was drawn with other code counts no more.
    """
    judged = _JUDGED[case.name.split(",")[0]]
    sources = "".join(map(inspect.getsource, (sys.modules[__name__], intervals, *judged)))
    version = hashlib.sha256(sources.encode()).hexdigest()[:8]
    kept = HERE / "results" / "audit-coverage" / f"{case.name} {version}.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    done = kept.read_text(encoding="utf-8") if kept.exists() else ""
    with kept.open("a", encoding="utf-8") as file:
        for number in range(len(done), redraws):
            file.write("01"[case.held(number)])
            file.flush()
    return np.array([letter == "1" for letter in kept.read_text(encoding="utf-8")[:redraws]])


def line(case: Case, held: int, redraws: int) -> str:
    """The share with its exact 95 % interval."""
    ends = binomtest(held, redraws).proportion_ci(0.95)
    state = "" if case.probability(held, redraws) >= 0.01 else "   BEYOND"
    share = f"{100 * held / redraws:5.1f} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"
    return f"{case.name:52s} {redraws:5d}   {share}{state}"


def run(redraws: int = REDRAWS) -> list[Ratio]:
    """Every row: how likely so many misses or false claims would be if the nearest allowed rate were true."""
    ratios = []
    for case in cases():
        held = int(redrawn(case, redraws).sum())
        what = "false claims" if case.false_claims else "covered"
        detail = f"{100 * held / redraws:.1f} % {what} in {redraws} redraws"
        ratios.append(Ratio(case.name, case.probability(held, redraws), 0.01, at_least=True, detail=detail))
    return ratios


def main() -> None:
    """Print and write the table."""
    redraws, wanted = int(sys.argv[1]) if len(sys.argv) > 1 else REDRAWS, sys.argv[2:]
    lines = [
        "Nominal 95 %: redraws, and % of them in which the interval held the truth; gap: % with a false claim.",
        "",
    ]
    for case in cases():
        if not wanted or any(case.name.startswith(word) for word in wanted):
            lines.append(line(case, int(redrawn(case, redraws).sum()), redraws))
            print(lines[-1], flush=True)
    if not wanted:
        (HERE / "audit-coverage.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
