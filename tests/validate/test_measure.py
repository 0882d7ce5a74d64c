"""If these fail, the number that a validation is quoted by flatters the attacker: the luckiest of several attacks."""

from dataclasses import replace

import numpy as np

from unface.score import Threshold
from unface.seeds import stream
from unface.validate.measure import WORST, Counts, Curve, Verdicts, worst_curve

PEOPLE, PICTURES, RATE = 40, 5, 0.3


def lucky_panel(number: int, attacks: int) -> list[Verdicts]:
    """Attacks that all accept by the same chance, so that none is better than another."""
    draw = stream(number, "lucky")

    return [
        # A person is recovered by an attack, or not.
        accepting(draw.binomial(1, RATE, (1, PEOPLE)), np.repeat(draw.binomial(1, RATE, (1, PEOPLE)), PICTURES, axis=1))
        for _ in range(attacks)
    ]


def accepting(same: Counts, other: Counts, queries: tuple[int, ...] = (100,)) -> Verdicts:
    """One judge, one setting: (queries, people) and (queries, pictures), 1 for an accepted comparison."""
    return Verdicts(
        judges=("judge",),
        fars=(1e-3,),
        settings=({},),
        queries=queries,
        thresholds=(((Threshold.known(1e-3, 0.5),),),),
        same=same[None, None].astype(np.float32),
        other=other[None, None].astype(np.float32),
        owners=np.repeat(np.arange(PEOPLE), PICTURES),
        stranger=np.zeros((1, 1, 1, len(queries), PEOPLE), np.int64),
        compared=(np.ones((1, PEOPLE), bool), np.ones((1, PEOPLE * PICTURES), bool)),
        strangers=np.full((1, PEOPLE), 100),
    )


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
    panel = [weak, replace(strong, other=np.ones_like(strong.other))]
    result = worst_curve(panel, 0).result(WORST, attacks=["weak", "strong"])
    assert {tuple(point.attacks) for point in result.at} == {("strong",)}
    assert {point.other.value for point in result.at if point.other} == {1.0}


def test_questions_to_one_half_are_read_off_the_curve_in_logarithms() -> None:
    """Forty people: after 100, 1,000 and 10,000 questions 10, 30 and 40 of them are recovered, with every picture."""
    recovered = (np.arange(PEOPLE) < np.array([[10], [30], [40]])).astype(np.int64)
    whole = accepting(recovered, np.repeat(recovered, PICTURES, axis=1), (100, 1000, 10_000))
    found, said = Curve.of(whole, 0).queries_to_half(1e-3)
    assert found is not None
    # half way between 25 and 75 % is half way between 100 and 1,000 in logarithms
    assert (round(found.value), said) == (316, "")
    assert 100 < found.low < found.value < found.high < 1000

    def after(people: int) -> Verdicts:
        once = (np.arange(PEOPLE) < people).astype(np.int64)[None]
        return accepting(once, np.repeat(once, PICTURES, axis=1))

    assert Curve.of(after(PEOPLE), 0).queries_to_half(1e-3)[1] == "already at the smallest number that was tried"
    assert Curve.of(after(0), 0).queries_to_half(1e-3) == (None, "")
    found, said = Curve.of(after(19), 0).queries_to_half(1e-3)
    # Binomial(40, 19/40) is 20 or more with probability 0.437
    assert found is None
    assert said.startswith("reached in ")
    assert abs(int(said.split()[2]) - 43.7) < 5
