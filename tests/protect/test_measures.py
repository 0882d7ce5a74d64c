"""If these fail, what a protection leaves is measured by other pairs, or its interval is too narrow."""

import numpy as np
import pytest

from tests.refusals.table import refused
from unface.protect.facemae import hidden_of
from unface.protect.measure import _mean
from unface.seeds import stream


def test_a_mean_resamples_people_not_pictures() -> None:
    draw = stream(0, "means")
    people = np.repeat(np.arange(400), 5)
    values = np.repeat(draw.normal(10, 2, 400), 5)
    found = _mean(values, people, 0)
    assert found.value == values.mean()
    error = values[::5].std() / 20
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.03
    )
    alone = _mean(np.array([1.0, 3.0]), np.array([4, 4]), 0)
    assert (alone.value, alone.low, alone.high) == (2, 2, 2)


def test_what_can_be_hidden_is_known_by_name() -> None:
    assert hidden_of("none") == "none"
    with refused("protection", None, "'ears'"):
        hidden_of("ears")
