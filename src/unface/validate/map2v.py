"""`map2v`: a face found by moving a generator's latent uphill in the score that a system answers with (paper 002).

A pool of generated faces is asked once, the latents of the best are averaged, and from there a gradient is estimated
from scores of nearby faces alone and followed by Adam. Constants are those of the published code where it differs from
the paper. ``map2v-improved`` asks in pairs, along directions in which generated faces differ most, and starts from the
template that `scores` recovers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.seeds import stream
from unface.validate.ports import Generator, Knowledge, Oracle, Picture, Recovered, Setting
from unface.validate.scores import Regressions

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """One schedule; the defaults are as published: 500 + 400 · 17 = 7,300 questions."""

    pool: int = 500
    """Generated faces to start from; they are asked unless ``from_scores``."""
    ensemble: int = 5
    """Best of the pool that are averaged; 1 is the ablation without an ensemble."""
    from_scores: int = 0
    """So many of the attacker's own faces are asked instead, and the pool faces nearest to their template are taken."""
    space: Literal["w+", "w", "principal"] = "w+"
    """A latent for each slot; one for all (the ablation without W+); or steps along principal directions of the pool,
    in their standard deviations."""
    components: int = 64
    steps: int = 400
    directions: int = 16
    antithetic: bool = False
    """Ask w + εu and w − εu for half as many u, and not w itself."""
    radius: float = 0.1
    rate: float = 0.1
    slower_from: int | None = 100
    """Step from which the rate is a tenth; the paper calls it fixed, its code does this."""
    decay: float = 5e-4
    truncation: float = 0.8
    """Pictures are drawn at this share of the way from the start to the latent."""

    @property
    def per_step(self) -> int:
        """Questions."""
        return self.directions if self.antithetic else self.directions + 1

    @property
    def questions(self) -> int:
        """Of a whole search."""
        return (self.from_scores or self.pool) + self.steps * self.per_step


PUBLISHED = Search()
IMPROVED = Search(
    pool=1000,
    from_scores=200,
    space="principal",
    antithetic=True,
    radius=1.0,
    rate=0.1,
    slower_from=None,
    decay=0.0,
    truncation=1.0,
)


class Map2V:
    """The published search; see ``Attack``."""

    name = "map2v"
    adaptive = True
    generates = True
    settings: tuple[Setting, ...] = ({},)

    def __init__(self, search: Search = PUBLISHED) -> None:
        self.search = search
        self._pool: Pool | None = None

    def run(self, oracle: Oracle, knowledge: Knowledge, queries: Sequence[int]) -> Recovered:
        """After n questions: the latent of the last step that fits; within the pool, the mean of the best so far."""
        if oracle.decisions_only:
            raise UnfaceError(f"{self.name}: follows scores, and this system answers with decisions; leave it out")
        size = self.search.pool if self.search.from_scores else min(self.search.pool, max(queries))
        if self._pool is None or self._pool.knowledge is not knowledge or len(self._pool.latents) != size:
            self._pool = Pool.drawn(self.name, self.search, knowledge, size)
        reached = self._start(oracle, queries)
        if reached:
            count, start = reached[-1]
            reached += self._climbed(oracle, start, count, max(queries))
        found = [max((one for one in reached if one[0] <= n), default=None, key=lambda one: one[0]) for n in queries]
        drawn = iter(self._pool.drawn_by.pictures(np.stack([one[1] for one in found if one] or [self._pool.mean])))
        pictures = tuple(None if one is None else next(drawn) for one in found)
        templates = np.full((1, len(queries), knowledge.vectors.shape[1]), np.nan)
        return Recovered(tuple(queries), templates, (pictures,))

    def _start(self, oracle: Oracle, queries: Sequence[int]) -> list[tuple[int, Matrix]]:
        """(questions asked, latents (slots, dim)) for each n within the first questions, and after all of them."""
        pool, search, budget = self._pool, self.search, max(queries)
        assert pool is not None
        faces = pool.knowledge.pictures[: search.from_scores] if search.from_scores else pool.pictures
        faces = faces[:budget]
        answers = oracle.ask(faces)
        reached = []
        for n in sorted({*(n for n in queries if n < len(faces)), len(faces)}):
            scores = pool.nearness(answers[:n]) if search.from_scores else answers[:n]
            known = np.flatnonzero(np.isfinite(scores))
            if len(known):
                best = known[np.argsort(-scores[known], kind="stable")[: search.ensemble]]
                reached.append((n, pool.latents[best].mean(axis=0)))
        return reached

    def _climbed(self, oracle: Oracle, start: Matrix, count: int, budget: int) -> list[tuple[int, Matrix]]:
        """(questions asked, latents as drawn) after each step."""
        search, pool = self.search, self._pool
        assert pool is not None
        chart = pool.chart(start)
        here = chart.origin.copy()
        adam, random = Adam(search.rate, search.decay), stream(pool.knowledge.seed, "map2v", "directions")

        def drawn(points: Matrix) -> Matrix:
            return start + search.truncation * (chart.latents(points) - start)

        def losses(points: Matrix) -> Vector:
            return -oracle.ask(pool.drawn_by.pictures(drawn(points)))

        reached = []
        for step in range(search.steps):
            if count + search.per_step > budget or not oracle.left:
                break
            pairs = search.directions // 2 if search.antithetic else search.directions
            units = unit_directions(random, pairs, len(here))
            changes = changes_of(losses(probes(here, search.radius * units, search.antithetic)), search.antithetic)
            count += search.per_step
            there = np.isfinite(changes)
            if there.any():
                slope = estimate(changes[there], units[there], search.radius, chart.factor)
                slower = search.slower_from is not None and step >= search.slower_from
                here = adam.step(here, slope, 0.1 if slower else 1.0)
                reached.append((count, drawn(here[None])[0]))
        return reached


