"""How often 95 % intervals hold the truth: identities drawn anew many times from a model whose TAR is known.

    python benchmarks/coverage.py [redraws [first]]      writes benchmarks/coverage.txt, or coverage-from-FIRST.txt

Gaussian identities, score −‖a − b‖² over all d coordinates and over the first half of them (as if the rest had been
erased), so that both true TARs and their difference follow from the χ² law of ``truth``. Each redraw runs the real
protocol: calibrate and test identities of their own, five seeds, thresholds from calibrate, intervals as in an audit.
"""

import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from unface.data import make_identities
from unface.metrics import Interval, Scheme, wilson
from unface.pairs import PairSpace, l2_space
from unface.probe import Measurement, Plan, RoleRows, Roles, Setting, Support, Trial, draw_bootstrap, measure, run_panel
from unface.probe.measure import difference, seed_interval
from unface.threads import available_cores

IDENTITIES, IMAGES, K, REPLICATES = 80, 8, 2, 1000
_OF = ("TAR", "TAR, half", "difference")
_WAYS = (
    "double-or-nothing, first order (default)",
    "double-or-nothing, all orders",
    "multinomial",
    "1.96 sd over seeds (paper)",
    "Wilson on pairs",
)


@dataclass(frozen=True)
class Case:
    """One truth: dimension, σ_b / σ_w and the false-accept rate."""

    dim: int
    between: float
    far: float

    def truth(self, dim: int) -> float:
        """TAR(f) = F_d((1 + σ_b²/σ_w²) F_d⁻¹(f))."""
        return float(chi2.cdf((1 + self.between**2) * chi2.ppf(self.far, dim), dim))


CASES = (
    Case(64, 1.2, 1e-3),
    Case(64, 1.0, 1e-3),
    Case(32, 1.2, 1e-3),
    Case(32, 0.8, 1e-3),
    Case(32, 0.5, 1e-3),
    Case(8, 3.0, 1e-3),
    Case(32, 1.0, 1e-4),
)


@dataclass(frozen=True)
class FirstCoordinates:
    """A probe that learns nothing and compares the first ``dim`` coordinates."""

    dim: int
    settings: tuple[Setting, ...] = ({},)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"first {self.dim}"

    def fit(self, support: Support) -> "FirstCoordinates":
        return self

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        return l2_space(vectors[:, : self.dim])


def redraw(case: Case, number: int) -> Counter[tuple[str, str]]:
    """One draw of all identities: which intervals hold their truth."""
    people = make_identities(2 * IDENTITIES + 2, IMAGES, case.dim, between=case.between, seed=number)
    roles = Roles(
        *(_role(people.identities, *span) for span in ((0, 2), (2, IDENTITIES), (2 + IDENTITIES, IDENTITIES)))
    )
    plan = Plan(fars=(case.far,), ks=(K,), seed=number, threads=1)
    probes = [FirstCoordinates(case.dim), FirstCoordinates(case.dim // 2)]
    trials = list(run_panel(people.vectors, roles, probes, plan).trials.values())
    truths = case.truth(case.dim), case.truth(case.dim // 2)
    held: Counter[tuple[str, str]] = Counter()
    for way, found in _ways(trials, case, plan, number).items():
        for of, (interval, truth) in found(truths).items():
            held[way, of] += interval.low <= truth <= interval.high
    return held


class _Found(dict[str, Interval]):
    def __call__(self, truths: tuple[float, float]) -> dict[str, tuple[Interval, float]]:
        known = {"TAR": truths[0], "TAR, half": truths[1], "difference": truths[1] - truths[0]}
        return {of: (interval, known[of]) for of, interval in self.items()}


def _ways(trials: list[Trial], case: Case, plan: Plan, number: int) -> dict[str, _Found]:
    mirrored = draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, IDENTITIES, IDENTITIES, REPLICATES, number)
    multinomial = draw_bootstrap(Scheme.MULTINOMIAL, IDENTITIES, IDENTITIES, REPLICATES, number)
    ours, plain, drawn = (
        [measure(trial, case.far, weights, plan) for trial in trials]
        for weights in (mirrored, replace(mirrored, mirrored=False), multinomial)
    )
    over_seeds = _Found(zip(_OF, [seed_interval(found.by_seed, 0.95) for found in ours], strict=False))
    over_pairs = _Found(zip(_OF, [_pairwise(found) for found in ours], strict=False))
    found = (_intervals(ours), _intervals(plain), _intervals(drawn), over_seeds, over_pairs)
    return dict(zip(_WAYS, found, strict=True))


def _intervals(found: list[Measurement]) -> _Found:
    whole, half = found
    return _Found({"TAR": whole.interval, "TAR, half": half.interval, "difference": difference(whole, half)[1]})


def _pairwise(found: Measurement) -> Interval:
    """As if the distinct pairs were independent."""
    pairs = IDENTITIES * IMAGES * (IMAGES - 1) // 2
    return wilson(found.tar * pairs, pairs)


def _role(identities: NDArray[np.int64], first: int, count: int) -> RoleRows:
    rows = np.flatnonzero((identities >= first) & (identities < first + count))
    return RoleRows(rows, identities[rows] - first, count)


def main() -> None:
    """Print and write the table."""
    redraws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    noise = 1.96 * np.sqrt(0.95 * 0.05 / redraws)
    lines = [
        f"Coverage of nominal 95 % intervals: {redraws} redraws of {IDENTITIES} calibrate and {IDENTITIES} test people",
        f"({IMAGES} images each, k = {K}, 5 seeds, {REPLICATES} replicates). Simulation noise ± {100 * noise:.1f}.",
        "",
    ]
    for case in CASES:
        with ProcessPoolExecutor(available_cores()) as pool:
            held = sum(
                pool.map(partial(redraw, case), range(first, first + redraws), chunksize=10), Counter[tuple[str, str]]()
            )
        lines.append(
            f"d = {case.dim}, σ_b/σ_w = {case.between}, FAR {case.far:g}: "
            f"TAR {100 * case.truth(case.dim):.2f} %, half {100 * case.truth(case.dim // 2):.2f} %"
        )
        for way in sorted({way for way, _ in held}, key=_WAYS.index):
            cells = [f"{of} {100 * held[way, of] / redraws:5.1f}" for of in _OF if (way, of) in held]
            lines.append(f"    {way:40s} {'   '.join(cells)}")
        print("\n".join(lines[-6:]), flush=True)
    name = f"coverage-from-{first}.txt" if first else "coverage.txt"
    (Path(__file__).parent / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
