"""The privacy-utility frontier measured: many points, each with few draws and the fast attackers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from unface.auditing.attack import Attack, resolution_word, tar_share
from unface.auditing.bench import Bench
from unface.auditing.defence import Defence, Defender
from unface.auditing.sweeps import Sweep, SweepPoint
from unface.erase import CONTROLS, FitError, Projection
from unface.errors import UnfaceError
from unface.metrics import Resolution
from unface.progress import Silent
from unface.result.audit import Headline
from unface.seeds import stream

# Many points, so one draw for each: their trend matters, and each would cost as much as the space itself.
_SEEDS = 1
_EIGHTHS = (1, 2, 4, 6)
_MANY = 2048


def require_fitting(bench: Bench, counts: Sequence[int]) -> None:
    """Some number of identities must lie above each eraser's rank and within those there are."""
    if not bench.fitted:
        raise UnfaceError("--fit-counts: no eraser is fitted in this audit; name one with --eraser, or leave it out")
    for defence in bench.fitted:
        rank, most = defence.projection.rank, len(defence.fit.names) if defence.fit else 0
        if not any(rank < number <= most for number in counts):
            raise UnfaceError(f"--fit-counts: none lies above rank {rank} and within the {most} fit identities")


def usual_ranks(dim: int) -> list[int]:
    """An eighth, a quarter, a half and three quarters of the dimensions; one is always left."""
    return sorted({min(max(1, round(dim * eighths / 8)), dim - 1) for eighths in _EIGHTHS} - {0})


def rank_sweep(bench: Bench, head: Headline) -> Sweep | None:
    """Each eraser and both controls from the raw space (rank 0) on; None if the rate cannot be resolved.

    Ranks that a method cannot reach on these identities are left out.
    """
    ranks = sorted({*usual_ranks(bench.defender.dim), *(defence.projection.rank for defence in bench.fitted)})
    names = dict.fromkeys([*(defence.method for defence in bench.fitted), *CONTROLS])
    if bench.defender.dim > _MANY:
        # Beyond the fit images only the random control gets, at a cost of d³ each, and nothing stands beside it.
        ranks = [rank for rank in ranks if rank < len(bench.defender.people)]
    wanted = [(name, rank) for name in names for rank in ranks]
    mus = {defence.method: defence.mu for defence in bench.fitted}
    return _swept("rank", bench, head, _at_ranks(wanted, bench.defender, mus), len(wanted) + 1)


def identity_sweep(bench: Bench, head: Headline, defence: Defence, counts: Sequence[int]) -> Sweep | None:
    """The same rank, fitted on more and more of the fit identities; each number of them holds the smaller ones."""
    defender = bench.defender
    order = stream(bench.attack.plan.seed, "identity sweep").permutation(defender.identities)
    rank = defence.projection.rank
    wanted = [number for number in sorted(set(counts)) if rank < number <= len(order)]
    fewer = (defender.only(np.isin(defender.people.identities, order[:number])) for number in wanted)
    made = ((defence.method, some.project(defence.method, rank, defence.mu), some.identities) for some in fewer)
    return _swept("identities", bench, head, made, len(wanted))


def _at_ranks(
    wanted: Sequence[tuple[str, int]], defender: Defender, mus: Mapping[str, float | None]
) -> Iterator[tuple[str, Projection | None, int]]:
    yield "raw", None, defender.identities
    for name, rank in wanted:
        try:
            yield name, defender.project(name, rank, mus.get(name)), defender.identities
        except FitError:
            continue


def _swept(
    over: Literal["rank", "identities"],
    bench: Bench,
    head: Headline,
    made: Iterator[tuple[str, Projection | None, int]],
    steps: int,
) -> Sweep | None:
    bench.progress.start(f"sweep over {over}", steps)
    attack, audited = _narrowed(bench.attack, head), bench.prepared.embeddings
    points: list[SweepPoint] = []
    resolution = Resolution.REFUSED
    for method, projection, identities in made:
        vectors = audited.vectors if projection is None else projection.apply(audited.vectors)
        attacked = attack.run(vectors, Silent(), over)
        worst = attacked.worst(head.k, head.far)
        bench.progress.advance(f"sweep over {over}")
        if worst is None:
            return None
        if resolution is not Resolution.COARSE:  # the sweep is as coarse as its coarsest point
            resolution = worst.resolution
        points.append(
            SweepPoint(
                method=method,
                control=method in CONTROLS,
                rank=0 if projection is None else projection.rank,
                fit_identities=identities,
                probe=worst.probe,
                calibrate_tar=attacked.panel.trials[worst.probe, worst.k].calibrate_tar[worst.far],
                tar=tar_share(worst),
                chance=worst.chance,
                times_chance=worst.times_chance,
                utility=[] if projection is None else bench.utility.kept(projection, useful=True),
            )
        )
    if not points:
        return None
    bench.progress.advance(f"sweep over {over}", steps - len(points))  # those that could not be fitted
    return Sweep(
        over=over,
        k=head.k,
        far=head.far,
        resolution=resolution_word(resolution),
        seeds=attack.plan.seeds,
        probes=attack.names,
        points=points,
    )


def _narrowed(attack: Attack, head: Headline) -> Attack:
    """To one k and one rate, and to what is fast."""
    attack = attack.fast_at(head.k)
    plan = replace(attack.plan, fars=(head.far,), seeds=min(attack.plan.seeds, _SEEDS))
    return replace(attack, plan=plan)
