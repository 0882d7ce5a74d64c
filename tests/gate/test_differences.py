"""If these fail, a difference has another interval than its two results give."""

import statistics
from dataclasses import dataclass, field

import pytest

from tests.kit.golden import declare, golden
from tests.kit.results import Estimate, Reading, Run
from unface.gate import Diff, Trend, compare

Z = statistics.NormalDist().inv_cdf
Counts = dict[str, tuple[int, int]]

declare("diff/blocked.txt")


@dataclass
class Made:
    """A result with these readings, and nothing else."""

    found: list[Reading]
    valid: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    schema_: str = "made/1"
    subject: str = "made"
    run: Run = field(default_factory=lambda: Run(unface="0", started="", seconds=0))

    def readings(self) -> list[Reading]:
        return self.found

    def conditions(self) -> dict[str, str]:
        return self.settings

    def file_text(self) -> str:
        return ""


def reading(name: str, value: float | None, low: float = 0.0, high: float = 1.0, **more: object) -> Reading:
    found = None if value is None else Estimate(value, low, high, 0.95)
    return Reading(name, "", "all", found, **more)  # type: ignore[arg-type]


def width(diff: Diff, row: int = 0) -> tuple[float, float]:
    """Below and above, in widths of a 95 % interval of 1."""
    found = diff.rows[row].difference
    assert found is not None
    return found.value - found.low, found.high - found.value


@pytest.mark.parametrize(
    ("quoted", "others", "share"), [(1, 0, 1), (2, 0, 2), (0, 3, 3), (1, 1, 2), (1, 3, 2), (2, 3, 4)]
)
def test_the_error_is_shared_by_quoted_numbers_and_the_others_half_each(quoted: int, others: int, share: int) -> None:
    """Only one half of 5 % is for each kind, unless there is one kind alone."""
    rows = [reading(f"q{n}", 0.3, 0.2, 0.4, headline=True) for n in range(quoted)]
    rows += [reading(f"o{n}", 0.3, 0.2, 0.4) for n in range(others)]
    rows.append(reading("unmeasured", None, headline=True))
    diff = compare(Made(rows[::-1]), Made(rows))
    assert [row.headline for row in diff.rows] == [True] * (quoted + 1) + [False] * others, "quoted ones first"
    assert width(diff, 1) == pytest.approx((0.2 * Z(1 - 0.05 / share / 2) / Z(0.975),) * 2)
    if quoted and others:
        assert width(diff, quoted + 1)[0] == pytest.approx(0.2 * Z(1 - 0.05 / (2 * others) / 2) / Z(0.975))


def test_each_side_of_an_interval_is_the_sum_of_the_sides_that_move_it_there() -> None:
    old, new = reading("x", 0.30, 0.29, 0.34), reading("x", 0.40, 0.38, 0.45)
    assert width(compare(Made([old]), Made([new]))) == pytest.approx((0.02 + 0.04, 0.05 + 0.01))
    # A value outside of its own interval adds nothing on that side.
    out = reading("x", 0.30, 0.31, 0.34)
    assert width(compare(Made([out]), Made([out]))) == pytest.approx((0.04, 0.04))
    beyond = reading("x", 0.30, 0.28, 0.29)
    assert width(compare(Made([beyond]), Made([beyond]))) == pytest.approx((0.02, 0.02))


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_trend_and_the_margin_look_towards_worse(better: str) -> None:
    def trend(value: float, half: float, margin: float | None = None) -> Trend:
        sign = 1 if better == "lower" else -1
        old = reading("x", 0.5, 0.5, 0.5, better=better)
        new = reading("x", 0.5 + sign * value, 0.5 + sign * value - half, 0.5 + sign * value + half, better=better)
        quoted = [Made([Reading(one.what, "", "all", one.found, one.better, headline=True)]) for one in (old, new)]
        return compare(quoted[0], quoted[1], margin=margin).rows[0].trend

    assert [trend(0.2, 0.125), trend(-0.2, 0.125), trend(0.125, 0.125), trend(-0.125, 0.125)] == [
        *(Trend.WORSE, Trend.BETTER, Trend.SAME, Trend.SAME)
    ]
    assert [trend(-0.125, 0.25, margin) for margin in (0.124, 0.125, 0.2)] == [Trend.WIDE, Trend.SAME, Trend.SAME]
    assert trend(-0.25, 0.125, 0.01) is Trend.BETTER


