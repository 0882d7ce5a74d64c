"""If these fail, ``unface diff`` lets a regression through, cries wolf, or compares what cannot be compared."""

import json
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tests.kit.command import unface
from tests.kit.golden import declare, golden
from tests.kit.results import (
    INVALID,
    AuditResult,
    Estimate,
    Interval,
    Reading,
    Run,
    Share,
    audited,
    erased,
    full_audit,
    kept,
    point,
    raw,
    refused,
    validation,
)
from unface.errors import UnfaceError
from unface.gate import Diff, Difference, Trend, compare
from unface.result.readings import counts_beside, read_result

Z = statistics.NormalDist().inv_cdf


def of_tar(value: float, low: float, high: float) -> AuditResult:
    return audited(raw(point(value, low, high)))


def headline(diff: Diff) -> Difference:
    return next(row for row in diff.rows if row.headline)


def test_a_result_has_no_regression_against_itself_and_every_number_is_found() -> None:
    diff = compare(full_audit(), full_audit())
    assert (diff.exit_code, diff.added, diff.blocked) == (0, 0, ())
    assert {row.trend for row in diff.rows} == {Trend.SAME}
    assert [row.name for row in diff.rows if row.headline] == [
        "vectors: TAR, worst k, FAR 1e-4",
        "isp: TAR, worst k, FAR 1e-4",
    ]
    assert "isp: knn, objects.parquet" in {row.name for row in diff.rows}


def test_unpaired_widths_are_added_at_the_level_that_all_intervals_hold_together() -> None:
    """Two numbers, of which one is quoted: half of 5 % for each."""
    (row, other) = compare(of_tar(0.30, 0.28, 0.32), of_tar(0.40, 0.37, 0.43)).rows
    scale = Z(1 - 0.05 / 2 / 2) / Z(0.975)
    for found in (row.difference, other.difference):
        assert found is not None
        assert found.value == pytest.approx(0.1)
        assert (found.low, found.high) == pytest.approx((0.1 - scale * 0.05, 0.1 + scale * 0.05))
    assert (row.trend, row.people) == (Trend.WORSE, None)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (of_tar(0.40, 0.37, 0.43), 3),  # beyond both intervals
        (of_tar(0.34, 0.31, 0.37), 0),  # higher, but within them
        (of_tar(0.20, 0.18, 0.22), 0),  # lower
        (audited(raw(point(0.2, 0.18, 0.22)), findings=[INVALID]), 4),
        (audited(raw(point(0.4, 0.37, 0.43)), findings=[INVALID]), 3),
        (audited(raw(point(0.3, 0.28, 0.32)), variant="paper"), 4),
        (audited(raw(point(0.3, 0.28, 0.32, far=1e-3))), 4),  # the rate of the old one is not there
    ],
)
def test_the_exit_code_says_worse_inconclusive_or_no_regression(new: AuditResult, code: int) -> None:
    assert compare(of_tar(0.30, 0.28, 0.32), new).exit_code == code


def test_less_usefulness_is_worse_and_more_is_not() -> None:
    less, more = (audited(raw(), erased(utility=[kept(share, share - 0.01, share + 0.01)])) for share in (0.5, 0.9))
    assert {row.name: row.trend for row in compare(more, less).rows}["isp: knn, objects.parquet"] is Trend.WORSE
    assert compare(more, less).exit_code == 3
    assert compare(less, more).exit_code == 0


def test_a_space_that_is_gone_is_inconclusive_and_a_new_one_is_not() -> None:
    gone = compare(audited(raw(), erased()), audited(raw()))
    assert (gone.exit_code, gone.verdict, gone.count(Trend.MISSING), len(gone.rows)) == (4, "inconclusive", 2, 4)
    diff = compare(audited(raw()), audited(raw(), erased()))
    assert (diff.exit_code, diff.added) == (0, 2)


def test_fewer_attackers_are_not_taken_for_less_leakage() -> None:
    old = full_audit()
    fewer = old.model_copy(update={"protocol": old.protocol.model_copy(update={"probe": ["cosine"]})})
    diff = compare(old, fewer)
    assert diff.exit_code == 4
    assert len(diff.blocked) == 1


def test_a_margin_is_inconclusive_where_the_interval_reaches_beyond_it() -> None:
    same = of_tar(0.30, 0.28, 0.32)
    assert compare(same, same, margin=0.1).exit_code == 0
    assert compare(same, same, margin=0.01).exit_code == 4
    assert headline(compare(same, same, margin=0.01)).trend is Trend.WIDE


