"""If these fail, an attribute swap reports success or failure that the made-up people do not have."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

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
    assert found.both.joint.count == 0
    assert found.both.joint.interval.high > 0.01


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
    assert found.chance == pytest.approx(max(share, 1 - share), abs=0.07)
    assert (found.to_zero.read.value + found.to_one.read.value) / 2 == pytest.approx(0.5, abs=0.1)
    assert not found.trusted
    # Flipping what cannot be read is easy, which is why the state has to be told.
    assert found.both.flip.value > 0.4


@pytest.mark.parametrize("step", [0.25, 0.5, 1.0, 1.5])
def test_the_share_flipped_follows_the_normal_law(step: float) -> None:
    """Labels ∓g with noise σ between people: read Φ(g/σ), and moved by 2g × step, flipped Φ((2 step − 1) g/σ)."""
    made = people(3000, 2, 24, gap=0.3, noise=0.3, offset=10.0, seed=5)
    found = swap_inference(made.vectors, *made.roles, made.labels, far=1e-2, directions=1, step=step)
    for share, truth in ((found.both.read, norm.cdf(1)), (found.both.flip, norm.cdf(2 * step - 1))):
        # 1,000 people that are judged, as many that the classifier and the move were learned from.
        assert share.value == pytest.approx(truth, abs=3 * np.sqrt(2 * truth * (1 - truth) / 1000))


def test_without_a_step_everybody_is_who_they_were_and_only_misread_labels_count_as_flipped() -> None:
    found = swapped(people(gap=0.2, noise=0.2), step=0.0)
    assert found.both.accept.count == found.both.accept.of
    assert found.both.flip.count == found.both.read.of - found.both.read.count > 0


def test_both_is_the_sum_of_the_two_directions() -> None:
    found = swapped(people(gap=0.3, noise=0.3, nuisance=0.3))
    for name in ("read", "accept", "flip", "joint"):
        parts = [getattr(swap, name) for swap in (found.to_zero, found.to_one, found.both)]
        assert parts[0].count + parts[1].count == parts[2].count
        assert parts[0].of + parts[1].of == parts[2].of
    assert found.chance == max(found.to_zero.read.of, found.to_one.read.of) / found.both.read.of
