"""If these fail, numbers are said otherwise than they are, or a damaged count is taken for a number."""

import math
from collections.abc import Callable

import pytest

from tests.kit.golden import declare, golden
from unface.result.face_gate import GateCertificate, gate_words, people_needed
from unface.result.numbers import Estimate, Interval, Kept, Mean, Rate, Share, fewest_trials, wilson_ends, zero_bound
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
    ("rate", "trials", "ends"),
    [
        # z = 2, 12 trials: z²/n = 1/3, so that the centre of 0 is (1/6) / (4/3) = 1/8 and half is as much.
        (0.0, 12, (0.0, 0.25)),
        (1.0, 12, (0.75, 1.0)),
        (1.0 + 1e-15, 12, (0.75, 1.0)),  # rounded beyond all
        # z²/n = 1: centre 1/2, half = 2 · √(1/16 + 1/16) / 2 = √(1/8).
        (0.5, 4, (0.5 - math.sqrt(1 / 8), 0.5 + math.sqrt(1 / 8))),
        # z²/n = 1: centre (1/4 + 1/2) / 2 = 3/8, half = 2 · √(3/64 + 1/16) / 2 = √7 / 8.
        (0.25, 4, ((3 - math.sqrt(7)) / 8, (3 + math.sqrt(7)) / 8)),
    ],
)
def test_wilsons_ends_are_those_worked_by_hand(rate: float, trials: int, ends: tuple[float, float]) -> None:
    assert wilson_ends(rate, trials, 2.0) == pytest.approx(ends, abs=1e-12)


def test_no_success_bounds_a_rate_and_the_fewest_trials_are_the_inverse() -> None:
    assert zero_bound(1) == pytest.approx(0.95)
    assert zero_bound(2, 0.75) == 0.5  # half of a quarter's square root
    assert [fewest_trials(limit, 0.75) for limit in (0.5, 0.4999, 0.75, 0.76)] == [2, 3, 1, 1]
    assert [fewest_trials(limit) for limit in (0.05, 0.01, 0.95, 0.999)] == [59, 299, 1, 1]


@pytest.mark.parametrize("make", [lambda level: Interval(0, 1, level), lambda level: Estimate(0.5, 0, 1, level)])
def test_a_level_without_a_width_is_refused(make: Callable[[float], object]) -> None:
    for level in (0.01, 0.95, 1 - 1e-12):
        make(level)
    for level, shown in ((0.0099, "0.0099"), (1 - 1e-13, "1"), (95, "95")):
        with pytest.raises(ValueError, match="no level") as caught:
            make(level)
        assert str(caught.value) == f"{shown} is no level of an interval, such as 0.95"


def test_a_share_is_its_counts_and_nothing_else() -> None:
    ends = Interval(0.1, 0.4, 0.9)
    assert Share.counted(1, 4, ends, 3, 2.5) == Share(0.25, 0.1, 0.4, 0.9, 1, 4, 3, 2.5)
    assert Share.counted(1, 4, ends, 3).effective_n is None
    assert Rate.counted(3, 4) == Rate(0.75, 3, 4)
    assert (Rate.counted(0, 4).value, Rate.counted(4, 4).value) == (0, 1)
    assert Estimate.within(0.2, ends) == Estimate(0.2, 0.1, 0.4, 0.9)
    Rate(0.25 * (1 + 0.9e-9), 1, 4)
    for value, numerator, denominator, said in (
        (0.0, 0, 0, "0 of 0 is no share"),
        (1.25, 5, 4, "5 of 4 is no share"),
        (-0.25, -1, 4, "-1 of 4 is no share"),
        (1.0, 1234, 1000, "1,234 of 1,000 is no share"),
        (0.3, 1, 4, "0.3 is not 1 of 4"),
        (0.25 * (1 + 1.1e-9), 1, 4, "0.25 is not 1 of 4"),
    ):
        for make in (
            lambda v=value, n=numerator, d=denominator: Rate(v, n, d),
            lambda v=value, n=numerator, d=denominator: Share(v, 0, 1, 0.95, n, d, 3),
        ):
            with pytest.raises(ValueError, match="of") as caught:
                make()
            assert str(caught.value) == said
    with pytest.raises(ValueError, match="0 is no level of an interval"):
        Share(0.25, 0, 1, 0, 1, 4, 3)
    with pytest.raises(ValueError, match="0 is no level of an interval"):
        Mean(0.25, 0, 1, 0, 5, 3)


def test_neighbours_of_the_audited_are_no_usefulness() -> None:
    some = Estimate(0.5, 0.4, 0.6, 0.95)
    assert Kept("knn", "objects", 9, some, some, some).is_usefulness
    assert not Kept("neighbour overlap@10", "faces", 9, some, some, some).is_usefulness


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


declare("result/face-gate.txt")

FINE = GateCertificate(
    asked=0.01,
    missed=Rate.counted(1, 2000),
    bound=0.0024,
    people=Rate.counted(1, 1500),
    people_bound=0.0032,
    taken=Rate.counted(1, 20),
)


def test_too_few_people_and_a_set_with_people_in_it_are_warnings() -> None:
    assert FINE.level == 0.95
    poor = GateCertificate(0.01, Rate.counted(0, 1), 0.95, Rate.counted(0, 1), 0.95, Rate.counted(3, 50), 0.9)
    exact = GateCertificate(0.0005, Rate.counted(0, 5990), 0.0005, FINE.people, 0.1, FINE.taken)
    beyond = GateCertificate(0.0005, Rate.counted(0, 5980), 0.00051, FINE.people, 0.1, FINE.taken)
    said = [gate_words(one, "things.parquet") for one in (FINE, poor, exact, beyond)]
    assert [len(one) for one in said] == [1, 3, 1, 2], "a bound on what was asked is within it"
    golden("\n".join(line for one in said for line in one), "result/face-gate.txt")


@pytest.mark.parametrize(("miss", "people"), [(0.05, 59), (0.01, 299), (0.5, 5), (0.96, 1)])
def test_the_people_who_are_needed_are_those_of_the_exact_bound(miss: float, people: int) -> None:
    assert people_needed(miss) == people
    assert (1 - miss) ** people <= 0.05 < (1 - miss) ** (people - 1)
