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

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, chi2, norm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ratios import Ratio
from unface.data import EmbeddingSet, Space, make_identities
from unface.erase import Projection, certificate
from unface.erase.gate import fit_gate
from unface.moments import class_moments
from unface.result.numbers import Kept
from unface.utility import kept, labelled_task
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


def _face_gate(number: int, alike: float, people: int = 300, images: int = 10) -> dict[str, bool]:
    """A face's miss rate by the normal law; pictures of a person share ``alike`` of their variance."""
    rng, apart = np.random.default_rng(number), np.array([4.5, -2.0, 3.5, 0.0, 0.0, 0.0])

    def drawn(rows: int, of: int = 1) -> NDArray[np.float32]:
        shared = np.repeat(rng.standard_normal((rows // of, len(apart))), of, axis=0)
        mixed = np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal((rows, len(apart)))
        return np.asarray(mixed, np.float32)

    faces = class_moments(drawn(400) + apart, np.zeros(400, np.int64))
    held = drawn(people * images, images) + apart.astype(np.float32)
    gate = fit_gate(faces, drawn(800), held, np.arange(people * images) // images, miss=0.02)
    true = float(norm.cdf(-(float(gate.weights @ apart) + gate.offset)))
    return {"miss rate below its bound": true <= gate.certificate.bound}


def _certified(number: int, people: int = 40, train: int = 120, images: int = 4, dim: int = 64) -> dict[str, bool]:
    """People who differ less and less from direction to direction; the largest Fisher ratio is the first's."""
    rng = np.random.default_rng(number)
    between, within = 2 * 0.6 ** np.arange(dim), rng.uniform(0.3, 1.5, dim)
    identities = np.repeat(np.arange(people + train), images)
    means = rng.standard_normal((people + train, dim)) * np.sqrt(between)
    vectors = means[identities] + rng.standard_normal((len(identities), dim)) * np.sqrt(within)
    judged, true = identities < people, float((between / within).max())
    plain = Space(None, None, dim, normalised=False)
    nothing = Projection("isp", np.eye(dim)[:, -1:].copy(), np.ones(1), plain, normalise=False)
    others = vectors[~judged], identities[~judged]
    found = certificate(nothing, vectors[judged], identities[judged], train=others).fisher_before
    return {"largest Fisher ratio above its bound": found.low <= true}


def _retained(number: int, classes: int = 6, bursts: int = 20, dim: int = 12) -> dict[str, bool]:
    """k-NN and linear probe after a random subspace is removed; test pictures come in bursts of five of one scene."""
    values = {one.measure: one.retained for one in _in_bursts(number, classes, bursts, dim)}
    return {name: values[name].low <= true <= values[name].high for name, true in _TRULY_RETAINED.items()}


# The mean of 2,000 other draws of the same classes: numbers 10,000 to 11,999.
_TRULY_RETAINED = {"knn": 0.9668, "linear": 0.9768}


def _in_bursts(number: int, classes: int, bursts: int, dim: int) -> list[Kept]:
    drawn, rng = np.random.default_rng(9), np.random.default_rng((7, number))
    means = drawn.standard_normal((classes, dim))
    removed = np.linalg.qr(drawn.standard_normal((dim, 3)))[0]
    of_burst = np.repeat(np.arange(classes), bursts)
    scenes = means[of_burst] + 1.2 * rng.standard_normal((len(of_burst), dim))
    burst = np.repeat(np.arange(len(scenes)), 5)
    vectors = (scenes[burst] + 0.15 * rng.standard_normal((len(burst), dim))).astype(np.float32)
    names, ids = [f"c{one}" for one in of_burst[burst]], [f"{row:05d}" for row in range(len(burst))]
    labels = {"group": burst.astype(str), "split": np.where(burst % 2, "train", "test")}
    task = labelled_task(EmbeddingSet.from_arrays(vectors, names, ids=ids, labels=labels))
    left = task.vectors - (task.vectors @ removed) @ removed.T
    erased = (left / np.linalg.norm(left, axis=1, keepdims=True)).astype(np.float32)
    both = zip(task.outcomes(task.vectors), task.outcomes(erased), strict=True)
    return [kept(before, after) for before, after in both]


CASES: dict[str, Callable[[int], dict[str, bool]]] = {
    "verify, 120 people × 6": _verified,
    "verify, 60 people × 4": lambda number: _verified(number, people=60, images=4, dim=16),
    "verify, 200 people × 3, well apart": lambda number: _verified(number, people=200, images=3, between=1.5),
    "certificate, 40 people and 120 to learn from": _certified,
    "certificate, 12 people and 40 to learn from": lambda number: _certified(number, 12, 40, 3, 16),
    "face gate, pictures all but equal": lambda number: _face_gate(number, 0.98),
    "face gate, pictures alike": lambda number: _face_gate(number, 0.7),
    "face gate, independent pictures": lambda number: _face_gate(number, 0.0),
    "retained, bursts of five": _retained,
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


def doubt(name: str, runs: int, held: int) -> float:
    """The probability of a coverage so far from the allowed range: the smaller of both sides, for a bound the lower."""
    low, high = float(binom.cdf(held, runs, _AT_LEAST)), float(binom.sf(held - 1, runs, _AT_MOST))
    return low if "bound" in name else min(low, high)


def run() -> list[Ratio]:
    """A ratio for each number of each case: the probability, to be at least 1 %, that its coverage is allowed."""
    ratios = []
    for case in CASES:
        for name, (runs, held) in sorted(more(case, RUNS).items()):
            detail = f"{held} of {runs} held, {100 * held / runs:.1f} %"
            ratios.append(Ratio(f"{name}, {case}", doubt(name, runs, held), _SURE, at_least=True, detail=detail))
    return ratios


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("cases", nargs="*", default=list(CASES))
    given.add_argument("--runs", type=int, default=RUNS)
    asked = given.parse_args()
    for chosen in asked.cases:
        for name, (runs, held) in sorted(more(chosen, asked.runs).items()):
            print(
                f"{chosen}: {name} {held} of {runs} held ({100 * held / runs:.1f} %), p {doubt(name, runs, held):.3f}"
            )
