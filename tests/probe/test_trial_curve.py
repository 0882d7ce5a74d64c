"""If these fail, what is drawn and summed up of a trial is not what its test scores are."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import all_pairs, people, roles_of
from unface.metrics import Resolution, eer, partial_auc, roc
from unface.pairs import PairSpace
from unface.probe import PROBES, Panel, Plan, Trial, pick_probes, run_panel
from unface.probe.cosine import Cosine
from unface.probe.panel import draw_shots
from unface.probe.ports import Setting
from unface.threads import one_blas_thread

PEOPLE = people(80, 6, 8, between=1.2)
ROLES = roles_of(PEOPLE)
PLAN = Plan(fars=(0.02, 0.01), ks=(1,), seeds=2, threads=1)
EACH = pytest.mark.parametrize("name", ["cosine", "plda"])


@cache
def panel() -> Panel:
    return run_panel(PEOPLE.vectors, ROLES, pick_probes(("cosine", "plda")), PLAN)


def trial(name: str) -> Trial:
    return panel().trials[name, 1]


def pooled(name: str, role: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mated and impostor scores of both seeds, from the full matrices."""
    parts = []
    with one_blas_thread():
        for shot in draw_shots(PEOPLE.vectors, ROLES, PLAN, 1)[0][: len(trial(name).mated)]:
            rows = getattr(shot, role)
            space = PROBES[name].fit(shot.support).space(trial(name).setting, PEOPLE.vectors[rows.rows])
            parts.append(all_pairs(space, rows.identities))
    return np.concatenate([part.mated for part in parts]), np.concatenate([part.impostor for part in parts])


@EACH
def test_curve_equal_error_and_partial_area_are_those_of_the_pooled_test_scores(name: str) -> None:
    mated, impostor = pooled(name, "test")
    found, exact = trial(name), roc(mated, impostor)
    assert found.impostors == len(impostor)
    assert found.curve.eer == pytest.approx(eer(mated, impostor), abs=2e-3)
    assert found.partial_auc == pytest.approx(partial_auc(mated, impostor, 1e-3), abs=5e-3)
    assert len(found.curve.far) > 20
    # scores above all of calibrate's share the last bin, so the curve may begin with a few false accepts at once
    assert found.curve.far[0] < 20 / len(impostor)
    assert found.curve.far[-1] > 0.45
    assert found.curve.tar == pytest.approx(np.interp(found.curve.far, exact.far, exact.tar), abs=0.01)


@EACH
def test_the_listed_calibrate_tail_ends_where_the_next_score_below_it_is(name: str) -> None:
    found = trial(name)
    scores = np.sort(pooled(name, "calibrate")[1])[::-1]
    tail = found.calibrate
    assert found.calibrate_impostors == len(scores) > len(tail.scores)
    assert np.array_equal(tail.scores, scores[: len(tail.scores)])
    assert tail.floor == scores[len(tail.scores)]
    assert tail.images.tolist() == [[6] * ROLES.calibrate.count] * len(found.mated)


@dataclass(frozen=True)
class Scaled(Cosine):
    """The same attacker, whose scores are of another size."""

    by: float = 1.0

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        space = super().space(setting, vectors)
        return PairSpace(space.left, space.left * np.float32(self.by))


@pytest.mark.parametrize("by", [2.0**-40, 2.0**40])
def test_the_curve_does_not_depend_on_the_size_of_scores(by: float) -> None:
    found = run_panel(PEOPLE.vectors, ROLES, (Scaled(by=by),), PLAN).trials["cosine", 1].curve
    assert len(found.far) > 20
    plain = trial("cosine").curve
    assert found.eer == plain.eer
    assert np.array_equal([found.far, found.tar], [plain.far, plain.tar])


@dataclass(frozen=True)
class Same(Cosine):
    """An attacker that gives all pairs the same score."""

    score: float = 0.0

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        left = np.ones((len(vectors), 1), np.float32)
        return PairSpace(left, left * np.float32(self.score))


@pytest.mark.parametrize("score", [-0.5, 1.0, 1e-30, -1e-30, 1e20])
def test_an_attacker_who_gives_one_score_accepts_all_or_none(score: float) -> None:
    found = run_panel(PEOPLE.vectors, ROLES, (Same(score=score),), PLAN).trials["cosine", 1]
    assert found.curve.eer == 0.5
    assert set(found.curve.far) <= {0.0, 1.0}
    assert found.curve.far.tolist() == found.curve.tar.tolist()


def test_a_trial_says_whose_it_is_and_what_was_done_differently() -> None:
    for name, notes in (("cosine", 0), ("plda", 1)):
        found = trial(name)
        assert (found.probe, found.k, found.identities) == (name, 1, ROLES.test.count)
        assert found.setting in PROBES[name].settings
        assert len(found.notes) == notes
        assert found.resolved is panel().resolved[1]
        assert found.resolved.of[0.02] is Resolution.RESOLVED
        assert list(found.false_accepts) == list(found.thresholds) == [0.02, 0.01]
        assert found.false_accepts[0.02] > found.false_accepts[0.01]