def test_a_margin_is_asked_of_quoted_numbers_alone_and_either_result_may_quote_one() -> None:
    one, two = reading("x", 0.3, 0.2, 0.4), reading("x", 0.3, 0.2, 0.4, headline=True)
    assert compare(Made([one]), Made([one]), margin=0.01).exit_code == 0
    for old, new in ((one, two), (two, one)):
        diff = compare(Made([old]), Made([new]), margin=0.01)
        assert (diff.exit_code, diff.rows[0].headline, diff.margin) == (4, True, 0.01)


def test_what_decides_is_counted() -> None:
    fine, worse = reading("x", 0.3, 0.29, 0.31, headline=True), reading("x", 0.5, 0.49, 0.51, headline=True)
    assert compare(Made([fine]), Made([fine])).exit_code == 0
    assert compare(Made([fine]), Made([worse])).count(Trend.WORSE) == 1
    assert compare(Made([]), Made([fine])).exit_code == 4, "there is nothing to compare"
    gone = reading("z", 0.1, 0.0, 0.2)
    old = Made([fine, gone], valid=False, settings={"judges": "a, b", "size": "16"})
    new = Made([fine], valid=False, settings={"size": "32"})
    diff = compare(old, new, margin=0.001)
    assert len(diff.blocked) == 4, "both are invalid, the judges and the size differ"
    assert (diff.count(Trend.MISSING), diff.count(Trend.WIDE)) == (1, 1)
    assert (diff.verdict, diff.as_dict()["level"], diff.as_dict()["schema"]) == ("inconclusive", 0.95, "unface.diff/1")
    assert diff.as_dict()["summary"] == diff.summary
    assert (diff.old, diff.new, diff.added) == ("made", "made", 0)
    golden("\n".join([diff.summary, *compare(Made([fine]), Made([worse])).notes]), "diff/blocked.txt")


def people(first: int, number: int, accepted: int = 5, pairs: int = 10) -> dict[str, Counts]:
    """Half of the pairs of each are accepted."""
    return {"raw": {f"person {at}": (accepted, pairs) for at in range(first, first + number)}}


@pytest.mark.parametrize(
    ("number", "shared", "paired"), [(10, 10, 10), (9, 9, None), (24, 12, 12), (24, 11, None), (4000, 2000, 2000)]
)
def test_ten_people_and_half_of_the_shorter_list_have_to_be_in_both(
    number: int, shared: int, paired: int | None
) -> None:
    made = Made([reading("x", 0.5, 0.4, 0.6, listed="raw"), reading("y", 0.5, 0.4, 0.6)])
    diff = compare(made, made, people(0, number), people(number - shared, number))
    assert [row.people for row in diff.rows] == [paired, None]
    assert len(diff.notes) == (2 if paired else 1)
    assert not paired or f"{paired:,}" in diff.notes[0]
    longer = compare(made, made, people(0, number), people(number - shared, 2 * number))
    assert longer.rows[0].people == paired, "of the shorter list"


def test_people_without_a_pair_in_one_result_are_not_compared_and_counts_must_be_those_of_the_number() -> None:
    made = Made([reading("x", 0.5, 0.4, 0.6, listed="raw")])
    twelve = people(0, 12)
    without = {"raw": {**twelve["raw"], "person 0": (0, 0), "person 1": (0, 0)}}
    for old, new in ((twelve, without), (without, twelve)):
        assert compare(made, made, old, new).rows[0].people == 10
    other = {"raw": {**twelve["raw"], "person 0": (6, 10)}}
    nobody: dict[str, Counts] = {"raw": {}}
    for old, new in ((twelve, other), (other, twelve), (twelve, nobody)):
        assert compare(made, made, old, new).rows[0].people is None
    (row,) = compare(made, made, twelve, twelve).rows
    assert row.difference is not None
    # Nobody differs: all of the width, 0.1 / z, is left for thresholds, of both results.
    assert (row.difference.low, row.difference.high) == pytest.approx((-0.2, 0.2))
