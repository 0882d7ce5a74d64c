"""If these fail, the frontier between privacy and use is drawn through points that were not measured there."""

import numpy as np
import pytest

from tests.auditing.audits import STEPS, Steps, complete, looped, quick, several, space, tar
from tests.kit.results import AuditResult
from unface import make_identities
from unface.auditing import Sweeps, attack
from unface.auditing.sweeps import Sweep
from unface.auditing.sweeps.run import usual_ranks
from unface.data import EmbeddingSet


def only_sweep(result: AuditResult) -> Sweep:
    (sweep,) = Sweeps.of(result)
    return sweep


def ranks_of(sweep: Sweep) -> dict[str, list[int]]:
    methods = dict.fromkeys(point.method for point in sweep.points)
    return {method: [point.rank for point in sweep.points if point.method == method] for method in methods}


@pytest.mark.parametrize(("dim", "ranks"), [(512, [64, 128, 256, 384]), (4, [1, 2, 3]), (2, [1]), (1, [])])
def test_the_usual_ranks_reach_three_quarters_and_leave_a_dimension(dim: int, ranks: list[int]) -> None:
    assert usual_ranks(dim) == ranks


def test_a_sweep_starts_from_the_raw_space_and_takes_every_eraser_and_control_over_the_same_ranks() -> None:
    sweep = only_sweep(several())
    over = [2, 3, 4, 8, 12]
    assert ranks_of(sweep) == {"raw": [0], "isp": over, "leace": over, "random": over, "pca": over}
    assert [point.method for point in sweep.points if point.control] == ["random"] * 5 + ["pca"] * 5
    assert (sweep.over, sweep.k, sweep.far, sweep.seeds, sweep.probes) == ("rank", 2, 0.01, 1, ["cosine", "lda"])


def test_a_sweep_passes_through_the_spaces_of_the_audit() -> None:
    """One seed and both probes on either side, so the points are the same ones."""
    at = {(point.method, point.rank): point for point in only_sweep(several()).points}
    assert at["raw", 0].tar.value == tar(several().raw)
    for name in ("isp", "leace", "random", "pca"):
        assert at[name, 3].tar.value == tar(space(several(), name))
        assert at[name, 3].utility == [kept for kept in space(several(), name).utility if kept.is_usefulness]


def test_a_sweep_measures_usefulness_alone() -> None:
    """The neighbours of the audited are no usefulness, and finding them took longer than the attack."""
    assert all(point.utility == [] for point in only_sweep(several()).points)
    assert all(space.utility for space in several().spaces[1:])


def test_ranks_that_the_fit_identities_do_not_allow_and_the_slow_attackers_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve fit identities: no eraser beyond eleven, but controls go on. The MLP itself would take long here."""
    assert attack._SLOW == ("mlp", "net")
    monkeypatch.setattr(attack, "_SLOW", ("lda",))
    few = make_identities(40, 6, 16, between=2.0, seed=1)
    steps = Steps()
    result = quick(few, far=0.05, parts=(Sweeps(),), progress=steps)
    assert steps.totals == steps.done, "no bar stops before its end"
    assert ranks_of(only_sweep(result))["isp"] == [2, 3, 4, 8]
    assert ranks_of(only_sweep(result))["random"] == [2, 3, 4, 8, 12]
    assert result.protocol.probe == ["cosine", "lda"]
    assert only_sweep(result).probes == ["cosine"]


def test_fit_counts_hold_the_smaller_ones_and_leave_out_what_cannot_be_had(fitted_on: list[EmbeddingSet]) -> None:
    part = Sweeps(ranks=False, fit_counts=(36, 3, 4, 12, 12, 37))  # rank 3 needs 4, and there are 36
    sweep = only_sweep(quick(parts=(part,)))
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
    result = quick(eraser=(), parts=(Sweeps(),))
    assert Sweeps.of(result) == []
    assert "sweeps" not in result.parts


def test_a_sweep_reports_each_step_it_announced() -> None:
    assert [sweep.over for sweep in Sweeps.of(complete())] == ["rank", "identities"]
    assert STEPS.totals == STEPS.done
    assert STEPS.totals["sweep over rank"] == 1 + 3 * 5
    assert STEPS.totals["sweep over identities"] == 2
    assert STEPS.totals["transfer"] == 6


def test_every_point_of_a_sweep_is_a_number() -> None:
    sweep = only_sweep(several())
    assert sweep.points[0].times_chance > 10
    assert np.isfinite([point.tar.value for point in sweep.points]).all()
