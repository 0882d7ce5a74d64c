"""If these fail, a plan that cannot be carried out is found out late, or one that can be is refused."""

from dataclasses import replace
from typing import Any

import pytest

from unface.errors import UnfaceError
from unface.probe import Plan, Variant

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"fars": ()}, "at least one false-accept rate and one k are needed"),
    ({"ks": ()}, "at least one false-accept rate and one k are needed"),
    ({"fars": (0.1, 0.0)}, "between 0 and 1, not 0"),
    ({"fars": (0.1, 1.0)}, "between 0 and 1, not 1"),
    ({"fars": (0.1, 1e-13)}, "a false-accept rate of 1e-13; ask for 1e-12 or more"),
    ({"ks": (4, 0, 1)}, "number of support images, at least 1, not 0"),
    ({"seeds": 0}, "at least one seed is needed, not 0"),
    ({"variant": Variant.PAPER, "seeds": 1}, "the spread over seeds; give at least 2"),
    ({"seed": -1}, "a number from 0, not -1"),
    ({"quota": 0}, "a number of image pairs, at least 1, not 0"),
]


@pytest.mark.parametrize(("change", "told"), REFUSED, ids=str)
def test_a_plan_that_cannot_be_carried_out_says_what_is_wrong_with_it(change: dict[str, Any], told: str) -> None:
    with pytest.raises(UnfaceError) as error:
        replace(Plan(), **change)
    assert told in str(error.value)


def test_the_least_of_everything_is_a_plan() -> None:
    least = Plan(fars=(1e-12,), ks=(1,), seeds=1, seed=0, quota=1)
    assert (least.fars, least.quota) == ((1e-12,), 1)
    assert replace(least, variant=Variant.PAPER, seeds=2).seeds == 2
    assert Plan(fars=(0.999,)).quota is None


def test_all_seeds_calibrate_but_in_the_paper_the_first_alone() -> None:
    assert Plan(seeds=4).calibrating_seeds == 4
    assert Plan(seeds=4, variant=Variant.PAPER).calibrating_seeds == 1