def test_an_interval_that_reaches_far_towards_worse_is_too_wide_to_tell_and_no_proof_that_nothing_is() -> None:
    """−22.9 to +20.5 points around 30 % was called no regression."""
    wide, narrow = of_tar(0.30, 0.20, 0.40), of_tar(0.30, 0.28, 0.32)
    diff = compare(wide, wide)
    assert (headline(diff).trend, diff.exit_code, diff.verdict) == (Trend.VAGUE, 0, "too wide to tell")
    assert compare(wide, wide, margin=0.3).verdict == "no regression"
    assert compare(wide, wide, margin=0.2).exit_code == 4
    assert compare(narrow, narrow).verdict == "no regression"
    assert compare(of_tar(0.001, 0.0, 0.002), of_tar(0.001, 0.0, 0.002)).verdict == "no regression"  # within a point
    assert any("thresholds" in note for note in diff.notes)
    assert not any("thresholds" in note for note in compare(narrow, narrow).notes)


def people_of(tars: list[int], pairs: int = 10) -> dict[str, tuple[int, int]]:
    return {f"person {number}": (tar, pairs) for number, tar in enumerate(tars)}


def spread(tars: list[int], pairs: int = 10) -> float:
    """The standard error of the mean rate, if people are all there is to it."""
    return statistics.stdev(tars) / pairs / math.sqrt(len(tars))


def listed(
    tars: list[int], wider: float = 1.0, pairs: int = 10
) -> tuple[AuditResult, dict[str, dict[str, tuple[int, int]]]]:
    """An audit whose listing has these accepts of ten pairs for each person, and how much wider its interval is."""
    accepted, total, width = sum(tars), pairs * len(tars), wider * Z(0.975) * spread(tars, pairs)
    ends = Interval(accepted / total - width, accepted / total + width, 0.95)
    tar = Share.counted(accepted, total, ends, len(tars), 100.0)
    made = point(0.3, 0.2, 0.4).model_copy(update={"tar": tar})
    return audited(raw(made)), {"raw": people_of(tars, pairs)}


def test_with_as_many_pairs_for_each_person_pairing_is_that_of_the_paired_t_test() -> None:
    before = [1, 4, 2, 8, 5, 7, 3, 6, 2, 9, 4, 1]
    after = [2, 5, 2, 9, 7, 8, 3, 7, 4, 9, 6, 1]
    # Intervals as wide as the people's own spread explains: nothing is left for thresholds.
    (old, old_people), (new, new_people) = listed(before), listed(after)
    row = headline(compare(old, new, old_people, new_people))
    apart = [(two - one) / 10 for one, two in zip(before, after, strict=True)]
    error = statistics.stdev(apart) / math.sqrt(len(apart))
    assert row.people == 12
    assert row.difference is not None
    assert row.difference.value == pytest.approx(statistics.mean(apart))
    assert row.difference.high - row.difference.value == pytest.approx(Z(1 - 0.05 / 4) * error)
    assert row.trend is Trend.WORSE
    # Unpaired the same difference would not show.
    assert headline(compare(old, new)).trend is Trend.VAGUE


def test_what_people_do_not_explain_of_an_interval_is_added_for_both_results() -> None:
    tars = [1, 4, 2, 8, 5, 7, 3, 6, 2, 9, 4, 1]
    own = spread(tars)
    (old, old_people), (new, new_people) = listed(tars, wider=3), listed(tars, wider=3)
    row = headline(compare(old, new, old_people, new_people))
    assert row.difference is not None
    assert row.difference.high == pytest.approx(Z(1 - 0.05 / 4) * 2 * math.sqrt(8) * own)


def test_a_difference_of_shares_stays_within_100_points() -> None:
    (old, old_people), (new, new_people) = listed([10] * 11 + [9]), listed([0] * 11 + [1], wider=9)
    found = headline(compare(old, new, old_people, new_people)).difference
    assert found is not None
    assert found.low == -1.0
    assert found.value == pytest.approx(-118 / 120)


@pytest.mark.parametrize("spoil", ["few", "others", "another audit"])
def test_without_enough_people_in_both_the_difference_is_not_paired(spoil: str) -> None:
    tars = [1, 4, 2, 8, 5, 7, 3, 6, 2, 9, 4, 1][: 9 if spoil == "few" else None]
    old, old_people = listed(tars)
    new, new_people = listed(tars)
    if spoil == "others":
        new_people = {"raw": {f"{name}?": counts for name, counts in new_people["raw"].items()}}
    if spoil == "another audit":
        new_people = {"raw": people_of([*tars[1:], 9])}
    assert headline(compare(old, new, old_people, new_people)).people is None


