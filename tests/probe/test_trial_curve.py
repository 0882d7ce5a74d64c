"""If these fail, what is drawn and summed up of a trial is not what its test scores are."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import all_pairs, people, roles_of
from unface.metrics import Resolution, eer, partial_auc, roc
from unface.pairs import PairSpace, bin_scores
from unface.probe import PROBES, Panel, Plan, Trial, pick_probes, run_panel
from unface.probe.cosine import Cosine
from unface.probe.panel import draw_shots
from unface.probe.ports import Setting
from unface.probe.trial import Curve, det_curve, thinned
from unface.seeds import stream
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


BINS, LOW, HIGH = 4096, -6.0, 8.0


def scores() -> tuple[list[np.ndarray[tuple[int], np.dtype[np.float32]]], ...]:
    """Mated and impostor scores of two seeds."""
    rng = stream(0, "curve")
    mated = [rng.normal(1.5, 1, size=3000).astype(np.float32) for _ in range(2)]
    impostor = [rng.normal(0, 1, size=20_000).astype(np.float32) for _ in range(2)]
    return mated, impostor


def whole_curve() -> Curve:
    width = (HIGH - LOW) / BINS
    mated, impostor = ([bin_scores(part, LOW, width, BINS) for part in kind] for kind in scores())
    return det_curve(mated, impostor)


def test_the_curve_passes_through_the_points_of_the_pooled_scores() -> None:
    mated, impostor = (np.concatenate(kind) for kind in scores())
    exact, curve = roc(mated, impostor), whole_curve()
    for far in (1e-3, 1e-2, 0.1, 0.4):
        assert np.interp(far, curve.far, curve.tar) == pytest.approx(np.interp(far, exact.far, exact.tar), abs=3e-3)


def test_the_equal_error_rate_is_that_of_the_scores_also_when_few_points_are_kept() -> None:
    mated, impostor = (np.concatenate(kind) for kind in scores())
    curve = whole_curve()
    assert curve.eer == pytest.approx(eer(mated, impostor), abs=5e-4)
    assert thinned(curve, 40_000).eer == curve.eer


def test_thinned_points_are_points_of_the_curve_in_order_a_dozen_for_each_decade() -> None:
    curve = whole_curve()
    few = thinned(curve, 40_000)
    known = set(zip(curve.far.tolist(), curve.tar.tolist(), strict=True))
    assert set(zip(few.far.tolist(), few.tar.tolist(), strict=True)) <= known
    assert (np.diff(few.far) > 0).all()
    assert 20 < len(few.far) <= 56
    assert few.far[0] > 0
    assert few.far[-1] <= 0.5


def test_thinned_points_reach_from_one_false_accept_to_one_half() -> None:
    """A thousand impostors, one more accepted at each point; between 0.01 and 0.1 a dozen or so are kept."""
    count = np.arange(1001) / 1000
    few = thinned(Curve(count, np.sqrt(count), 0.3), 1000)
    assert (few.far[0], few.far[-1]) == (0.001, 0.5)
    assert np.array_equal(few.tar, np.sqrt(few.far))
    assert 11 <= np.count_nonzero((few.far >= 0.01) & (few.far < 0.1)) <= 14
    # among a few impostors every point is kept, and none with nobody accepted or more than half
    assert thinned(Curve(np.arange(5) / 4, np.arange(5) / 4, 0.5), 4).far.tolist() == [0.25, 0.5]


def test_a_thinned_point_never_takes_its_rate_from_a_higher_one() -> None:
    """Two points alone, at 0.001 and at 0.4: rates asked for in between are answered by the lower one."""
    few = thinned(Curve(np.array([0.0, 0.001, 0.4, 1.0]), np.array([0.0, 0.2, 0.9, 1.0]), 0.3), 1000)
    assert (few.far.tolist(), few.tar.tolist()) == ([0.001, 0.4], [0.2, 0.9])


def test_a_curve_that_begins_with_several_false_accepts_keeps_its_first_point() -> None:
    few = thinned(Curve(np.array([0.02, 0.3, 1.0]), np.array([0.5, 0.9, 1.0]), 0.2), 1000)
    assert (few.far.tolist(), few.tar.tolist()) == ([0.02, 0.3], [0.5, 0.9])


def test_scores_that_are_all_alike_have_an_empty_curve_and_an_equal_error_rate_of_one_half() -> None:
    same = [bin_scores(np.zeros(10, np.float32), 0.0, 1e-6, 16)]
    curve = det_curve(same, same)
    assert curve.eer == 0.5
    assert len(thinned(curve, 10).far) == 0
