"""If these fail, a plan that cannot be carried out is found out late, or one that can be is refused."""

from dataclasses import replace

from unface.probe import Plan, Variant


def test_the_least_of_everything_is_a_plan() -> None:
    least = Plan(fars=(1e-12,), ks=(1,), seeds=1, seed=0, quota=1)
    assert (least.fars, least.quota) == ((1e-12,), 1)
    assert replace(least, variant=Variant.PAPER, seeds=2).seeds == 2
    assert Plan(fars=(0.999,)).quota is None


def test_all_seeds_calibrate_but_in_the_paper_the_first_alone() -> None:
    assert Plan(seeds=4).calibrating_seeds == 4
    assert Plan(seeds=4, variant=Variant.PAPER).calibrating_seeds == 1
