"""If these fail, numbers are said otherwise than they are: rounded away, or with more digits than they have."""

import pytest

from unface.result.words import (
    count,
    decimals,
    factor,
    in_percent,
    interval,
    one_in,
    percent,
    rate,
    signed_points,
    times,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0.0 %"),
        (1, "100.0 %"),
        (0.5, "50.0 %"),
        (0.1, "10.0 %"),
        (0.0999, "10.0 %"),
        (0.084, "8.4 %"),
        (0.01, "1.0 %"),
        (0.0031, "0.31 %"),
        (0.00315, "0.32 %"),
        (0.00004, "0.0040 %"),
        (1.2e-7, "0.000012 %"),
    ],
)
def test_a_share_in_percent_has_two_significant_digits(value: float, said: str) -> None:
    assert percent(value) == said


def test_a_share_of_a_damaged_file_is_still_a_short_text() -> None:
    assert in_percent(-0.05) == "-5.0"
    assert in_percent(1e-300) == "0.000000000000"
    assert percent(float("nan")) == "nan %"


def test_an_interval_is_in_percent_without_saying_so() -> None:
    assert interval(0.071, 0.099) == "[7.1, 9.9]"
    assert interval(0, 0.31) == "[0.0, 31.0]"
    assert interval(0.00012, 0.0034) == "[0.012, 0.34]"


@pytest.mark.parametrize(
    ("far", "said"),
    [(1e-4, "10,000"), (1e-6, "1,000,000"), (1e-2, "100"), (0.03, "33"), (0.5, "2")],
)
def test_a_rate_is_said_as_one_in_so_many(far: float, said: str) -> None:
    assert one_in(far) == f"one false match in {said}"


@pytest.mark.parametrize(
    ("far", "said"),
    [(1e-4, "1e-4"), (1e-3, "1e-3"), (2.5e-5, "2.5e-5"), (1e-10, "1e-10"), (0.01, "0.01"), (0.05, "0.05")],
)
def test_a_rate_is_written_as_people_of_the_field_write_it(far: float, said: str) -> None:
    assert rate(far) == said
    assert float(said) == far


@pytest.mark.parametrize(
    ("value", "said"),
    [(840, "840 times"), (12_345.6, "12,346 times"), (10, "10 times"), (1.34, "1.3 times"), (0.5, "0.5 times")],
)
def test_a_multiple_has_a_decimal_only_below_ten(value: float, said: str) -> None:
    assert times(value) == said


def test_one_is_singular() -> None:
    assert [count(number, "pair") for number in (0, 1, 2, 1234)] == ["0 pairs", "1 pair", "2 pairs", "1,234 pairs"]
    assert [count(number, "identity", "identities") for number in (1, 2)] == ["1 identity", "2 identities"]


def test_digits_change_at_ten_percent_and_end_at_a_dozen() -> None:
    assert [decimals(one) for one in (0, 10, -10, 9.99, -9.99, 1, 0.99, 0.1, 0.099, 1e-20, float("nan"))] == [
        *(1, 1, 1, 1, 1, 1, 2, 2, 3, 12, 1)
    ]
    assert [in_percent(value) for value in (-0.0042, 1.5)] == ["-0.42", "150.0"]


def test_a_rate_below_one_in_a_hundred_is_a_power_of_ten_and_a_difference_has_its_sign() -> None:
    assert [rate(far) for far in (0.0099, 0.01, 0.5, 1e-2 / 3, 1.5e-12)] == [
        *("9.9e-3", "0.01", "0.5", "3.333333e-3", "1.5e-12")
    ]
    assert [signed_points(value) for value in (-0.038, 0.0012, 0.0, 0.5)] == ["−3.8", "+0.12", "+0.0", "+50.0"]
    assert [factor(value) for value in (9.94, 10, 1234.5, 0.04)] == ["9.9", "10", "1,234", "0.0"]
