"""If these fail, thresholds are wrong where seeds score on different scales, or a setting is chosen by chance."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import all_pairs, consecutive
from unface.metrics import Resolution, tar_at_far
from unface.pairs import PairSpace, cosine_space, quadratic_space
from unface.probe import Plan, Resolved, Roles, Setting, Support
from unface.probe.calibrate import Calibrated, calibrate, cpu_threads
from unface.probe.panel import draw_shots
from unface.seeds import stream

FAR = 0.1
ROLES = Roles(consecutive(*[3] * 4), consecutive(*[6] * 30, start=12), consecutive(*[3] * 4, start=192))
VECTORS = stream(0, "unlike seeds").normal(size=(204, 4)).astype(np.float32)
PLAN = Plan(fars=(FAR,), ks=(1,), seeds=3, threads=1)


@dataclass(frozen=True)
class Louder:
    """Each seed scores ``step`` above the one before it."""

    step: float
    seed: int = 0
    name: str = "louder"
    settings: tuple[Setting, ...] = ({"scale": 1.0}, {"scale": 2.0})
    notes: tuple[str, ...] = ()

    def fit(self, support: Support) -> "Louder":
        return Louder(self.step, support.seed)

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        seen = np.float32(setting["scale"]) * vectors
        return quadratic_space(seen, seen, np.full(len(vectors), self.step * self.seed / 2))


def calibrated(step: float) -> Calibrated:
    shots, resolved = draw_shots(VECTORS, ROLES, PLAN, 1)
    assert resolved.reference == FAR
    return calibrate(Louder(step), shots, VECTORS, PLAN, resolved)


@pytest.mark.parametrize("step", [0.0, 1.0, 200.0])
def test_the_threshold_is_that_of_all_seeds_however_unlike_they_score(step: float) -> None:
    """With 200 the highest tenth of all three seeds' scores lies within the third: its list has to be long enough."""
    found = calibrated(step)
    parts = []
    for attacker in found.attackers:
        query = attacker.shot.calibrate
        parts.append(all_pairs(attacker.scorer.space(found.setting, VECTORS[query.rows]), query.identities))
    expected = tar_at_far(
        np.concatenate([part.mated for part in parts]), np.concatenate([part.impostor for part in parts]), FAR
    )
    assert found.thresholds == {FAR: expected.threshold}
    assert found.tar == {FAR: expected.value}
    assert len(found.mated) == expected.mated
    assert found.tail.impostors == expected.impostors


@dataclass(frozen=True)
class Looking:
    """Sees noise under its first setting and who it is under its second."""

    name: str = "looking"
    settings: tuple[Setting, ...] = ({"from": 0}, {"from": 4})
    notes: tuple[str, ...] = ()

    def fit(self, support: Support) -> "Looking":
        return self

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        start = int(setting["from"])
        return cosine_space(vectors[:, start : start + 4])


def test_a_setting_that_does_better_on_calibrate_is_taken_wherever_it_stands() -> None:
    who = np.repeat(stream(1, "who").normal(size=(38, 4)), [3] * 4 + [6] * 30 + [3] * 4, axis=0)
    vectors = np.hstack([VECTORS, who + 0.1 * VECTORS]).astype(np.float32)
    shots, resolved = draw_shots(vectors, ROLES, PLAN, 1)
    found = calibrate(Looking(), shots, vectors, PLAN, resolved)
    assert found.setting == {"from": 4}
    assert found.tar[FAR] > 0.9
    assert calibrate(Looking(settings=({"from": 0},)), shots, vectors, PLAN, resolved).tar[FAR] < 0.3


def test_of_settings_that_do_equally_well_the_first_is_taken() -> None:
    assert calibrated(0.0).setting == {"scale": 1.0}


def test_settings_are_compared_at_the_reference_rate_and_thresholds_set_at_each_that_is_measured() -> None:
    shots, _ = draw_shots(VECTORS, ROLES, PLAN, 1)
    how = {0.3: Resolution.RESOLVED, FAR: Resolution.COARSE, 1e-6: Resolution.REFUSED}
    found = calibrate(Louder(0.0), shots, VECTORS, PLAN, Resolved(100, 10, how, {}, {}))
    assert list(found.thresholds) == list(found.tar) == [0.3, FAR]
    assert found.thresholds[0.3] < found.thresholds[FAR]


def test_a_gpu_is_one_queue() -> None:
    assert cpu_threads(Plan(threads=3)) == 3
    assert cpu_threads(Plan()) is None
    assert cpu_threads(Plan(threads=3, device="cuda")) == 1
