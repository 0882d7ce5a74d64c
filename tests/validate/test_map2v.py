"""Map²V: its gradient has the mean and variance of theory, it asks as often as it says, and it finds a face."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.validate.world import DIM as WORLD_DIM
from tests.validate.world import World, world
from unface.judge.template import unit_rows
from unface.seeds import stream
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.map2v import (
    IMPROVED,
    PUBLISHED,
    Adam,
    ImprovedMap2V,
    Map2V,
    Search,
    changes_of,
    estimate,
    probes,
    unit_directions,
)
from unface.validate.oracle import Pace, Session
from unface.validate.ports import Knowledge, Picture, Recovered
from unface.validate.run import Case, Plan, validate
from unface.validate.targets import OpenedTarget

Numbers = NDArray[np.float64]
SLOTS, DIM, TRIALS = 2, 5, 60_000
BINDING = Binding("toy", "0" * 64, "0" * 64, "0" * 64, None)


class ToyFaces:
    """A generator whose pictures are the latents themselves."""

    name = "toy"

    def __init__(self, spread: Numbers) -> None:
        self.spread = spread

    def sample(self, count: int, seed: int) -> Numbers:
        drawn = self.spread * stream(seed, "toy faces").standard_normal((count, len(self.spread)))
        return np.repeat(drawn[:, None], SLOTS, axis=1)

    def pictures(self, latents: Numbers) -> tuple[Picture, ...]:
        return tuple(Picture(str(at), np.asarray(one, np.float64).tobytes()) for at, one in enumerate(latents))


class ToyTarget:
    """Answers with minus the squared distance of the mean latent to one that nobody knows, which a cosine is nearby."""

    name, decisions_only, batch = "toy", False, 64

    def __init__(self, truth: Numbers, answers: int | None = None) -> None:
        self.truth, self.asked, self._answers = truth, 0, answers

    def score(self, person: str, pictures: Sequence[Picture]) -> Numbers:
        self.asked += len(pictures)
        if self._answers is not None and self.asked > self._answers:
            return np.full(len(pictures), np.nan)
        seen = seen_of(pictures)
        return -np.asarray(((seen - self.truth) ** 2).sum(axis=1))


def seen_of(pictures: Sequence[Picture]) -> Numbers:
    latents = np.stack([np.frombuffer(one.content).reshape(SLOTS, -1) for one in pictures])
    middle: Numbers = latents.mean(axis=1)
    return middle


def knowledge(spread: Numbers = np.ones(DIM)) -> Knowledge:  # noqa: B008 never changed
    faces = ToyFaces(spread)
    pictures = faces.pictures(faces.sample(40, 99))
    vectors = embed(pictures)
    return Knowledge(pictures, vectors, "own", 0, faces, embed)


def embed(pictures: Sequence[Picture]) -> NDArray[np.float32]:
    seen = seen_of(pictures)
    return unit_rows(seen).astype(np.float32)


def attacked(
    attack: Map2V,
    folder: Path,
    queries: Sequence[int],
    target: ToyTarget | None = None,
    spread: Numbers = np.ones(DIM),  # noqa: B008 never changed
) -> tuple[Recovered, Session, ToyTarget]:
    target = target or ToyTarget(0.6 * stream(5, "truth").standard_normal(DIM))
    with opened_ledger(folder / "ledger.jsonl", BINDING) as ledger:
        session = Session(target, ledger, Pace())
        return attack.run(session.person(0, "p0", max(queries)), knowledge(spread), queries), session, target


def error(found: Recovered, target: ToyTarget) -> list[float]:
    return [float(np.linalg.norm(seen_of([one])[0] - target.truth)) for one in found.pictures[0] if one is not None]


class Quadratic:
    """The loss ½ wᵀHw + gᵀw."""

    def __init__(self, gradient: Numbers, curvature: Numbers) -> None:
        self.gradient, self.curvature = gradient, curvature

    def __call__(self, points: Numbers) -> Numbers:
        bent = np.einsum("md,de,me->m", points, self.curvature, points)
        return np.asarray(points @ self.gradient + bent / 2)

    def estimated(self, units: Numbers, radius: float, *, antithetic: bool) -> Numbers:
        """At 0, by the search's own probes, differences and estimate."""
        losses = self(probes(np.zeros(len(self.gradient)), radius * units, antithetic))
        return estimate(changes_of(losses, antithetic), units, radius, len(self.gradient))


