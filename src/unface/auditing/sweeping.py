"""The privacy-utility frontier: the same attack over ranks, or over numbers of identities to fit on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unface.auditing.attack import Attack, fast_at
from unface.auditing.defence import Defence
from unface.auditing.defender import Defender
from unface.auditing.points import resolution_word, tar_estimate
from unface.auditing.schema import Sweep, SweepPoint
from unface.auditing.survival import Survival
from unface.data import EmbeddingSet
from unface.erase import CONTROLS, FitError, Projection
from unface.metrics import Resolution
from unface.progress import Progress, Silent
from unface.seeds import stream

# Many points, so few draws for each.
_SEEDS = 2
_EIGHTHS = (1, 2, 3, 4, 5, 6, 7)


@dataclass(frozen=True, eq=False)
class Ground:
    """What a sweep is run on."""

    defender: Defender
    audited: EmbeddingSet
    attack: Attack
    survival: Survival

    def at(self, k: int, far: float) -> "Ground":
        """Narrowed to one k and one rate, and to what is fast."""
        attack = fast_at(self.attack, k)
        plan = replace(attack.plan, fars=(far,), seeds=min(attack.plan.seeds, _SEEDS))
        return replace(self, attack=replace(attack, plan=plan))


def usual_ranks(dim: int) -> list[int]:
    """Every eighth of the dimensions; one is always left."""
    return sorted({min(max(1, round(dim * eighths / 8)), dim - 1) for eighths in _EIGHTHS} - {0})


def rank_sweep(ground: Ground, defences: Sequence[Defence], progress: Progress) -> Sweep | None:
    """Each eraser and both controls from the raw space (rank 0) on; None if the rate cannot be resolved.

    Ranks that a method cannot reach on these identities are left out.
    """
    ranks = sorted({*usual_ranks(ground.defender.dim), *(defence.projection.rank for defence in defences)})
    names = dict.fromkeys([*(defence.method for defence in defences), *CONTROLS])
    wanted = [(name, rank) for name in names for rank in ranks]
    return _swept("rank", ground, _at_ranks(wanted, ground.defender), len(wanted) + 1, progress)


def identity_sweep(ground: Ground, defence: Defence, counts: Sequence[int], progress: Progress) -> Sweep | None:
    """The same rank, fitted on more and more of the fit identities; each number of them holds the smaller ones."""
    order = stream(ground.attack.plan.seed, "identity sweep").permutation(ground.defender.identities)
    rank = defence.projection.rank
    wanted = [number for number in sorted(set(counts)) if rank < number <= len(order)]
    codes = ground.defender.people.identities
    fewer = (ground.defender.only(np.isin(codes, order[:number])) for number in wanted)
    made = ((defence.method, some.project(defence.method, rank), some.identities) for some in fewer)
    return _swept("identities", ground, made, len(wanted), progress)


def _at_ranks(wanted: Sequence[tuple[str, int]], defender: Defender) -> Iterator[tuple[str, Projection | None, int]]:
    yield "raw", None, defender.identities
    for name, rank in wanted:
        try:
            yield name, defender.project(name, rank), defender.identities
        except FitError:
            continue


def _swept(
    over: Literal["rank", "identities"],
    ground: Ground,
    made: Iterator[tuple[str, Projection | None, int]],
    steps: int,
    progress: Progress,
) -> Sweep | None:
    progress.start(f"sweep over {over}", steps)
    plan = ground.attack.plan
    points: list[SweepPoint] = []
    resolution = Resolution.REFUSED
    for method, projection, identities in made:
        vectors = ground.audited.vectors if projection is None else projection.apply(ground.audited.vectors)
        attacked = ground.attack.run(vectors, Silent(), over)
        found = attacked.worst(plan.ks[0], plan.fars[0])
        progress.advance(f"sweep over {over}")
        if found is None:
            return None
        resolution = found.resolution
        points.append(
            SweepPoint(
                method=method,
                control=method in CONTROLS,
                rank=0 if projection is None else projection.rank,
                fit_identities=identities,
                probe=found.probe,
                calibrate_tar=attacked.panel.trials[found.probe, found.k].calibrate_tar[found.far],
                tar=tar_estimate(found, plan),
                chance=found.chance,
                times_chance=found.times_chance,
                utility=[] if projection is None else ground.survival.kept(projection),
            )
        )
    if not points:
        return None
    return Sweep(
        over=over,
        k=plan.ks[0],
        far=plan.fars[0],
        resolution=resolution_word(resolution),
        seeds=plan.seeds,
        probes=ground.attack.names,
        points=points,
    )
