"""The control that can void an audit: identities shuffled among images, after which no probe may beat chance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.probe.kshot import RoleRows
from unface.probe.measure import Bootstrap, Measurement, measure
from unface.probe.panel import Roles, run_panel
from unface.probe.plan import Plan, Variant
from unface.probe.ports import Probe
from unface.progress import Progress
from unface.seeds import stream

# Every probe at every rate is tested, so each test must be all but certain before it may void the audit.
LEVEL = 0.999


@dataclass(frozen=True, eq=False)
class Control:
    """The panel on shuffled identities at one k."""

    measurements: tuple[Measurement, ...]

    @property
    def failures(self) -> tuple[Measurement, ...]:
        """Measurements whose whole interval lies above chance, and above the target if fewer than that came through."""
        return tuple(
            found for found in self.measurements if found.accepted and found.interval.low > max(found.chance, found.far)
        )


def shuffled_control(
    vectors: NDArray[np.float32],
    roles: Roles,
    probes: Sequence[Probe],
    plan: Plan,
    bootstrap: Bootstrap,
    progress: Progress | None = None,
) -> Control:
    """Shuffle identities among the images of each role and run the panel at the k with the most query pairs."""
    control_plan = replace(plan, ks=(min(plan.ks),), variant=Variant.UNFACE)
    shuffled = Roles(*(_shuffle(getattr(roles, name), plan.seed, name) for name in ("train", "calibrate", "test")))
    panel = run_panel(vectors, shuffled, probes, control_plan, progress, task="shuffled control")
    strict = replace(bootstrap, level=LEVEL)
    return Control(
        tuple(measure(trial, far, strict, control_plan) for trial in panel.trials.values() for far in trial.thresholds)
    )


def _shuffle(role: RoleRows, seed: int, name: str) -> RoleRows:
    return replace(role, identities=stream(seed, "shuffle", name).permutation(role.identities))
