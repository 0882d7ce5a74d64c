"""If these fail, an attribute swap is reported of a column or a space that it was not measured in."""

from dataclasses import replace

import numpy as np

from tests.auditing.audits import PEOPLE, complete, refusal, wearing_glasses
from unface.auditing import AttributeSwap


def test_attribute_swaps_are_measured_in_the_raw_space_and_after_each_eraser() -> None:
    swaps = AttributeSwap.of(complete())
    assert [(swap.space, swap.attribute) for swap in swaps] == [("raw", "glasses"), ("isp", "glasses")]


def test_a_column_that_is_missing_or_has_one_value_is_refused() -> None:
    told = "synthetic: has no column 'hat'; other columns are: glasses"
    assert refusal(wearing_glasses(), parts=(AttributeSwap("hat"),)) == told
    alike = replace(PEOPLE, labels={"hat": np.full(len(PEOPLE), "yes")})
    told = "synthetic: 'hat' has 1 values; an attribute swap needs two"
    assert refusal(alike, parts=(AttributeSwap("hat"),)) == told
