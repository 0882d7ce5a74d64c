"""The panel on albums: thresholds from calibrate identities, then test identities, as with single pictures.

Attackers are those of the pair protocol, each with the setting that was chosen there: albums are fewer than pictures,
so that a choice among settings would rest on little.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.metrics import ImpostorTail, allowed_accepts, just_above
from unface.pairs import Mated, Tail, count_impostors, highest_impostors, open_screen, pool_tails, require_room
from unface.probe.albums import AlbumPairs, AlbumSize, Seen, album_pairs, deal, see
from unface.probe.calibrate import cpu_threads
from unface.probe.kshot import RoleRows
from unface.probe.panel import Roles, draw_shots
from unface.probe.plan import Plan, Resolved, resolve
from unface.probe.ports import Probe, Setting
from unface.probe.trial import Curve, Trial
from unface.progress import Progress, Silent
from unface.threads import one_blas_thread, parallel_map

_NO_CURVE = Curve(np.empty(0), np.empty(0), float("nan"))


def run_albums(
    vectors: NDArray[np.float32],
    roles: Roles,
    probes: Sequence[tuple[Probe, Setting]],
    plan: Plan,
    sizes: Sequence[AlbumSize],
    progress: Progress | None = None,
    task: str = "albums",
) -> dict[tuple[str, AlbumSize], Trial]:
    """Every probe at the plan's one k and at every size; without sizes whose rates are all refused.

    A probe whose scores are no cosines and that has no templates of its own is left out.
    """
    progress = progress or Silent()
    progress.start(task, len(probes))
    (k,) = plan.ks
    trials: dict[tuple[str, AlbumSize], Trial] = {}
    with one_blas_thread():
        shots, _ = draw_shots(vectors, roles, plan, k)
        for probe, setting in probes:
            scorers = [probe.fit(shot.support) for shot in shots]
            calibrate, test = (
                _SeenRole(name, role, [see(scorer, setting, vectors[role.rows]) for scorer in scorers])
                for name, role in (("calibrate", roles.calibrate), ("test", roles.test))
            )
            for size in sizes if calibrate.known else ():
                resolved = resolved_at(size, roles.calibrate, plan)
                if resolved.measured:
                    notes = scorers[0].notes
                    trial = _trial(calibrate, test, size, plan, resolved)
                    trials[probe.name, size] = replace(trial, probe=probe.name, k=k, setting=setting, notes=notes)
            progress.advance(task)
    return trials


def resolved_at(size: AlbumSize, calibrate: RoleRows, plan: Plan) -> Resolved:
    """Which rates albums of a size can show, by the pairs of one deal: no two of its albums share a picture.

    Other deals put the same pictures into other albums, which steadies a threshold but is no new evidence.
    """
    return resolve(plan.fars, size.pairs(calibrate), calibrate.count)


@dataclass(frozen=True, eq=False)
class _SeenRole:
    """A role as the attacker of each draw sees it."""

    name: str
    rows: RoleRows
    seen: list[Seen | None]

    @property
    def known(self) -> bool:
        return all(one is not None for one in self.seen)

    def pairs(self, size: AlbumSize, number: int, plan: Plan) -> AlbumPairs:
        """Of one deal; attackers of several draws take turns."""
        seen = self.seen[number % len(self.seen)]
        assert seen is not None
        return album_pairs(seen, deal(self.rows, size, plan.seed + number, self.name), number)


def _trial(calibrate: _SeenRole, test: _SeenRole, size: AlbumSize, plan: Plan, resolved: Resolved) -> Trial:
    threads = cpu_threads(plan)
    tail, mated, images = _calibrated(calibrate, size, plan, max(resolved.measured), threads)
    thresholds = {
        far: just_above(tail.scores[allowed_accepts(far, tail.impostors)]) if len(tail) else -np.inf
        for far in resolved.measured
    }
    limits = np.array(list(thresholds.values()))

    def tested(number: int) -> tuple[Mated, NDArray[np.int64], int]:
        pairs = test.pairs(size, number, plan)
        accepted = [
            count_impostors(pairing, limits, open_screen(pairing.space, plan.device), threads=1).total
            for pairing in pairs.pairings
        ]
        return pairs.mated, np.sum(accepted, axis=0), pairs.impostors

    parts = parallel_map(tested, range(plan.seeds), threads)
    accepted = np.sum([part[1] for part in parts], axis=0)
    return Trial(
        probe="",
        k=0,
        setting={},
        notes=(),
        resolved=resolved,
        calibrate=ImpostorTail(tail.scores, tail.first, tail.second, images, tail.floor),
        calibrate_impostors=tail.impostors,
        calibrate_tar={far: float(np.mean(mated >= threshold)) for far, threshold in thresholds.items()},
        thresholds=thresholds,
        identities=len(size.able(test.rows)),
        mated=tuple(part[0] for part in parts),
        false_accepts={far: int(count) for far, count in zip(thresholds, accepted, strict=True)},
        impostors=sum(part[2] for part in parts),
        curve=_NO_CURVE,
        partial_auc=0.0,
        learned=True,
    )


def _calibrated(
    role: _SeenRole, size: AlbumSize, plan: Plan, far: float, threads: int | None
) -> tuple[Tail, NDArray[np.float32], NDArray[np.int64]]:
    """The highest impostor scores of all deals, the mated scores, and the albums of each person in each pairing."""
    spare = 5.0

    def scored(number: int) -> tuple[list[Tail], NDArray[np.float32], list[NDArray[np.int64]]]:
        pairs = role.pairs(size, number, plan)
        keep = int(spare * allowed_accepts(far, pairs.impostors)) + 300
        for pairing in pairs.pairings:
            require_room(min(keep, pairing.impostors), pairing.impostors, plan.seeds * len(pairs.pairings))
        tails = [
            highest_impostors(pairing, keep, open_screen(pairing.space, plan.device), threads=1)
            for pairing in pairs.pairings
        ]
        # People without an album have none: they are weighed with everybody, and pair with nobody.
        sizes = [np.bincount(pairing.identities, minlength=role.rows.count) for pairing in pairs.pairings]
        return tails, pairs.mated.scores, sizes

    while True:
        parts = parallel_map(scored, range(plan.seeds), threads)
        tail = pool_tails([one for tails, _, _ in parts for one in tails])
        if len(tail) > allowed_accepts(far, tail.impostors) or tail.floor == -np.inf:
            mated = np.concatenate([scores for _, scores, _ in parts])
            return tail, mated, np.stack([images for *_, each in parts for images in each])
        spare *= 4  # deals so unlike that one's list ends above the common threshold: list more of each
