"""The same attackers on the same people, whatever space they are given; so that spaces can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unface.metrics import Resolution
from unface.probe import Bootstrap, Measurement, Panel, Plan, Probe, Roles, measure, run_panel
from unface.progress import Progress
from unface.result.numbers import Share


@dataclass(frozen=True, eq=False)
class Attacked:
    """One space after the attack: trials, and every number made of them."""

    panel: Panel
    numbers: Mapping[tuple[str, int, float], Measurement]
    """By probe, k and rate; refused rates have none."""

    def worst(self, k: int, far: float) -> Measurement | None:
        """The panel's best on calibrate; None where the rate is refused."""
        if far not in self.panel.resolved[k].measured:
            return None
        return self.numbers[self.panel.worst(k, far), k, far]


@dataclass(frozen=True, eq=False)
class Attack:
    """Which people attack, which are attacked, and how the result is resampled."""

    roles: Roles
    probes: Sequence[Probe]
    plan: Plan
    bootstrap: Bootstrap

    @property
    def names(self) -> list[str]:
        """Of the probes."""
        return [probe.name for probe in self.probes]

    def run(self, vectors: NDArray[np.float32], progress: Progress, task: str) -> Attacked:
        """Run the panel on unit vectors; attackers learn anew in each space, as an adaptive one would."""
        panel = run_panel(vectors, self.roles, self.probes, self.plan, progress, task=task)
        numbers = {
            (probe, k, far): measure(trial, far, self.bootstrap, self.plan)
            for (probe, k), trial in panel.trials.items()
            for far in trial.thresholds
        }
        return Attacked(panel, numbers)

    def fast_at(self, k: int) -> "Attack":
        """The same attack narrowed to one k and to the probes in closed form, if there are any."""
        probes = [probe for probe in self.probes if probe.name not in _SLOW] or self.probes
        return replace(self, probes=probes, plan=replace(self.plan, ks=(k,)))


# Where many points are wanted, only attackers in closed form: networks take most of a panel's time.
_SLOW = ("mlp", "net")


def tar_share(measured: Measurement) -> Share:
    """TAR as results hold it."""
    return Share.counted(
        measured.accepted, measured.mated, measured.interval, measured.identities, measured.effective_n
    )


def resolution_word(resolution: Resolution) -> Literal["resolved", "coarse"]:
    """Of a rate that was measured: a refused one has no numbers to stand beside."""
    return "resolved" if resolution is Resolution.RESOLVED else "coarse"
