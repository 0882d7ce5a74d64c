"""How often intervals hold the truth where people resemble each other, and what the resolution rule says of them.

    python benchmarks/coverage_populations.py [runs]     counts in results/, a table in coverage-populations.txt

Gaussian identities as in coverage.py, whose true TAR and threshold follow from a mixture of χ² laws. In clusters half
of the people are in families whose members lie close together. Wolves lie near the middle and so resemble everybody;
each person is one with some chance, or as many of each draw are. Uneven people are alike, with 2 to 20 pictures. Each
run draws calibrate and test people anew. Runs are numbered and counts kept, so that the command, given again, goes on
where it stopped; 400 runs of each case by default.
"""

import json
import math
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binomtest, chi2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.coverage import FirstCoordinates
from benchmarks.ratios import Ratio
from unface.metrics import Resolution, Scheme
from unface.probe import Measurement, Plan, RoleRows, Roles, draw_bootstrap, measure, run_panel
from unface.probe.measure import difference
from unface.seeds import stream
from unface.threads import one_blas_thread

DIM, REPLICATES, AT_ONCE = 32, 1000, 20
CLUSTERS = {"families": (5, 0.3), "close families": (10, 0.05)}
"""People of a family, and the share of the variance between people in which they differ."""
WOLVES = {"wolves": (0.05, 0.15), "rare wolves": (0.01, 0.0)}
STEADY = {"as many wolves": (0.05, 0.15), "as many rare wolves": (0.01, 0.0)}
"""Share of wolves, and their variance around the middle, as a share of other people's."""
HERE = Path(__file__).resolve().parent
COUNTS = HERE / "results" / "coverage-populations.json"