class ImprovedMap2V(Map2V):
    """The same with fewer questions; see ``IMPROVED``."""

    name = "map2v-improved"

    def __init__(self, search: Search = IMPROVED) -> None:
        super().__init__(search)


def probes(here: Vector, moves: Matrix, antithetic: bool) -> Matrix:
    """(n, d) points to ask at: w and w + εu for each move; or, antithetic, w + εu for each and then w − εu."""
    return np.concatenate([here + moves, here - moves]) if antithetic else np.concatenate([here[None], here + moves])


def changes_of(losses: Vector, antithetic: bool) -> Vector:
    """How much the loss grows along each move, from the losses at ``probes``; antithetic, half of the difference."""
    half = len(losses) // 2
    return (losses[:half] - losses[half:]) / 2 if antithetic else losses[1:] - losses[0]


def estimate(changes: Vector, directions: Matrix, radius: float, factor: float) -> Vector:
    """(d,) the gradient as eq. 9 of paper 002 has it: the mean of ``factor`` · change / ε · u over directions (m, d).

    With the dimension d for ``factor`` it is unbiased on a linear loss, with variance (d − 1)|g|²/m over all numbers.
    """
    slope: Vector = (factor / radius) * (changes @ directions) / len(changes)
    return slope


def unit_directions(random: np.random.Generator, count: int, dim: int) -> Matrix:
    """(count, dim), uniform on the sphere."""
    drawn = random.standard_normal((count, dim))
    units: Matrix = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return units


class Adam:
    """As torch has it, with weight decay added to the gradient."""

    def __init__(self, rate: float, decay: float = 0.0) -> None:
        self.rate, self.decay = rate, decay
        self._steps, self._mean, self._square = 0, np.zeros(1), np.zeros(1)

    def step(self, here: Vector, slope: Vector, slower: float = 1.0) -> Vector:
        """Where the next step leads."""
        slope = slope + self.decay * here
        self._steps += 1
        self._mean = 0.9 * self._mean + 0.1 * slope
        self._square = 0.999 * self._square + 0.001 * slope**2
        mean, square = self._mean / (1 - 0.9**self._steps), self._square / (1 - 0.999**self._steps)
        moved: Vector = here - slower * self.rate * mean / (np.sqrt(square) + 1e-8)
        return moved


@dataclass(frozen=True, eq=False)
class Chart:
    """The numbers that a search moves, and the latents (n, slots, dim) that they stand for."""

    origin: Vector
    factor: float
    slots: int
    axes: Matrix | None = None
    """(d, dim) moves of all slots at once, from ``start``; None: the numbers are the latent itself."""
    start: Matrix | None = None

    def latents(self, points: Matrix) -> Matrix:
        if self.axes is not None and self.start is not None:
            return self.start + (points @ self.axes)[:, None]
        if self.start is not None:  # W: the same for all slots
            return np.repeat(points[:, None], self.slots, axis=1)
        return points.reshape(len(points), self.slots, -1)


@dataclass(frozen=True, eq=False)
class Pool:
    """Generated faces, drawn once for everybody."""

    knowledge: Knowledge
    search: Search
    generator: Generator | None
    """None where latents alone are needed."""
    latents: Matrix
    """(n, slots, dim)"""
    pictures: tuple[Picture, ...]
    vectors: NDArray[np.float32] | None
    regressions: Regressions | None

    @classmethod
    def drawn(cls, name: str, search: Search, knowledge: Knowledge, size: int) -> "Pool":
        generator = knowledge.generator
        if generator is None:
            raise UnfaceError(f"{name}: draws faces of its own and was given no generator; use unface validate for it")
        latents = generator.sample(size, knowledge.seed)
        pool = cls(knowledge, search, generator, latents, generator.pictures(latents), None, None)
        if not search.from_scores:
            return pool
        if knowledge.embed is None:
            raise UnfaceError(f"{name}: starts from a template and needs the attacker's encoder; use map2v")
        return replace(pool, vectors=knowledge.embed(pool.pictures), regressions=Regressions(knowledge))

    @property
    def drawn_by(self) -> Generator:
        """The generator, which ``drawn`` makes sure of."""
        assert self.generator is not None
        return self.generator

    @property
    def mean(self) -> Matrix:
        middle: Matrix = self.latents.mean(axis=0)
        return middle

    def nearness(self, answers: Vector) -> Vector:
        """(n,) cosine of each pool face with the template that `scores` finds; NaN where it finds none."""
        assert self.vectors is not None, "drawn with from_scores"
        assert self.regressions is not None
        there = np.isfinite(answers)
        if there.sum() < 2 or np.ptp(answers[there]) == 0:
            return np.full(len(self.vectors), np.nan)
        fit = self.regressions.of(there, prior=True)
        (template,) = fit.templates(answers[there][None], (1.0,))[0]
        nearness: Vector = self.vectors.astype(np.float64) @ template / np.linalg.norm(template)
        return nearness

    def chart(self, start: Matrix) -> Chart:
        """Of the search's space, around where it starts."""
        slots, dim = start.shape
        if self.search.space == "w+":
            # The published code has the dimension of one slot here; Adam cancels all but its share beside the decay.
            return Chart(start.ravel(), dim, slots)
        if self.search.space == "w":
            return Chart(start.mean(axis=0), dim, slots, start=start)
        spread = self.latents.mean(axis=1)
        _, values, axes = np.linalg.svd(spread - spread.mean(axis=0), full_matrices=False)
        kept = min(self.search.components, int((values > 1e-6 * values[0]).sum()))
        scaled = axes[:kept] * (values[:kept, None] / np.sqrt(len(spread)))
        return Chart(np.zeros(kept), kept, slots, scaled, start)
