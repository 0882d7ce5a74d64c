"""If this fails, our rates differ from those of bob.measure, where an environment that can hold it has it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unface.metrics import tar_at_far

bob = pytest.importorskip(
    "bob.measure", reason="bob.measure needs numpy < 2 and is not in our environment", exc_type=ImportError
)

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=50)


@given(SCORES, SCORES, st.sampled_from([0.01, 0.1, 0.3, 0.5]))
def test_rates_at_our_threshold_are_the_same(mated: list[float], impostor: list[float], rate: float) -> None:
    ours = tar_at_far(mated, impostor, rate)
    far, frr = bob.farfrr(np.array(impostor), np.array(mated), ours.threshold)
    assert (ours.achieved_far, 1 - ours.value) == pytest.approx((far, frr), abs=1e-15)
