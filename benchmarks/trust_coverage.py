"""How often stated 95 % intervals and bounds hold the truth, on people drawn anew from models that know it.

    python benchmarks/trust_coverage.py [case …] [--runs 400]

Adds runs to ``benchmarks/trust-coverage.json`` until each case has as many: a stopped bench goes on where it was.
``make bench`` judges the runs that are recorded, and makes those that are missing.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from scipy.optimize import brentq
from scipy.stats import binom, chi2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ratios import Ratio
from unface.data import make_identities
from unface.verification import verify

RUNS = 400
RECORD = Path(__file__).with_name("trust-coverage.json")
# Nominal 95 % is kept where a binomial test at 1 % rejects neither of these.
_AT_LEAST, _AT_MOST, _SURE = 0.93, 0.99, 0.01


def _verified(number: int, people: int = 120, images: int = 6, dim: int = 32, between: float = 1.0) -> dict[str, bool]:
    """Squared distances of Gaussian people: TAR(f) = F((1 + σ_b²/σ_w²) F⁻¹(f)), F of the χ² law."""
    made = make_identities(people, images, dim, between=between, seed=number)
    far, ratio = 1e-2, 1 + between**2
    found = verify(made.vectors, made.identities, far=far, score="l2", threads=1)
    tar = float(chi2.cdf(ratio * chi2.ppf(far, dim), dim))
    eer = brentq(lambda rate: 1 - chi2.cdf(ratio * chi2.ppf(rate, dim), dim) - rate, 1e-9, 0.5)
    interval = found.interval(far)
    assert interval is not None
    return {
        "TAR": interval.low <= tar <= interval.high,
        "EER": found.eer_interval.low <= eer <= found.eer_interval.high,
    }


CASES: dict[str, Callable[[int], dict[str, bool]]] = {
    "verify, 120 people × 6": _verified,
    "verify, 60 people × 4": lambda number: _verified(number, people=60, images=4, dim=16),
    "verify, 200 people × 3, well apart": lambda number: _verified(number, people=200, images=3, between=1.5),
}


def known() -> dict[str, dict[str, list[int]]]:
    """By case and number: runs, and in how many of them it held."""
    if not RECORD.is_file():
        return {}
    read: dict[str, dict[str, list[int]]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return read


def more(case: str, runs: int) -> dict[str, list[int]]:
    """Runs of a case until it has as many; kept after every twentieth."""
    record = known()
    done = record.setdefault(case, {})
    first = min((count for count, _ in done.values()), default=0)
    for number in range(first, runs):
        for name, held in CASES[case](number).items():
            count, good = done.get(name, [0, 0])
            done[name] = [count + 1, good + held]
        if number % 20 == 19 or number + 1 == runs:
            RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return done


def doubt(runs: int, held: int) -> float:
    """The probability of a coverage so far from the allowed range: the smaller of both sides."""
    return float(min(binom.cdf(held, runs, _AT_LEAST), binom.sf(held - 1, runs, _AT_MOST)))


def run() -> list[Ratio]:
    """A ratio for each number of each case: the probability, to be at least 1 %, that its coverage is allowed."""
    ratios = []
    for case in CASES:
        for name, (runs, held) in sorted(more(case, RUNS).items()):
            detail = f"{held} of {runs} held, {100 * held / runs:.1f} %"
            ratios.append(Ratio(f"{name}, {case}", doubt(runs, held), _SURE, at_least=True, detail=detail))
    return ratios


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("cases", nargs="*", default=list(CASES))
    given.add_argument("--runs", type=int, default=RUNS)
    asked = given.parse_args()
    for chosen in asked.cases:
        for name, (runs, held) in sorted(more(chosen, asked.runs).items()):
            print(f"{chosen}: {name} {held} of {runs} held ({100 * held / runs:.1f} %), p {doubt(runs, held):.3f}")
