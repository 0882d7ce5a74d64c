"""The panel: every probe at every k under one plan, and which of them is the worst case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.functions import registered, unknown
from unface.probe.calibrate import calibrate
from unface.probe.cosine import Cosine
from unface.probe.kshot import RoleRows, Shot, draw_shot
from unface.probe.lda import Lda
from unface.probe.mlp import Mlp
from unface.probe.net import Net
from unface.probe.plan import Plan, Resolved, resolve
from unface.probe.plda import Plda
from unface.probe.ports import Probe
from unface.probe.ridge import Ridge
from unface.probe.trial import Trial, run_trial
from unface.progress import Progress, Silent
from unface.threads import one_blas_thread

PROBES: Mapping[str, Probe] = {probe.name: probe for probe in (Cosine(), Ridge(), Lda(), Plda(), Net(), Mlp())}
USUAL_PROBES = ("cosine", "ridge", "lda", "plda")
PAPER_PROBES = (*USUAL_PROBES, "mlp")


@dataclass(frozen=True, eq=False)
class Roles:
    """The rows of the attacker, of the threshold and of the verdict."""

    train: RoleRows
    calibrate: RoleRows
    test: RoleRows


@dataclass(frozen=True, eq=False)
class Panel:
    """Trials by probe and k; a k at which every rate is refused has none."""

    trials: Mapping[tuple[str, int], Trial]
    resolved: Mapping[int, Resolved]

    def worst(self, k: int, far: float) -> str:
        """The probe that does best on calibrate: chosen there, so that reporting it on test costs no optimism."""
        at_k = [trial for (_, trial_k), trial in self.trials.items() if trial_k == k]
        return max(at_k, key=lambda trial: trial.calibrate_tar[far]).probe


def pick_probes(names: Sequence[str]) -> list[Probe]:
    """Probes by name: our own, or what another package registered under the entry point ``unface.probes``."""
    return [_probe(name) for name in dict.fromkeys(names)]


def _probe(name: str) -> Probe:
    if name in PROBES:
        return PROBES[name]
    others: Probe | None = registered("probe", name, lambda make: make())
    if others is not None:
        return others
    raise unknown("probe", name, PROBES)


def run_panel(
    vectors: NDArray[np.float32],
    roles: Roles,
    probes: Sequence[Probe],
    plan: Plan,
    progress: Progress | None = None,
    task: str = "probes",
) -> Panel:
    """Run every probe at every k on unit vectors (n, d)."""
    progress = progress or Silent()
    progress.start(task, len(plan.ks) * len(probes))
    trials: dict[tuple[str, int], Trial] = {}
    resolved: dict[int, Resolved] = {}
    with one_blas_thread():
        for k in plan.ks:
            shots, resolved[k] = draw_shots(vectors, roles, plan, k)
            for probe in probes:
                earlier = trials.get((probe.name, plan.ks[0]))
                if earlier is not None and not earlier.learned:
                    trials[probe.name, k] = replace(earlier, k=k)
                elif resolved[k].measured:
                    trials[probe.name, k] = run_trial(probe, shots, vectors, plan, resolved[k])
                progress.advance(task)
    return Panel(trials, resolved)


def calibrate_tar(
    vectors: NDArray[np.float32], roles: Roles, probes: Sequence[Probe], plan: Plan, k: int
) -> dict[float, float]:
    """The best that any probe does on calibrate identities at each rate; no test identity is looked at."""
    with one_blas_thread():
        shots, resolved = draw_shots(vectors, roles, plan, k)
        found = [calibrate(probe, shots, vectors, plan, resolved).tar for probe in probes if resolved.measured]
    return {far: max(tar[far] for tar in found) for far in resolved.measured}


def draw_shots(vectors: NDArray[np.float32], roles: Roles, plan: Plan, k: int) -> tuple[list[Shot], Resolved]:
    """Every seed's draw at one k, and which rates their calibrate pairs can show."""
    shots = [
        draw_shot(
            vectors,
            roles.train,
            roles.calibrate,
            roles.test,
            k,
            seed,
            everything=k == plan.everything,
            hold_out=plan.hold_out,
            device=plan.device,
        )
        for seed in plan.draws(k)
    ]
    compared = shots[0].calibrate  # seeds of the unface variant all compare these; the paper's thresholds are seed 0's
    people = compared.count * (compared.count - 1) // 2
    impostors = compared.impostors() if plan.quota is None else people * plan.quota
    return shots, resolve(plan.fars, impostors, compared.count)
