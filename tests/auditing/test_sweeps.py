"""If these fail, the frontier between privacy and use is drawn through points that were not measured there."""

import numpy as np
import pytest

from tests.auditing.audits import STEPS, complete, looped, quick, several, space, tar
from unface import make_identities
from unface.auditing import Sweeps, attack
from unface.auditing.sweeps import Sweep
from unface.auditing.sweeps.run import usual_ranks
from unface.data import EmbeddingSet
from unface.result.audit import AuditResult


def only_sweep(result: AuditResult) -> Sweep:
    (sweep,) = Sweeps.of(result)
    return sweep


def ranks_of(sweep: Sweep) -> dict[str, list[int]]:
    methods = dict.fromkeys(point.method for point in sweep.points)
    return {method: [point.rank for point in sweep.points if point.method == method] for method in methods}


@pytest.mark.parametrize(
    ("dim", "ranks"), [(512, [64, 128, 192, 256, 320, 384, 448]), (4, [1, 2, 3]), (2, [1]), (1, [])]
)
def test_the_usual_ranks_are_eighths_and_leave_a_dimension(dim: int, ranks: list[int]) -> None:
    assert usual_ranks(dim) == ranks


def test_a_sweep_starts_from_the_raw_space_and_takes_every_eraser_and_control_over_the_same_ranks() -> None:
    sweep = only_sweep(several())
    over = [2, 3, 4, 6, 8, 10, 12, 14]
    assert ranks_of(sweep) == {"raw": [0], "isp": over, "leace": over, "random": over, "pca": over}
    assert [point.method for point in sweep.points if point.control] == ["random"] * 8 + ["pca"] * 8
    assert (sweep.over, sweep.k, sweep.far, sweep.seeds, sweep.probes) == ("rank", 2, 0.01, 1, ["cosine", "lda"])


def test_a_sweep_passes_through_the_spaces_of_the_audit() -> None:
    """One seed and both probes on either side, so the points are the same ones."""
    at = {(point.method, point.rank): point for point in only_sweep(several()).points}
    assert at["raw", 0].tar.value == tar(several().raw)
    for name in ("isp", "leace", "random", "pca"):
        assert at[name, 3].tar.value == tar(space(several(), name))
        assert at[name, 3].utility == space(several(), name).utility


def test_removing_more_never_leaves_more_neighbours_in_place_for_nested_subspaces() -> None:
    """ISP, random and PCA subspaces of a higher rank hold those of a lower one."""
    for method in ("isp", "random", "pca"):
        points = only_sweep(several()).points
        kept = [point.utility[0].retained.value for point in points if point.method == method]
        assert kept == sorted(kept, reverse=True)


def test_ranks_that_the_fit_identities_do_not_allow_and_the_slow_attackers_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve fit identities: no eraser beyond eleven, but controls go on. The MLP itself would take long here."""
    assert attack._SLOW == ("mlp", "net")
    monkeypatch.setattr(attack, "_SLOW", ("lda",))
    few = make_identities(40, 6, 16, between=2.0, seed=1)
    result = quick(few, far=0.05, parts=(Sweeps(),))
    assert ranks_of(only_sweep(result))["isp"] == [2, 3, 4, 6, 8, 10]
    assert ranks_of(only_sweep(result))["random"] == [2, 3, 4, 6, 8, 10, 12, 14]
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
    assert STEPS.totals["sweep over rank"] == 1 + 3 * 8
    assert STEPS.totals["sweep over identities"] == 2
    assert STEPS.totals["transfer"] == 6


def test_every_point_of_a_sweep_is_a_number() -> None:
    sweep = only_sweep(several())
    assert sweep.points[0].times_chance > 10
    assert np.isfinite([point.tar.value for point in sweep.points]).all()