def many(loss: Quadratic, directions: int, radius: float, *, antithetic: bool = False) -> Numbers:
    """(trials, dim) estimates."""
    random = stream(0, "trials")
    dim = len(loss.gradient)
    units = [unit_directions(random, directions, dim) for _ in range(TRIALS // directions)]
    return np.stack([loss.estimated(one, radius, antithetic=antithetic) for one in units])


def test_along_all_axes_at_once_the_estimate_is_exact() -> None:
    """In pairs it is the gradient itself, whatever the curvature; against w it is off by ε/2 times the curvature."""
    random = stream(1, "quadratic")
    dim, radius = 5, 0.8
    root, gradient = random.standard_normal((dim, dim)), random.standard_normal(dim)
    loss = Quadratic(gradient, root @ root.T)
    axes = np.linalg.qr(random.standard_normal((dim, dim)))[0].T
    off = axes.T @ np.diag(axes @ loss.curvature @ axes.T)
    assert np.abs(loss.estimated(axes, radius, antithetic=True) - gradient).max() < 1e-12
    assert np.abs(loss.estimated(axes, radius, antithetic=False) - gradient - radius / 2 * off).max() < 1e-12


def test_on_a_linear_score_the_estimate_is_unbiased_and_has_the_variance_of_theory() -> None:
    """Over all numbers (d − 1)|g|²/m; along the gradient ((3d/(d+2)) − 1)|g|²/m, across it d/(d+2)|g|²/m each."""
    gradient, directions = np.array([2.0, -1.0, 0.5, 0.0, 3.0, 1.0]), 4
    dim, square = len(gradient), float(gradient @ gradient)
    found = many(Quadratic(gradient, np.zeros((dim, dim))), directions, 0.1)
    noise = np.sqrt((dim - 1) * square / directions / len(found))
    assert np.linalg.norm(found.mean(axis=0) - gradient) < 3 * noise
    total = ((found - gradient) ** 2).sum(axis=1).mean()
    assert total == pytest.approx((dim - 1) * square / directions, rel=0.03)
    along = ((found - gradient) @ gradient / np.sqrt(square)).var()
    assert along == pytest.approx((3 * dim / (dim + 2) - 1) * square / directions, rel=0.05)
    across = found @ np.array([1.0, 2.0, 0, 0, 0, 0]) / np.sqrt(5)  # at right angles to the gradient
    assert across.var() == pytest.approx(dim / (dim + 2) * square / directions, rel=0.05)


@pytest.mark.parametrize("antithetic", [False, True])
def test_on_a_quadratic_score_a_step_gains_what_the_closed_form_says(antithetic: bool) -> None:
    """α|g|² − α²/2 E[ĝᵀHĝ], from the sphere's moments up to the sixth; pairs lose the term in ε² and nothing else."""
    random = stream(1, "quadratic")
    dim, directions, radius, rate = 5, 3, 0.4, 0.05
    root = random.standard_normal((dim, dim))
    curvature, gradient = root @ root.T, random.standard_normal(dim)
    bent = gradient @ curvature @ gradient
    trace, second, third = (float(np.trace(np.linalg.matrix_power(curvature, n))) for n in (1, 2, 3))
    one = dim**2 * (gradient @ gradient * trace + 2 * bent) / (dim * (dim + 2))
    if not antithetic:
        sixth = (trace**3 + 6 * trace * second + 8 * third) / (dim * (dim + 2) * (dim + 4))
        one += dim**2 * radius**2 / 4 * sixth
    spent = rate**2 / 2 * (one / directions + (1 - 1 / directions) * bent)
    found = many(Quadratic(gradient, curvature), directions, radius, antithetic=antithetic)
    gains = rate * found @ gradient - rate**2 / 2 * np.einsum("td,de,te->t", found, curvature, found)
    expected = rate * gradient @ gradient - spent
    assert gains.mean() == pytest.approx(expected, abs=4 * gains.std() / np.sqrt(len(gains)))
    assert 4 * gains.std() / np.sqrt(len(gains)) < 0.03 * rate * gradient @ gradient, "a break of a few percent is seen"


def test_adam_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    random = stream(2, "adam")
    here = random.standard_normal(7)
    weights = torch.tensor(here, requires_grad=True)
    theirs, ours = torch.optim.Adam([weights], lr=0.1, weight_decay=5e-4), Adam(0.1, 5e-4)
    for _ in range(30):
        slope = random.standard_normal(7)
        weights.grad = torch.tensor(slope)
        theirs.step()
        here = ours.step(here, slope)
    assert np.abs(here - weights.detach().numpy()).max() < 1e-12


def test_the_published_search_asks_7300_questions_and_comes_near(tmp_path: Path) -> None:
    assert (PUBLISHED.questions, replace(PUBLISHED, pool=1000).questions) == (7300, 7800)
    assert replace(PUBLISHED, antithetic=True).questions == 6900
    found, session, target = attacked(Map2V(), tmp_path, (50, 500, 2000, 7300))
    assert session.ledger.counted == target.asked == 7300
    errors = error(found, target)
    assert errors[-1] < 0.1
    assert errors[-1] < errors[1] / 3


def test_the_improved_search_needs_fewer_questions_where_faces_differ_in_few_directions(tmp_path: Path) -> None:
    """As a generator's do: 200 numbers, of which 5 tell faces apart."""
    spread = np.where(np.arange(100) < 5, 1.0, 0.01)
    target = ToyTarget(0.6 * spread * stream(5, "truth").standard_normal(100))
    search = replace(IMPROVED, pool=60, from_scores=40, components=5, radius=0.5)
    found, session, _ = attacked(ImprovedMap2V(search), tmp_path / "improved", (40, 440), target, spread)
    assert session.ledger.counted == 440
    plain, _, _ = attacked(Map2V(replace(PUBLISHED, pool=40)), tmp_path / "published", (40, 440), target, spread)
    assert error(found, target)[1] < error(plain, target)[1] / 3


@pytest.mark.parametrize("ablated", [replace(PUBLISHED, space="w"), replace(PUBLISHED, ensemble=1)])
def test_ablations_find_it_on_a_toy_too(tmp_path: Path, ablated: Search) -> None:
    found, _, target = attacked(Map2V(replace(ablated, pool=60)), tmp_path, (60, 4000))
    assert error(found, target)[1] < 0.15


def test_what_is_recovered_after_n_questions_does_not_depend_on_later_ones(tmp_path: Path) -> None:
    search = Search(pool=30, steps=20)
    short, _, _ = attacked(Map2V(search), tmp_path / "short", (10, 30, 64))
    long, _, _ = attacked(Map2V(search), tmp_path / "long", (10, 30, 64, 370))
    assert [one and one.sha256 for one in short.pictures[0]] == [one and one.sha256 for one in long.pictures[0][:3]]
    assert len({one.sha256 for one in long.pictures[0] if one}) == 4


def test_a_search_that_was_cut_off_goes_on_without_a_question_twice(tmp_path: Path) -> None:
    whole, _, _ = attacked(Map2V(Search(pool=30)), tmp_path / "whole", (30, 370))
    attacked(Map2V(Search(pool=30)), tmp_path / "cut", (30, 200))
    again, session, target = attacked(Map2V(Search(pool=30)), tmp_path / "cut", (30, 370))
    assert again.pictures[0][-1] == whole.pictures[0][-1]
    assert session.ledger.counted == 370  # 30 and 20 steps of 17; the first run ended after 10 steps, with 200
    assert target.asked == 170


def test_a_target_that_stops_leaves_what_was_found(tmp_path: Path) -> None:
    target = ToyTarget(np.zeros(DIM), answers=150)
    found, session, _ = attacked(Map2V(Search(pool=30)), tmp_path, (30, 3000), target)
    assert session.ended is not None
    assert all(one is not None for one in found.pictures[0])


def test_without_a_generator_an_encoder_or_scores_it_is_refused(tmp_path: Path) -> None:
    class Decides(ToyTarget):
        decisions_only = True

    with refused("validation", "map2v", "follows"):
        attacked(Map2V(), tmp_path, (20,), Decides(np.zeros(DIM)))
    with opened_ledger(tmp_path / "other.jsonl", BINDING) as ledger:
        oracle = Session(ToyTarget(np.zeros(DIM)), ledger, Pace()).person(0, "p0", 20)
        with refused("validation", "map2v", "draws"):
            Map2V().run(oracle, replace(knowledge(), generator=None), (20,))
        with refused("validation", "map2v-improved"):
            ImprovedMap2V().run(oracle, replace(knowledge(), embed=None), (20,))
        assert ledger.counted == 0


class WorldFaces:
    """Latents are a world's identities, in two slots; each recogniser sees them through its own rotation."""

    name = "world"

    def sample(self, count: int, seed: int) -> Numbers:
        return np.repeat(stream(seed, "world faces").standard_normal((count, 1, WORLD_DIM)), SLOTS, axis=1)

    def pictures(self, latents: Numbers) -> tuple[Picture, ...]:
        return tuple(Picture("drawn", np.asarray(one, np.float64).tobytes()) for one in latents)


def seen_by(name: str, pictures: Sequence[Picture]) -> NDArray[np.float32]:
    """As tests.validate.world rotates its people."""
    rotation = np.linalg.qr(stream(0, "world", name).standard_normal((WORLD_DIM, WORLD_DIM)))[0]
    return unit_rows(unit_rows(seen_of(pictures)) @ rotation).astype(np.float32)


class WorldTarget:
    """The world's target, which may drift: each answer is that much higher than the one before."""

    name, decisions_only, batch = "toy", False, 64

    def __init__(self, made: World, drift: float = 0.0) -> None:
        self._made, self._drift, self._asked = made, drift, 0
        self._faces = {one.sha256: row for row, one in enumerate(made.asked.pictures)}

    def score(self, person: str, pictures: Sequence[Picture]) -> Numbers:
        people, self._asked = self._made.enrolled, self._asked + 1
        enrolled = people.vectors["target"][people.rows(people.names.index(person))[0]]
        known = self._made.asked.vectors["target"]
        rows = [
            known[self._faces[one.sha256]] if one.sha256 in self._faces else seen_by("target", [one])[0]
            for one in pictures
        ]
        return np.array([float(row @ enrolled) for row in rows]) + self._drift * self._asked


@pytest.mark.parametrize(("drift", "said"), [(0.0, None), (1e-4, "warning"), (0.5, "invalid")])
def test_a_whole_validation_with_it_and_a_target_that_changes_its_answers(
    tmp_path: Path, drift: float, said: str | None
) -> None:
    made = world(people=4)
    judges = tuple(replace(one, embed=partial(seen_by, one.name)) for one in made.judges)
    knowing = replace(made.knowledge, generator=WorldFaces(), embed=partial(seen_by, "own"))
    target = OpenedTarget(WorldTarget(made, drift), "function", True, "sha")
    case = Case(target, made.enrolled, knowing, judges, "people", "nobody")
    plan = Plan(150, ("best-of-n", "map2v"), hardening=False)
    result = validate(case, plan, tmp_path / "ledger.jsonl").result
    assert [one.name for one in result.attacks] == ["best-of-n", "map2v"]
    assert [one.name for one in result.shuffled] == ["best-of-n"]
    assert result.asked.counted == 4 * (150 + 150) + 4, "each attack its budget, then a question about each once more"
    assert [one.severity for one in result.findings if one.about == "repeats"] == ([] if said is None else [said])
    assert result.valid == (said != "invalid")


def test_a_larger_budget_draws_a_larger_pool_and_other_knowledge_another_one(tmp_path: Path) -> None:
    attack, first, second = Map2V(Search(pool=30, steps=1)), knowledge(), knowledge()
    pools = []
    for number, (known, queries) in enumerate(((first, 10), (first, 10), (first, 20), (second, 20), (second, 99))):
        with opened_ledger(tmp_path / f"{number}.jsonl", BINDING) as ledger:
            oracle = Session(ToyTarget(np.zeros(DIM)), ledger, Pace()).person(0, "p0", queries)
            attack.run(oracle, known, (queries,))
        assert attack._pool is not None
        assert len(attack._pool.latents) == min(queries, 30)
        assert attack._pool.knowledge is known
        pools.append(attack._pool)
    assert pools[0] is pools[1], "drawn once for everybody"
