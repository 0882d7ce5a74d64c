"""How often 95 % intervals of what judges accept hold the truth, where the threshold has people of its own.

    python benchmarks/judged.py [runs]      goes on where it was stopped; writes benchmarks/judged.txt

Pictures scatter around their person, Gaussian or with tails of Student's t of 3; the truth is that of one large
population. Each run draws calibrate and measured people anew. A line is BROKEN where a binomial test at 1 % rejects a
coverage of 93 to 99 %. Lines "before" show what a threshold that is taken as known, or the largest of six, would give.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.invert.test_worst_case import run as attack_run

from benchmarks.ratios import Ratio
from unface.invert.run import worst_cases
from unface.judge.template import Tally, measured, picture_thresholds, stranger_thresholds, tally
from unface.score import Draws, Threshold

HERE = Path(__file__).resolve().parent
DIM, LARGE, ERASED = 16, 5000, 12
MEAN, DRAWN = 0.6, 0.5
Vectors = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Setup:
    """A population, calibrate and measured people with so many pictures each, and a rate."""

    population: str
    far: float
    calibrate: tuple[int, int]
    people: int

    @property
    def name(self) -> str:
        """For the table."""
        people, pictures = self.calibrate
        expected = self.far * people * (people - 1) / 2 * pictures**2
        return f"{self.population}, FAR {self.far:g}, {people} × {pictures} calibrate ({expected:.0f} expected)"


SETUPS = [
    Setup(population, far, calibrate, people)
    for population in ("gaussian", "heavy tails")
    for far, calibrate, people in (
        (1e-2, (60, 4), 200),
        (1e-2, (30, 2), 200),
        (1e-3, (100, 3), 200),
        (1e-3, (40, 3), 100),
    )
]


def drawn(rng: np.random.Generator, population: str, people: int, pictures: int) -> tuple[Vectors, Codes]:
    """Pictures around their people, all somewhat alike."""
    codes = np.repeat(np.arange(people), pictures)
    faces, around = (
        rng.standard_normal((rows, DIM)) if population == "gaussian" else rng.standard_t(3, (rows, DIM))
        for rows in (people, len(codes))
    )
    return MEAN + faces[codes] + 0.6 * around, codes


def of_pictures(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """A picture in the place of a template."""
    return vectors, vectors


def of_templates(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """Templates that are drawn to the mean face, in the space of the pictures."""
    return (1 - DRAWN) * vectors + DRAWN * MEAN, vectors


def of_another(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """A second judge, who sees less."""
    return vectors[:, :ERASED], vectors[:, :ERASED]


View = Callable[[Vectors], tuple[Vectors, Vectors]]


def limits(view: View, vectors: Vectors, codes: Codes, far: float) -> tuple[Threshold, ...]:
    """Of calibrate people."""
    if view is of_templates:
        return stranger_thresholds(*view(vectors), codes, (far,))
    return picture_thresholds(view(vectors)[1], codes, (far,))


def judged(view: View, threshold: Threshold, vectors: Vectors, codes: Codes) -> Tally:
    """Measured people at a threshold."""
    templates, pictures = view(vectors)
    return tally(templates, np.arange(len(codes)), pictures, codes, [threshold])


@lru_cache(maxsize=64)
def truth(view: View, population: str, far: float) -> float:
    """Success in a large population."""
    vectors, codes = drawn(np.random.default_rng(1), population, LARGE, 2)
    (threshold,) = limits(view, vectors, codes, far)
    found = measured([judged(view, threshold, vectors, codes)], "other", 0, Draws(replicates=2))
    assert found is not None
    return found.value


def one_run(setup: Setup, number: int) -> dict[str, float]:
    """What held its truth (1) or not (0), by row; and how often templates of strangers were accepted, over the FAR."""
    rng = np.random.default_rng((number, SETUPS.index(setup)))
    calibrate = drawn(rng, setup.population, *setup.calibrate)
    people = drawn(rng, setup.population, setup.people, 2)
    draws, held = Draws(number, 500), dict[str, float]()

    def holds(row: str, views: tuple[View, ...], expected: float, less: View | None = None) -> None:
        for way in ("drawn", "known"):
            tallies = []
            for view in (*views, *([] if less is None else [less])):
                (threshold,) = limits(view, *calibrate, setup.far)
                used = threshold if way == "drawn" else Threshold.known(setup.far, threshold.cosine)
                tallies.append(judged(view, used, *people))
            found = measured(tallies[: len(views)], "other", 0, draws)
            assert found is not None
            interval = found.interval
            if less is not None:
                other = measured(tallies[len(views) :], "other", 0, draws)
                assert other is not None
                interval = found.less(other)[1]
            held[f"{row}: {way}"] = float(interval.low <= expected <= interval.high)

    alone, second, templates = (
        truth(view, setup.population, setup.far) for view in (of_pictures, of_another, of_templates)
    )
    holds("success of one judge", (of_pictures,), alone)
    holds("success of two judges", (of_pictures, of_another), (alone + second) / 2)
    holds("success of templates", (of_templates,), templates)
    holds("difference of two spaces", (of_pictures,), alone - second, of_another)
    for name, view in (("pictures", of_pictures), ("templates", of_templates)):
        (threshold,) = limits(view, *calibrate, setup.far)
        found = judged(of_templates, threshold, *people)
        held[f"strangers over FAR: thresholds of {name}"] = float(
            found.stranger.sum() / found.stranger_of.sum() / setup.far
        )
    return held


def chosen_run(number: int) -> dict[str, float]:
    """Six attacks of true 10 % on 150 targets."""
    rng = np.random.default_rng((number, 99))
    runs = [attack_run(f"a{one}", rng.random(150) < 0.1) for one in range(6)]
    (found,) = worst_cases(runs, number)
    best = max((one.judged.success()[0].same for one in runs), key=lambda share: share.value)
    return {
        "worst of six: chosen elsewhere": float(found.at.same.low <= 0.1 <= found.at.same.high),
        "worst of six: the largest": float(best.low <= 0.1 <= best.high),
        "value of the worst of six: chosen elsewhere": found.at.same.value,
        "value of the worst of six: the largest": best.value,
    }


def run(wanted: int = 400) -> list[Ratio]:
    """Runs that are missing, the table of all of them, and for each interval how well a binomial test bears it."""
    kept = HERE / "results" / "judged.jsonl"
    kept.parent.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(row["setup"], row["number"]) for row in rows}
    with kept.open("a") as file:
        for number in range(wanted):
            for name, setup in (*((one.name, one) for one in SETUPS), ("attacks", None)):
                if (name, number) in done:
                    continue
                found = chosen_run(number) if setup is None else one_run(setup, number)
                rows.append({"setup": name, "number": number, "held": found})
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    (HERE / "judged.txt").write_text("\n".join(table(rows)) + "\n")
    ratios = list[Ratio]()
    for setup in dict.fromkeys(row["setup"] for row in rows):
        runs = [row["held"] for row in rows if row["setup"] == setup]
        for name in runs[0]:
            if not name.startswith(_MEANS) and not name.endswith(_BEFORE):
                hits = int(sum(one[name] for one in runs))
                detail = f"{100 * hits / len(runs):.1f} % of {len(runs)} runs covered; p of 93 to 99 %"
                ratios.append(Ratio(f"{name}, {setup}", borne(hits, len(runs)), 0.01, at_least=True, detail=detail))
    return ratios


_MEANS, _BEFORE = ("strangers", "value"), (": known", ": the largest")


def borne(hits: int, runs: int) -> float:
    """The p-value of a coverage of 93 to 99 %."""
    too_few, too_many = binomtest(hits, runs, 0.93, "less"), binomtest(hits, runs, 0.99, "greater")
    return float(min(too_few.pvalue, too_many.pvalue))


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """By setup and row: coverage with its 95 % interval, or a mean with its standard error."""
    for setup in dict.fromkeys(row["setup"] for row in rows):
        found = [row["held"] for row in rows if row["setup"] == setup]
        yield f"{setup}: {len(found)} runs"
        for name in found[0]:
            values = np.array([one[name] for one in found])
            if name.startswith(_MEANS):
                yield f"    {values.mean():7.3f} ± {values.std() / np.sqrt(len(values)):.3f}  {name}"
                continue
            hits = int(values.sum())
            ends = binomtest(hits, len(values)).proportion_ci(0.95, "wilson")
            state = "holds " if borne(hits, len(values)) >= 0.01 else "BROKEN"
            state = "before" if name.endswith(_BEFORE) else state
            yield f"    {100 * values.mean():5.1f} % [{100 * ends.low:.1f}, {100 * ends.high:.1f}]  {state}  {name}"


if __name__ == "__main__":
    sys.exit(any(not ratio.holds for ratio in run(int(sys.argv[1]) if len(sys.argv) > 1 else 400)))
