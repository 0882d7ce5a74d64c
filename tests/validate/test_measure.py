"""If these fail, the number that a validation is quoted by flatters the attacker: the luckiest of several attacks."""

from dataclasses import replace

import numpy as np

from unface.seeds import stream
from unface.validate.measure import WORST, Curve, Verdicts, worst_curve

PEOPLE, PICTURES, RATE = 40, 5, 0.3


def lucky_panel(number: int, attacks: int) -> list[Verdicts]:
    """Attacks that all accept by the same chance, so that none is better than another."""
    draw = stream(number, "lucky")

    def accepted(pictures: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        # A person is recovered by an attack, or not.
        return pictures * draw.binomial(1, RATE, (1, 1, 1, 1, PEOPLE))

    compared = np.tile(np.array([1, PICTURES, 100])[:, None, None], (1, 1, PEOPLE))
    strangers = np.zeros((1, 1, 1, 1, PEOPLE), np.int64)
    return [
        Verdicts(("judge",), (1e-3,), ({},), (100,), accepted(1), accepted(PICTURES), strangers, compared)
        for _ in range(attacks)
    ]


def value(curve: Curve) -> float:
    share = curve.share("other", [0], 0, 0)
    assert share is not None
    return share.value


def test_of_attacks_that_differ_by_luck_alone_the_worst_case_is_not_the_luckiest() -> None:
    panels = [lucky_panel(number, attacks=12) for number in range(60)]
    worst = [value(worst_curve(panel, number)) for number, panel in enumerate(panels)]
    largest = [max(value(Curve.of(verdicts, number)) for verdicts in panel) for number, panel in enumerate(panels)]
    spread = np.sqrt(RATE * (1 - RATE) / PEOPLE / len(panels))
    assert abs(np.mean(worst) - RATE) < 3 * spread
    assert np.mean(largest) > RATE + 10 * spread, "positive control: the largest rate is optimistic"


def test_the_better_of_two_attacks_is_the_worst_case_and_is_named() -> None:
    weak, strong = lucky_panel(1, attacks=2)
    panel = [weak, replace(strong, other=np.full_like(strong.other, PICTURES))]
    result = worst_curve(panel, 0).result(WORST, attacks=["weak", "strong"])
    assert {tuple(point.attacks) for point in result.at} == {("strong",)}
    assert {point.other.value for point in result.at if point.other} == {1.0}


def test_questions_to_one_half_are_read_off_the_curve_in_logarithms() -> None:
    """Forty people: after 100, 1,000 and 10,000 questions 10, 30 and 40 of them are recovered, with every picture."""
    recovered = np.arange(PEOPLE) < np.array([[10], [30], [40]])
    compared = np.tile(np.array([1, PICTURES, 100])[:, None, None], (1, 1, PEOPLE))
    other = (PICTURES * recovered).reshape(1, 1, 1, 3, PEOPLE)
    zeros = np.zeros_like(other)
    whole = Verdicts(("judge",), (1e-3,), ({},), (100, 1000, 10_000), zeros, other, zeros, compared)
    found, said = Curve.of(whole, 0).queries_to_half(1e-3)
    assert found is not None
    # half way between 25 and 75 % is half way between 100 and 1,000 in logarithms
    assert (round(found.value), said) == (316, "")
    assert 100 < found.low < found.value < found.high < 1000

    none = zeros[..., :1, :]
    short = replace(whole, queries=(100,), same=none, other=other[..., :1, :], stranger=none)
    least = replace(short, other=np.full_like(none, PICTURES))
    assert Curve.of(least, 0).queries_to_half(1e-3)[1] == "already at the smallest number that was tried"
    assert Curve.of(short, 0).queries_to_half(1e-3) == (None, "")
    nearly = (PICTURES * (np.arange(PEOPLE) < 19)).reshape(1, 1, 1, 1, PEOPLE)
    found, said = Curve.of(replace(short, other=nearly), 0).queries_to_half(1e-3)
    # Binomial(40, 19/40) is 20 or more with probability 0.437
    assert found is None
    assert said.startswith("reached in ")
    assert abs(int(said.split()[2]) - 43.7) < 5
