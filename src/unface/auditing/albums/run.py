"""Albums measured in every space: the pair protocol's attackers on templates of m pictures, with its control."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.albums import AlbumChange, AlbumControl, AlbumPoint, AlbumResults
from unface.auditing.attack import tar_share
from unface.auditing.bench import Bench
from unface.probe import Measurement, Plan, Probe, Roles, Setting, Trial, difference, measure
from unface.probe.album_trial import resolved_at, run_albums
from unface.probe.albums import AlbumSize
from unface.probe.control import LEVEL, Control, shuffled_roles
from unface.result.audit import Headline, SpaceResult
from unface.result.numbers import Rate

_SINGLE = AlbumSize(1, 1)
Trials = Mapping[tuple[str, AlbumSize], Trial]
Numbers = dict[tuple[str, AlbumSize, float], Measurement]


def measure_albums(bench: Bench, head: Headline, sizes: Sequence[AlbumSize]) -> AlbumResults:
    """Every probe in every space at the headline's k."""
    attack = bench.attack
    plan = replace(attack.plan, ks=(head.k,))
    larger = [size for size in sizes if size != _SINGLE]
    points: list[AlbumPoint] = []
    worst: dict[str, dict[tuple[AlbumSize, float], Measurement]] = {}
    for space, vectors in spaces_of(bench):
        if _SINGLE in sizes:
            points += _single(space, head.k)
        probes = probes_at(bench, space, head.k)
        trials = run_albums(vectors, attack.roles, probes, plan, larger, bench.progress, f"albums, {space.name}")
        numbers = {
            (probe, size, far): measure(trial, far, attack.bootstrap, plan)
            for (probe, size), trial in trials.items()
            for far in trial.thresholds
        }
        best = _worst(trials)
        worst[space.name] = {(size, far): numbers[probe, size, far] for (size, far), probe in best.items()}
        names = [probe.name for probe, _ in probes]
        points += [
            _point(space.name, (probe, size, far), trials, numbers, best)
            for size in larger
            for far in plan.fars
            for probe in names
            if (probe, size, far) in numbers
        ]
        points += _refused(space.name, names, larger, bench, plan)
    return AlbumResults(
        k=head.k,
        images=bench.prepared.curation.images,
        deals=plan.seeds,
        points=points,
        changes=_changes(bench, worst),
        shuffled_identities=_control(bench, head, plan, larger),
    )


def spaces_of(bench: Bench) -> list[tuple[SpaceResult, NDArray[np.float32]]]:
    """Each space with its vectors."""
    vectors = bench.prepared.embeddings.vectors
    made = {defence.name: defence.apply(vectors) for defence in bench.defences}
    return [(space, made.get(space.name, vectors)) for space in bench.spaces]


def probes_at(bench: Bench, space: SpaceResult, k: int) -> list[tuple[Probe, Setting]]:
    """The panel with the settings that pairs of pictures chose on calibrate."""
    settings = {point.probe: point.setting for point in space.points if point.k == k and point.tar}
    return [(probe, settings[probe.name]) for probe in bench.attack.probes if probe.name in settings]


def _worst(trials: Trials) -> dict[tuple[AlbumSize, float], str]:
    """The probe that does best on calibrate at each size and rate."""
    best: dict[tuple[AlbumSize, float], tuple[float, str]] = {}
    for (probe, size), trial in trials.items():
        for far, tar in trial.calibrate_tar.items():
            if (size, far) not in best or tar > best[size, far][0]:
                best[size, far] = tar, probe
    return {at: probe for at, (_, probe) in best.items()}


def _point(
    space: str,
    which: tuple[str, AlbumSize, float],
    trials: Trials,
    numbers: Numbers,
    best: Mapping[tuple[AlbumSize, float], str],
) -> AlbumPoint:
    probe, size, far = which
    found, trial = numbers[which], trials[probe, size]
    return AlbumPoint(
        space=space,
        probe=probe,
        first=size.first,
        second=size.second,
        far=far,
        resolution=found.resolution.value,
        worst=best[size, far] == probe,
        tar=tar_share(found),
        tar_over_people=found.over_people,
        achieved_far=Rate.counted(found.false_accepts, found.impostors),
        chance=found.chance,
        times_chance=found.times_chance,
        threshold=found.threshold,
        calibrate_tar=trial.calibrate_tar[far],
        identities_needed=found.needed,
    )


def _single(space: SpaceResult, k: int) -> list[AlbumPoint]:
    """Pairs of single pictures, as the audit has them already."""
    return [
        AlbumPoint(
            space=space.name,
            first=1,
            second=1,
            **{
                name: getattr(point, name)
                for name in AlbumPoint.model_fields
                if name not in ("space", "first", "second")
            },
        )
        for point in space.points
        if point.k == k
    ]


def _refused(
    space: str, probes: Sequence[str], sizes: Sequence[AlbumSize], bench: Bench, plan: Plan
) -> list[AlbumPoint]:
    points = []
    for size in sizes:
        resolved = resolved_at(size, bench.attack.roles.calibrate, plan)
        points += [
            AlbumPoint(
                space=space,
                probe=probe,
                first=size.first,
                second=size.second,
                far=far,
                resolution="refused",
                worst=False,
                tar=None,
                achieved_far=None,
                chance=None,
                times_chance=None,
                threshold=None,
                calibrate_tar=None,
                identities_needed=resolved.needed[far],
            )
            for far in plan.fars
            if far not in resolved.measured
            for probe in probes
        ]
    return points


def _changes(bench: Bench, worst: dict[str, dict[tuple[AlbumSize, float], Measurement]]) -> list[AlbumChange]:
    """Of each eraser and control against the raw space and against what removed as many dimensions."""
    ranks = {defence.name: defence.projection.rank for defence in bench.defences}
    level = bench.attack.bootstrap.level
    changes = []
    for name, rank in ranks.items():
        for other in ("raw", *(one for one in ranks if ranks[one] == rank and one != name)):
            for (size, far), here in worst[name].items():
                if (size, far) in worst[other]:
                    value, ends = difference(worst[other][size, far], here, level)
                    changes.append(
                        AlbumChange(
                            space=name,
                            against=other,
                            first=size.first,
                            second=size.second,
                            far=far,
                            value=value,
                            low=ends.low,
                            high=ends.high,
                            level=ends.level,
                        )
                    )
    return changes


def _control(bench: Bench, head: Headline, plan: Plan, sizes: Sequence[AlbumSize]) -> list[AlbumControl]:
    """Albums of shuffled identities in the raw space: no two pictures of one need be of one person."""
    attack, (raw, vectors) = bench.attack, spaces_of(bench)[0]
    shuffled: Roles = shuffled_roles(attack.roles, plan.seed, apart=True)
    probes = probes_at(bench, raw, head.k)
    trials = run_albums(vectors, shuffled, probes, plan, sizes, bench.progress, "albums, shuffled")
    strict = replace(attack.bootstrap, level=LEVEL)
    found = {
        (size, probe, far): measure(trial, far, strict, plan)
        for (probe, size), trial in trials.items()
        for far in trial.thresholds
    }
    failures = set(map(id, Control(tuple(found.values())).failures))
    return [
        AlbumControl(
            probe=probe,
            first=size.first,
            second=size.second,
            far=far,
            tar=tar_share(measured),
            chance=measured.chance,
            passed=id(measured) not in failures,
        )
        for (size, probe, far), measured in found.items()
    ]
