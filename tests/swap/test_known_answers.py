"""If these fail, an attribute swap reports success or failure that the made-up people do not have."""

from dataclasses import replace

import numpy as np
import pytest

from tests.swap.labelled import NUISANCE, People, people
from unface.seeds import stream
from unface.swap import SwapResult, swap_inference


def swapped(of: People, *, directions: int = 16, step: float = 1.0, within: float = 0.9) -> SwapResult:
    return swap_inference(of.vectors, *of.roles, of.labels, directions=directions, step=step, within=within)


def test_an_attribute_beside_identity_is_swapped_and_the_person_still_passes() -> None:
    found = swapped(people())
    assert found.trusted
    assert found.both.read.value == 1
    for swap in (found.both, found.to_zero, found.to_one):
        assert min(swap.accept.value, swap.flip.value, swap.joint.value) > 0.99


def test_an_attribute_that_makes_up_the_vector_is_swapped_only_into_somebody_else() -> None:
    found = swapped(people(gap=3.0))
    assert found.both.flip.value > 0.99
    assert found.both.accept.value < 0.01
    assert found.both.joint.numerator == 0
    assert found.both.joint.high > 0.01


def test_an_attribute_of_the_picture_and_not_of_the_person_is_read_but_not_swapped() -> None:
    """It varies within identities, and those directions are left alone; unless told to use them."""
    made = people()
    made = replace(made, labels=(made.vectors[:, 0] > 0).astype(np.int64))
    found = swapped(made)
    assert found.both.read.value > 0.85
    assert found.both.flip.value < 1 - found.both.read.value + 0.06
    assert found.left_out >= NUISANCE
    free = swapped(made, within=0.0, directions=48)
    assert free.left_out == 0
    assert free.both.flip.value > 0.85


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_random_label_is_read_at_chance_and_its_swap_is_not_to_be_trusted(share: float) -> None:
    made = people(seed=3)
    random = (stream(3, "labels").random(len(made.labels)) < share).astype(np.int64)
    found = swapped(replace(made, labels=random))
    zero, one, both = (swap.read.denominator for swap in (found.to_zero, found.to_one, found.both))
    assert found.chance == max(zero, one) / both
