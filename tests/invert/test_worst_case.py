"""If these fail, an inversion is quoted by its luckiest attack, or its worst case counts other people than it says."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit.results import cell
from unface.invert.measure import Judged
from unface.invert.run import CellRun, worst_cases
from unface.judge.template import Tally
from unface.score import Mated, Threshold

TARGETS, RATE = 100, 0.1
LIMIT = (Threshold.known(1e-3, 0.5),)


def run(name: str, matched: NDArray[np.bool_]) -> CellRun:
    """An attack that matches some targets, in the attacked picture and in another one."""
    scores, people = matched.astype(np.float32), np.arange(len(matched))
    strangers = np.full(len(matched), 50)
    judged = Tally(
        LIMIT, Mated(people, scores, len(people)), Mated(people, scores, len(people)), np.zeros((1, len(people)), int),
        strangers,
    )  # fmt: skip
    return CellRun(cell(name, 50).model_copy(update={"targets": len(people)}), Judged((1e-3,), {"judge": judged}), None)


def test_of_six_attacks_that_differ_by_luck_alone_none_is_flattered() -> None:
    """Six attacks of true 10 %: the largest of their measured rates is about half as large again."""
    quoted, largest = [], []
    for number in range(80):
        rng = np.random.default_rng((0, number))
        runs = [run(f"a{one}", rng.random(TARGETS) < RATE) for one in range(6)]
        (found,) = worst_cases(runs, number)
        assert found.at.other is not None
        quoted.append(found.at.other.value)
        largest.append(max(one.judged.by["judge"].other.scores.mean() for one in runs))
    error = np.sqrt(RATE * (1 - RATE) / TARGETS / 80)
    assert abs(np.mean(quoted) - RATE) < 3 * error
    assert np.mean(largest) > RATE + 8 * error, "positive control: the largest rate is optimistic"


def test_the_better_of_two_attacks_is_quoted_as_it_is_measured() -> None:
    rng = np.random.default_rng(1)
    weak, strong = run("weak", rng.random(TARGETS) < 0.1), run("strong", rng.random(TARGETS) < 0.6)
    (found,) = worst_cases([weak, strong], 0)
    (alone,) = strong.judged.success()
    assert (found.attacks, found.space, found.at.judge) == (["strong"], "raw", "all")
    for made, expected in ((found.at.same, alone.same), (found.at.other, alone.other)):
        assert made is not None
        assert expected is not None
        assert (made.numerator, made.denominator) == (expected.numerator, expected.denominator)
        assert (made.low, made.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.at.derangement == alone.derangement


def test_each_half_counts_with_the_attack_that_the_other_half_chose() -> None:
    """Two attacks that each match one half of the targets alone: what the other half chooses matches nobody."""
    from unface.seeds import stream

    half = stream(0, "invert", "halves").permutation(TARGETS) % 2
    runs = [run("first", half == 0), run("second", half == 1)]
    (found,) = worst_cases(runs, 0)
    assert (found.at.same.numerator, found.at.same.denominator) == (0, TARGETS)
    assert found.attacks == ["second", "first"]
    without = replace(runs[0].judged.by["judge"], other=runs[0].judged.by["judge"].other.of(np.zeros(TARGETS, bool)))
    (alone,) = worst_cases([replace(runs[0], judged=Judged((1e-3,), {"judge": without}))], 0)
    assert (alone.at.other, alone.at.same.numerator) == (None, TARGETS // 2)
