"""If these fail, the frontier between privacy and use is drawn through points that were not measured there."""

from functools import cache

import numpy as np
import pytest
from unface.auditing.schema import Sweep
from unface.auditing.sweeping import usual_ranks

from tests.auditing.looped import PEOPLE, looped, quick, renamed, space, tar
from tests.auditing.told import Told
from unface import make_identities
from unface.auditing import AuditResult
from unface.data import EmbeddingSet


@cache
def swept() -> AuditResult:
    return quick(erasers=("isp", "leace"), sweep=True)


def ranks_of(sweep: Sweep) -> dict[str, list[int]]:
    methods = dict.fromkeys(point.method for point in sweep.points)
    return {method: [point.rank for point in sweep.points if point.method == method] for method in methods}


@pytest.mark.parametrize(
    ("dim", "ranks"), [(512, [64, 128, 192, 256, 320, 384, 448]), (4, [1, 2, 3]), (2, [1]), (1, [])]
)
def test_the_usual_ranks_are_eighths_and_leave_a_dimension(dim: int, ranks: list[int]) -> None:
    assert usual_ranks(dim) == ranks


def test_a_sweep_starts_from_the_raw_space_and_takes_every_eraser_and_control_over_the_same_ranks() -> None:
    (sweep,) = swept().sweeps
    over = [2, 3, 4, 6, 8, 10, 12, 14]
    assert ranks_of(sweep) == {"raw": [0], "isp": over, "leace": over, "random": over, "pca": over}
    assert [point.method for point in sweep.points if point.control] == ["random"] * 8 + ["pca"] * 8
    assert (sweep.over, sweep.k, sweep.far, sweep.seeds, sweep.probes) == ("rank", 2, 0.01, 1, ["cosine", "lda"])


def test_a_sweep_passes_through_the_spaces_of_the_audit() -> None:
    """One seed and both probes on either side, so the points are the same ones."""
    (sweep,) = swept().sweeps
    at = {(point.method, point.rank): point for point in sweep.points}
    assert at["raw", 0].tar.value == tar(swept().raw)
    for name in ("isp", "leace", "random", "pca"):
        assert at[name, 3].tar.value == tar(space(swept(), name))
        assert at[name, 3].utility == space(swept(), name).utility


def test_removing_more_never_leaves_more_neighbours_in_place_for_nested_subspaces() -> None:
    """ISP, random and PCA subspaces of a higher rank hold those of a lower one."""
    (sweep,) = swept().sweeps
    for method in ("isp", "random", "pca"):
        kept = [point.utility[0].retained.value for point in sweep.points if point.method == method]
        assert kept == sorted(kept, reverse=True)


def test_ranks_that_the_fit_identities_do_not_allow_are_left_out() -> None:
    """Twelve fit identities: no eraser beyond eleven, but controls go on."""
    few = make_identities(40, 6, 16, between=2.0, seed=1)
    (sweep,) = quick(few, fars=(0.05,), sweep=True).sweeps
    assert ranks_of(sweep)["isp"] == [2, 3, 4, 6, 8, 10]
    assert ranks_of(sweep)["random"] == [2, 3, 4, 6, 8, 10, 12, 14]


def test_the_slow_attacker_is_left_out_of_sweeps() -> None:
    few = make_identities(40, 5, 8, between=2.0, seed=1)
    (sweep,) = quick(few, fars=(0.05,), rank=2, sweep=True, probes=("cosine", "mlp")).sweeps
    assert sweep.probes == ["cosine"]


def test_fit_counts_hold_the_smaller_ones_and_leave_out_what_cannot_be_had(fitted_on: list[EmbeddingSet]) -> None:
    (sweep,) = quick(fit_counts=(36, 3, 4, 12, 12, 37)).sweeps  # rank 3 needs 4, and there are 36
    assert sweep.over == "identities"
    assert [(point.method, point.rank, point.fit_identities) for point in sweep.points] == [
        ("isp", 3, 4),
        ("isp", 3, 12),
        ("isp", 3, 36),
    ]
    four, twelve, all_of_them = (set(some.names) for some in fitted_on[-3:])
    assert four < twelve < all_of_them
    assert all_of_them == set(fitted_on[0].names)
    assert sweep.points[-1].tar.value == tar(space(looped(), "isp"))


def test_without_a_fitted_eraser_there_is_nothing_to_sweep_over() -> None:
    assert quick(erasers=(), sweep=True).sweeps == []


def test_a_sweep_reports_each_step_it_announced() -> None:
    told = Told()
    quick(
        sweep=True, fit_counts=(12, 36), progress=told, transfer=renamed(make_identities(100, 5, 16, seed=8), "other")
    )
    assert told.totals == told.done
    assert told.totals["sweep over rank"] == 1 + 3 * 8
    assert told.totals["sweep over identities"] == 2
    assert told.totals["transfer"] == 6


def test_the_people_of_these_tests_leak_at_rank_zero() -> None:
    (sweep,) = swept().sweeps
    assert sweep.points[0].times_chance > 10
    assert np.isfinite([point.tar.value for point in sweep.points]).all()
    assert len(PEOPLE.names) == 120