@dataclass(frozen=True)
class Case:
    """A population, what is drawn of it for each role, σ_b / σ_w and the false-accept rate."""

    population: str
    people: int
    pictures: int
    between: float
    far: float

    @property
    def name(self) -> str:
        return f"{self.population}, {self.people} × {self.pictures}, FAR {self.far:g}"

    def mixture(self) -> list[tuple[float, float]]:
        """(share, variance between the two people) of impostor pairs."""
        whole = self.between**2
        if self.population in CLUSTERS:
            family, own = CLUSTERS[self.population]
            relatives = (self.people // 2 // family * family) * (family - 1) / (self.people * (self.people - 1))
            return [(relatives, own * whole), (1 - relatives, whole)]
        if self.population in STEADY:
            share, near = STEADY[self.population]
            few, people = round(share * self.people), self.people
            pairs = few * (few - 1), 2 * few * (people - few), (people - few) * (people - few - 1)
            every = people * (people - 1)
            variances = near * whole, (1 + near) / 2 * whole, whole
            return [(number / every, one) for number, one in zip(pairs, variances, strict=True)]
        if self.population in WOLVES:
            wolves, near = WOLVES[self.population]
            one = 2 * wolves * (1 - wolves)
            return [(wolves**2, near * whole), (one, (1 + near) / 2 * whole), ((1 - wolves) ** 2, whole)]
        return [(1.0, whole)]

    def truth(self, dim: int) -> float:
        """TAR at the threshold that accepts the target share of impostor pairs; σ_w is 1."""

        def accepted(squared: float) -> float:
            parts = (share * chi2.cdf(squared / (2 * (variance + 1)), dim) for share, variance in self.mixture())
            return math.log(max(sum(parts), 1e-300) / self.far)

        return float(chi2.cdf(brentq(accepted, 1e-3, 1e4) / 2, dim))

    def draw(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Vectors and people: two nobody learns from, then calibrate, then test."""
        rng = stream(number, "populations", self.population, self.people)
        means = [rng.standard_normal((2, DIM)), *(self._means(rng) for _ in range(2))]
        pictures = np.full(2 + 2 * self.people, self.pictures)
        if self.population == "uneven":
            pictures = np.minimum(1 + rng.geometric(1 / (self.pictures - 1), len(pictures)), 20)
        people = np.repeat(np.arange(len(pictures)), pictures)
        vectors = self.between * np.concatenate(means)[people] + rng.standard_normal((len(people), DIM))
        return vectors.astype(np.float32), people

    def _means(self, rng: np.random.Generator) -> NDArray[np.float64]:
        means = rng.standard_normal((self.people, DIM))
        if self.population in CLUSTERS:
            family, own = CLUSTERS[self.population]
            related = self.people // 2 // family * family
            shared = np.repeat(rng.standard_normal((related // family, DIM)), family, axis=0)
            means[:related] = math.sqrt(own) * means[:related] + math.sqrt(1 - own) * shared
        if self.population in WOLVES:
            wolves, near = WOLVES[self.population]
            means[rng.random(self.people) < wolves] *= math.sqrt(near)
        if self.population in STEADY:
            share, near = STEADY[self.population]
            means[: round(share * self.people)] *= math.sqrt(near)
        return means


CASES = (
    Case("alike", 100, 5, 0.9, 1e-3),
    Case("alike", 200, 5, 1.0, 1e-4),
    Case("alike", 13, 20, 0.9, 1e-3),
    Case("families", 100, 5, 1.1, 1e-3),
    Case("families", 200, 5, 1.3, 1e-4),
    Case("close families", 100, 5, 4.0, 1e-3),
    Case("wolves", 100, 5, 1.2, 1e-3),
    Case("wolves", 200, 5, 1.2, 1e-4),
    Case("rare wolves", 100, 5, 1.2, 1e-3),
    Case("rare wolves", 400, 5, 1.2, 1e-3),
    Case("as many wolves", 100, 5, 1.2, 1e-3),
    Case("as many rare wolves", 100, 5, 1.2, 1e-3),
    Case("uneven", 100, 5, 0.9, 1e-3),
)


def redraw(case: Case, number: int) -> Counter[str]:
    """One draw: was each interval right, and was its rate resolved, by pairs alone and by people?"""
    vectors, people = case.draw(number)
    spans = (0, 2), (2, case.people), (2 + case.people, case.people)
    rows = [np.flatnonzero((people >= first) & (people < first + count)) for first, count in spans]
    parts = [RoleRows(row, people[row] - span[0], span[1]) for row, span in zip(rows, spans, strict=True)]
    plan = Plan(fars=(case.far,), ks=(1,), seeds=1, seed=number, threads=1)
    trials = run_panel(vectors, Roles(*parts), [FirstCoordinates(DIM), FirstCoordinates(DIM // 2)], plan).trials
    weights = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, case.people, case.people, REPLICATES, number)
    by_pairs = next(iter(trials.values())).resolved.of[case.far] is Resolution.RESOLVED
    whole, half = (measure(trial, case.far, weights, plan) for trial in trials.values())
    truths = case.truth(DIM), case.truth(DIM // 2)
    change = difference(whole, half)[1]
    both = [whole, half]
    judged: list[tuple[str, bool, list[Measurement]]] = [
        ("TAR", whole.interval.low <= truths[0] <= whole.interval.high, [whole]),
        ("TAR, half", half.interval.low <= truths[1] <= half.interval.high, [half]),
        ("difference", change.low <= truths[1] - truths[0] <= change.high, both),
    ]
    counts: Counter[str] = Counter(runs=1)
    for what, held, sides in judged:
        resolved = all(side.resolution is Resolution.RESOLVED for side in sides)
        for rule, applies in (("by pairs", by_pairs), ("by people", resolved)):
            counts[f"{what}, {rule}"] += applies
            counts[f"{what}, {rule}, held"] += applies and held
        counts[f"{what}, held"] += held
    return counts


def table(known: dict[str, Counter[str]]) -> list[str]:
    """Coverage of all runs, of those that pairs alone call resolved, and of those that people do."""
    lines = ["Coverage of nominal 95 % intervals, % [95 % binomial interval] of so many resolved runs", ""]
    for case in CASES:
        found = known.get(case.name, Counter())
        truths = ", ".join(f"{100 * case.truth(dim):.1f} %" for dim in (DIM, DIM // 2))
        lines.append(f"{case.name}: {found['runs']} runs; TAR {truths}")
        for what in ("TAR", "TAR, half", "difference"):
            cells = [f"all {_share(found[f'{what}, held'], found['runs'])}"]
            for rule in ("by pairs", "by people"):
                cells.append(f"{rule} {_share(found[f'{what}, {rule}, held'], found[f'{what}, {rule}'])}")
            lines.append(f"    {what:12s}" + "   ".join(cells))
    return lines


def _share(held: int, of: int) -> str:
    if not of:
        return "none".rjust(26)
    ends = binomtest(held, of).proportion_ci(0.95, "exact")
    return f"{100 * held / of:5.1f} [{100 * ends.low:4.1f}, {100 * ends.high:5.1f}] of {of:4d}"


def run() -> list[Ratio]:
    """What ``make bench`` asks for: the upper end of the 99 % binomial interval of each coverage where resolved.

    Without populations whose draws differ in how many resemble everybody: those of which a draw holds none look
    resolved (docs/limits.md).
    """
    known, ratios = count_up(400), []
    for case in CASES:
        held, of = (known[case.name][f"TAR, by people{ending}"] for ending in (", held", ""))
        if case.population in WOLVES or not of:
            continue
        least = 0.92 if case.population in {**CLUSTERS, **STEADY} else 0.93
        high = binomtest(held, of).proportion_ci(0.99, "exact").high
        name = f"coverage of TAR, {case.name}: highest that {of} runs allow"
        ratios.append(Ratio(name, high, least, at_least=True, detail=f"{held} of {of}"))
    return ratios


def count_up(wanted: int) -> dict[str, Counter[str]]:
    """Go on until every case has so many runs."""
    COUNTS.parent.mkdir(exist_ok=True)
    known = (
        {name: Counter(counts) for name, counts in json.loads(COUNTS.read_text()).items()} if COUNTS.exists() else {}
    )
    for start in range(0, wanted, AT_ONCE):
        for case in CASES:
            have = known.setdefault(case.name, Counter())
            if have["runs"] > start:
                continue
            with one_blas_thread():
                numbers = range(have["runs"], min(start + AT_ONCE, wanted))
                known[case.name] = sum(map(partial(redraw, case), numbers), have)
            written = COUNTS.with_suffix(".new")
            written.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            written.replace(COUNTS)
    return known


def main() -> None:
    """Print and write the table."""
    lines = table(count_up(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
    print("\n".join(lines))
    (HERE / "coverage-populations.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
