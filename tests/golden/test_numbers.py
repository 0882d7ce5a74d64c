"""If these fail, a change of code changed a number that a command writes; each line names the number's path.

``make golden`` shows the differences of all cases. A number that was meant to change is recorded by
``python -m tests.golden --record CASE``, in a commit of its own.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.compare import Rule, differences, read_rules
from tests.golden.flatten import Path as NamePath
from tests.golden.flatten import Value, flatten
from tests.golden.run import Case, all_cases, run_case
from tests.golden.values import VALUES, Damaged, file_of, read, write
from tests.real import weights_here

_SHOWN = 40
CASES = [pytest.param(case, id=case.name, marks=[pytest.mark.quick] if case.quick else []) for case in all_cases()]


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_recorded_one(case: Case, tmp_path: Path) -> None:
    for card in case.weights.split(",") if case.weights else ():
        weights_here(card)
    recorded = _recorded(case.name)
    if isinstance(recorded, str):
        pytest.fail(recorded, pytrace=False)
    lines, _ = differences(case.name, recorded, run_case(case, tmp_path.resolve()), case.tolerance, read_rules())
    if lines:
        more = [f"… and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        pytest.fail("\n".join(lines[:_SHOWN] + more), pytrace=False)


def _recorded(case: str) -> dict[NamePath, Value] | str:
    """The values of a case, or what is wrong with their file."""
    try:
        return read(case)
    except Damaged as error:
        return str(error)


@pytest.mark.quick
def test_each_file_of_values_belongs_to_a_case_and_each_rule_to_a_number() -> None:
    names = {case.name for case in all_cases()}
    assert {file.name for file in VALUES.iterdir()} == {file_of(name).name for name in names}
    rules = read_rules()
    paths = {name: ["/".join(path) for path in read(name)] for name in names} if rules else {}
    idle = [r for r in rules if not any(r.renamed(name, path) for name in paths for path in paths[name])]
    assert idle == [], "about no recorded number"


def told(recorded: object, current: object, *rules: Rule, tolerance: float = 1e-9) -> list[str]:
    return differences("case", dict(flatten(recorded)), dict(flatten(current)), tolerance, list(rules))[0]


SPACES = [{"space": "raw", "tar": 0.25, "hits": 5}, {"space": "isp", "tar": 0.125, "hits": 2}]


def test_numbers_that_trade_places_are_seen_and_another_order_too() -> None:
    swapped = [{**one, "tar": other["tar"]} for one, other in zip(SPACES, SPACES[::-1], strict=True)]
    assert told({"spaces": SPACES}, {"spaces": swapped}) == [
        "case: spaces/space=raw/tar: 0.25 recorded, now 0.125",
        "case: spaces/space=isp/tar: 0.125 recorded, now 0.25",
    ]
    (order, *_) = told({"spaces": SPACES}, {"spaces": SPACES[::-1]})
    assert order.startswith("case: spaces/#order[0]: ")


def test_floats_may_differ_in_their_last_digits_and_counts_may_not() -> None:
    assert told({"tar": 0.25, "hits": 5}, {"tar": 0.25 * (1 + 5e-10), "hits": 5}) == []
    assert told({"tar": 0.25}, {"tar": 0.25 * (1 + 2e-9)}) != []
    assert told({"hits": 10**12}, {"hits": 10**12 + 1}) != []
    assert told({"hits": 5}, {"hits": 5.0}) != []
    assert told({"tar": [0.1, 0.2]}, {"tar": [0.1, 0.3]}) == ["case: tar[1]: 0.2 recorded, now 0.3"]


def test_missing_and_added_numbers_are_seen_unless_they_are_listed() -> None:
    assert told({"a": 1}, {}) == ["case: a: missing, was 1"]
    assert told({}, {"a": 1}) == ["case: a: not recorded, is 1"]
    assert told({"a": 1, "b": 2}, {"b": 2}, Rule("case", "a", None, "its reader is gone")) == []
    assert told({"a": 1}, {"a": 1}, Rule("case", "a", None, "gone")) == ["case: a: listed as removed, and still there"]
    assert told({"old": {"x": 1}}, {"new": {"x": 1}}, Rule("case", "old(.*)", r"new\1", "renamed")) == []
    assert told({"old": 1}, {"new": 2}, Rule("case", "old", "new", "")) == ["case: new: 1 recorded, now 2"]
    assert told({"old": 1}, {"new": 1}, Rule("another case", "old", "new", "renamed")) != []


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tests.golden.values.VALUES", tmp_path)
    return tmp_path / "case.txt"


def test_values_are_read_as_they_were_written(elsewhere: Path) -> None:
    values: dict[tuple[str, ...], Value] = {
        ("a", "b c", "d"): 0.1,
        ("a", "b c", " e"): [1, 2.0, None, "x"],
        ("a", 'q"\t'): True,
        ("a",): None,
        ("#order",): ["a", "b"],
        ("b", "#"): 1e-17,
    }
    write("case", values)
    assert read("case") == values
    assert elsewhere.read_text(encoding="utf-8").startswith("# unface numbers guard 1: case\n#order\t")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda text: None, "there is no such file"),
        (lambda text: text.replace("guard 1", "guard 0"), "does not begin with"),
        (lambda text: text.replace(" values", ""), "ends with"),
        (lambda text: text.replace("\t1\n", "\t1,\n"), "is damaged"),
        (lambda text: text.replace("a\t1\n", ""), "holds 1 values"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_command_that_makes_it(
    elsewhere: Path, harm: Callable[[str], str | None], says: str
) -> None:
    write("case", {("a",): 1, ("b",): 2})
    harmed = harm(elsewhere.read_text(encoding="utf-8"))
    elsewhere.unlink()
    if harmed is not None:
        elsewhere.write_text(harmed, encoding="utf-8")
    with pytest.raises(Damaged, match=says) as refusal:
        read("case")
    assert str(refusal.value).startswith("case.txt: ")
    assert str(refusal.value).endswith("'python -m tests.golden --record case' makes it")