def test_a_paired_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """120 people whose rates move together: the true difference is missed in at most about 2.5 % of draws."""
    rng, missed, draws = np.random.default_rng(1), 0, 400
    for _ in range(draws):
        own = rng.beta(2, 5, 120)
        (old, old_people), (new, new_people) = (listed(rng.binomial(20, own).tolist(), pairs=20) for _ in range(2))
        row = headline(compare(old, new, old_people, new_people))
        assert row.difference is not None
        assert row.people == 120
        missed += not row.difference.low <= 0 <= row.difference.high
    assert missed / draws < 0.05
    assert missed > 0


def test_two_kinds_of_result_cannot_be_compared() -> None:
    with pytest.raises(UnfaceError, match=r"unface\.audit/2.*unface\.validation/1"):
        compare(full_audit(), validation())


def test_the_command_reads_folders_and_files_pairs_by_the_listing_and_prints_json(tmp_path: Path) -> None:
    before = [1, 4, 2, 8, 5, 7, 3, 6, 2, 9, 4, 1]
    for name, tars in (("old", before), ("new", [one + 1 for one in before])):
        listed(tars)[0].save(tmp_path / name)
        rows = "".join(f"raw,Ann {n},,,10,{tar}\n" for n, tar in enumerate(tars))
        (tmp_path / name / "exposed.csv").write_text(f"space,identity,group_number,group,mated_pairs,accepted\n{rows}")
    done = unface("diff", tmp_path / "old", tmp_path / "new" / "audit.json", "--json")
    content = json.loads(done.out)
    assert (done.code, content["verdict"], content["schema"]) == (3, "worse", "unface.diff/1")
    assert content["rows"][0]["people"] == 12
    assert "Ann" not in done.out
    assert counts_beside(read_result(tmp_path / "old")[1])["raw"]["Ann 3"] == (8, 10)
    summary = tmp_path / "summary.md"
    done = unface("diff", tmp_path / "old", tmp_path / "old", "--markdown", summary, "--quiet")
    assert (done.code, done.out) == (0, "")
    assert summary.read_text().startswith("### ✅ ")


@pytest.mark.parametrize("content", [None, "nothing", "{}", '{"schema": "x/1"}', '{"schema": "unface.audit/1"}'])
def test_a_file_that_is_no_result_is_refused_in_one_line(tmp_path: Path, content: str | None) -> None:
    old, new = full_audit().save(tmp_path / "old"), tmp_path / "new.json"
    if content is not None:
        new.write_text(content)
    done = unface("diff", old, new)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"unface: {new}: ")
    assert len(done.err.splitlines()) == 1


def test_a_share_that_is_not_one_and_a_folder_without_a_result_are_refused(tmp_path: Path) -> None:
    old = full_audit().save(tmp_path / "old")
    assert unface("diff", old, old, "--margin", "5").err.startswith("unface: --margin: ")
    assert unface("diff", old, tmp_path).err.startswith(f"unface: {tmp_path}: ")


def test_an_interval_at_another_level_is_brought_to_the_common_one() -> None:
    narrow = of_tar(0.30, 0.28, 0.32)
    tar = narrow.raw.points[0].tar
    assert tar is not None
    at_99 = Estimate(tar.value, tar.value - 0.02 * Z(0.995) / Z(0.975), tar.value + 0.02 * Z(0.995) / Z(0.975), 0.99)
    share = type(tar)(at_99.value, at_99.low, at_99.high, 0.99, tar.numerator, tar.denominator, 25, tar.effective_n)
    wide = audited(raw(narrow.raw.points[0].model_copy(update={"tar": share})))
    one, two = headline(compare(narrow, narrow)).difference, headline(compare(narrow, wide)).difference
    assert one is not None
    assert two is not None
    assert (two.low, two.high) == pytest.approx((one.low, one.high))


def test_a_number_that_one_side_could_not_measure_is_not_compared() -> None:
    measured, unmeasured = audited(raw(point(0.3, 0.28, 0.32))), audited(raw(refused(far=1e-4)))
    for old, new, which in ((measured, unmeasured, "new"), (unmeasured, measured, "old")):
        diff = compare(old, new)
        assert diff.exit_code == 4
        assert {row.trend for row in diff.rows} == {Trend.MISSING}
        assert all(row.difference is None and which in row.why for row in diff.rows if row.why)


def test_people_listed_for_another_space_leave_a_difference_unpaired() -> None:
    people = people_of([5] * 40)
    old, new = of_tar(0.30, 0.28, 0.32), of_tar(0.40, 0.37, 0.43)
    unpaired = headline(compare(old, new))
    for before, after in (("raw", "isp"), ("isp", "raw"), ("isp", "isp")):
        row = headline(compare(old, new, {before: people}, {after: people}))
        assert (row.people, row.difference) == (None, unpaired.difference)


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
