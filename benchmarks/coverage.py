"""How often 95 % intervals hold the truth: identities drawn anew many times from a model whose TAR is known.

    python benchmarks/coverage.py [redraws [first]]      writes benchmarks/coverage.txt, or coverage-from-FIRST.txt
    python benchmarks/coverage.py albums [redraws]       writes benchmarks/coverage-albums.txt

Gaussian identities, score −‖a − b‖² over all d coordinates and over the first half of them (as if the rest had been
erased), so that both true TARs and their difference follow from the χ² law of ``truth``. Each redraw runs the real
protocol: calibrate and test identities of their own, five seeds, thresholds from calibrate, intervals as in an audit.
Albums are compared by the squared distance of their means, which has the same law with less noise.
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
from unface.probe.album_trial import run_albums
from unface.probe.albums import AlbumSize, Dealt, album_means
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

    def seen(self, setting: Setting, vectors: NDArray[np.float32]) -> "MeansOfFirst":
        return MeansOfFirst(vectors, self.dim)


@dataclass(frozen=True)
class AlbumCase(Case):
    """The same with albums of so many pictures of ``images`` of each person."""

    images: int
    size: AlbumSize

    def truth(self, dim: int) -> float:
        """TAR(f) = F_d((1 + σ_b²/s²) F_d⁻¹(f)), s² the mean noise of the two means: σ_w²/m for m against m."""
        noise = (1 / self.size.first + 1 / self.size.second) / 2
        return float(chi2.cdf((1 + self.between**2 / noise) * chi2.ppf(self.far, dim), dim))


ALBUM_CASES = (
    AlbumCase(32, 0.8, 1e-3, 8, AlbumSize(2, 2)),
    AlbumCase(32, 0.35, 1e-3, 8, AlbumSize(2, 2)),
    AlbumCase(32, 0.6, 1e-2, 8, AlbumSize(4, 4)),
    AlbumCase(32, 0.3, 1e-3, 8, AlbumSize(4, 4)),
    AlbumCase(32, 0.5, 1e-2, 5, AlbumSize(2, 3)),
)


@dataclass(frozen=True, eq=False)
class MeansOfFirst:
    """Albums by the squared distance of the first ``dim`` coordinates of their means."""

    vectors: NDArray[np.float32]
    dim: int

    def space(self, dealt: Dealt) -> PairSpace:
        return l2_space(album_means(self.vectors[:, : self.dim], dealt))


def redraw_albums(case: AlbumCase, number: int) -> Counter[tuple[str, str]]:
    """One draw of all identities and deals."""
    people = make_identities(2 * IDENTITIES + 2, case.images, case.dim, between=case.between, seed=number)
    plan = Plan(fars=(case.far,), ks=(1,), seed=number, threads=1)
    probes = [(FirstCoordinates(dim), {}) for dim in (case.dim, case.dim // 2)]
    trials = list(run_albums(people.vectors, _roles(people.identities), probes, plan, [case.size]).values())
    return _held(trials, case, plan, number)


def redraw(case: Case, number: int) -> Counter[tuple[str, str]]:
    """One draw of all identities: which intervals hold their truth."""
    people = make_identities(2 * IDENTITIES + 2, IMAGES, case.dim, between=case.between, seed=number)
    plan = Plan(fars=(case.far,), ks=(K,), seed=number, threads=1)
    probes = [FirstCoordinates(case.dim), FirstCoordinates(case.dim // 2)]
    trials = list(run_panel(people.vectors, _roles(people.identities), probes, plan).trials.values())
    return _held(trials, case, plan, number)


def _held(trials: list[Trial], case: Case, plan: Plan, number: int) -> Counter[tuple[str, str]]:
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
    ours = [measure(trial, case.far, mirrored, plan) for trial in trials]
    pairs = ours[0].mated if isinstance(case, AlbumCase) else IDENTITIES * IMAGES * (IMAGES - 1) // 2
    found = {
        _WAYS[0]: _intervals(ours),
        _WAYS[3]: _Found(zip(_OF, [seed_interval(one.by_seed, 0.95) for one in ours], strict=False)),
        _WAYS[4]: _Found(zip(_OF, [wilson(one.tar * pairs, pairs) for one in ours], strict=False)),
    }
    if not isinstance(case, AlbumCase):
        multinomial = draw_bootstrap(Scheme.MULTINOMIAL, IDENTITIES, IDENTITIES, REPLICATES, number)
        for way, weights in ((_WAYS[1], replace(mirrored, scheme=Scheme.MULTINOMIAL)), (_WAYS[2], multinomial)):
            found[way] = _intervals([measure(trial, case.far, weights, plan) for trial in trials])
    return found


def _intervals(found: list[Measurement]) -> _Found:
    whole, half = found
    return _Found({"TAR": whole.interval, "TAR, half": half.interval, "difference": difference(whole, half)[1]})


def _roles(identities: NDArray[np.int64]) -> Roles:
    return Roles(*(_role(identities, *span) for span in ((0, 2), (2, IDENTITIES), (2 + IDENTITIES, IDENTITIES))))


def _role(identities: NDArray[np.int64], first: int, count: int) -> RoleRows:
    rows = np.flatnonzero((identities >= first) & (identities < first + count))
    return RoleRows(rows, identities[rows] - first, count)


def main() -> None:
    """Print and write the table."""
    albums = sys.argv[1:2] == ["albums"]
    given = sys.argv[1 + albums :]
    redraws = int(given[0]) if given else 1000
    first = int(given[1]) if len(given) > 1 else 0
    noise = 1.96 * np.sqrt(0.95 * 0.05 / redraws)
    of_each = "albums of their pictures" if albums else f"{IMAGES} images each, k = {K}"
    lines = [
        f"Coverage of nominal 95 % intervals: {redraws} redraws of {IDENTITIES} calibrate and {IDENTITIES} test people",
        f"({of_each}, 5 seeds, {REPLICATES} replicates). Simulation noise ± {100 * noise:.1f}.",
        "",
    ]
    for case in ALBUM_CASES if albums else CASES:
        drawn = partial(redraw_albums if isinstance(case, AlbumCase) else redraw, case)
        with ProcessPoolExecutor(available_cores()) as pool:
            held = sum(pool.map(drawn, range(first, first + redraws), chunksize=10), Counter[tuple[str, str]]())
        said = ""
        if isinstance(case, AlbumCase):
            said = f"{case.size.first} against {case.size.second} of {case.images} pictures, "
        lines.append(
            f"{said}d = {case.dim}, σ_b/σ_w = {case.between}, FAR {case.far:g}: "
            f"TAR {100 * case.truth(case.dim):.2f} %, half {100 * case.truth(case.dim // 2):.2f} %"
        )
        for way in sorted({way for way, _ in held}, key=_WAYS.index):
            cells = [f"{of} {100 * held[way, of] / redraws:5.1f}" for of in _OF if (way, of) in held]
            lines.append(f"    {way:40s} {'   '.join(cells)}")
        print("\n".join(lines[-4 if albums else -6 :]), flush=True)
    name = "coverage-albums.txt" if albums else f"coverage-from-{first}.txt" if first else "coverage.txt"
    (Path(__file__).parent / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
