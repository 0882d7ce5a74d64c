"""If this fails, a rate is shown that the pairs cannot speak about, or one is refused that they can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unface.metrics import Resolution, identities_needed, resolution


@pytest.mark.parametrize(
    ("far", "impostors", "verdict"),
    [
        (1e-4, 300_000, Resolution.RESOLVED),
        (1e-4, 299_999, Resolution.COARSE),
        (1e-4, 30_000, Resolution.COARSE),
        (1e-4, 29_999, Resolution.REFUSED),
        (1e-6, 30_000_000, Resolution.RESOLVED),
        (1e-6, 3_000_000, Resolution.COARSE),
        (0.3, 100, Resolution.RESOLVED),
        (0.03, 100, Resolution.COARSE),
        (0.1, 30, Resolution.COARSE),  # 0.1 × 30 is 3.0000000000000004 in floats, 0.3 × 10 is 3 exactly
        (0.3, 10, Resolution.COARSE),
        (1e-4, 0, Resolution.REFUSED),
    ],
)
def test_three_and_thirty_expected_accepts_are_the_borders(far: float, impostors: int, verdict: Resolution) -> None:
    assert resolution(far, impostors) is verdict


@given(st.integers(1, 9), st.integers(1, 6), st.sampled_from([3, 30]))
def test_borders_hold_for_every_decimal_rate(digit: int, power: int, accepts: int) -> None:
    far = float(f"{digit}e-{power}")
    impostors = -(-accepts * 10**power // digit)  # the smallest whole number with far × impostors ≥ accepts
    reached = {3: Resolution.COARSE, 30: Resolution.RESOLVED}[accepts]
    assert resolution(far, impostors) is reached
    assert resolution(far, impostors - 1) is not reached


@pytest.mark.parametrize(
    ("far", "images", "needed"),
    [
        (1e-2, 1, 25),  # 25 · 24 / 2 = 300 pairs
        (1e-4, 4, 62),  # 62 · 61 / 2 · 16 = 30,256 pairs; 61 identities give 29,280
        (1e-4, 1, 246),  # 246 · 245 / 2 = 30,135 pairs; 245 give 29,890
    ],
)
def test_identities_needed_worked_by_hand(far: float, images: int, needed: int) -> None:
    assert identities_needed(far, images**2) == needed


@given(st.floats(1e-8, 0.5), st.integers(1, 20), st.sampled_from([3, 30]))
def test_one_identity_fewer_is_not_enough(far: float, images: int, accepts: int) -> None:
    needed = identities_needed(far, images**2, accepts)
    reached = {3: (Resolution.COARSE, Resolution.RESOLVED), 30: (Resolution.RESOLVED,)}[accepts]
    assert resolution(far, pairs(needed, images)) in reached
    assert resolution(far, pairs(needed - 1, images)) not in reached


@given(st.integers(4, 3000), st.integers(1, 20), st.sampled_from([3, 30]))
def test_identities_that_are_just_enough_are_not_rounded_up(identities: int, images: int, accepts: int) -> None:
    assert identities_needed(accepts / pairs(identities, images), images**2, accepts) == identities


def pairs(identities: int, images: int) -> int:
    return identities * (identities - 1) // 2 * images**2
