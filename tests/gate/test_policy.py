"""If these fail, a policy means something else than it says, or a mistake in one goes unnoticed."""

import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.golden import declare, golden
from tests.kit.results import audited, change, erased, kept, raw
from unface import UnfaceError
from unface.gate import ImprovementRule, LeakageRule, Policy, UtilityRule, decide, make_policy, read_policy

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.toml"
RULE = "[[require]]\nfar = 1e-4\ntar_max = 0.01\n"
KEYS = (
    "attack, beats, coarse, context_adjusted, copies_max, exposed_max, far, inverted_max, k, on, pairs, pictures, "
    "probe, queries, recognised_max, retained_min, risk_max, space, success_max, tar_max, times_chance_max, utility, "
    "utility_min, view"
)


declare("gate/mistakes.txt")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "policy.toml"


def test_the_example_policy_has_a_rule_of_each_kind_and_passes_a_good_audit() -> None:
    policy = read_policy(EXAMPLE)
    assert [type(rule) for rule in policy.require] == [LeakageRule, ImprovementRule, UtilityRule]
    good = audited(raw(), erased(changes=[change(-0.03, -0.04, -0.02)], utility=[kept(0.9, 0.85, 0.95)]))
    assert decide(good, policy).exit_code == 0
    assert decide(audited(raw()), policy).exit_code == 3


def test_what_the_example_comments_out_may_be_commented_in(written: Path) -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    options = [line for line in lines if line.startswith("# ") and line[2:].split(" ")[1:2] == ["="]]
    assert len(options) == 5
    written.write_text("\n".join(line.removeprefix("# ") if line in options else line for line in lines), "utf-8")
    rule, _, useful = read_policy(written).require
    assert rule == LeakageRule(
        far=1e-4, tar_max=0.05, times_chance_max=100, probe="plda", context_adjusted=True, coarse="allow"
    )
    assert useful == UtilityRule(utility="knn", retained_min=0.8, on="objects.parquet")


MISTAKES: list[tuple[str, str]] = [
    ("", "has no rules"),
    ("[gate]\nfindings = 'allow'\n", "has no rules"),
    ("require = 3\n", "has no rules"),
    ("[require]\nfar = 1e-4\n", "[require]"),
    ("require = [1e-4]\n", "rule 1"),
    ("[[rules]]\nfar = 1e-4\n", "unknown key 'rules'"),
    (RULE + "[[require]]\nfar = 1e-4\ntar_mx = 0.1\n", "rule 2"),
    (RULE + "utility = 'knn'\n", "rule 1"),
    ("[[require]]\nfar = 1e-4\n", "rule 1"),
    ("[[require]]\ntar_max = 0.01\n", "rule 1: far"),
    ("[[require]]\nutility = 'knn'\n", "rule 1: retained_min"),
    ("[[require]]\nretained_min = 0.9\n", "rule 1: utility"),
    (RULE.replace("0.01", "5"), "rule 1: tar_max"),
    (RULE.replace("0.01", "1"), "rule 1: tar_max"),
    ("[[require]]\nutility = 'knn'\nretained_min = 90\n", "rule 1: retained_min"),
    ("[[require]]\nutility = 'knn'\nretained_min = 0\n", "rule 1: retained_min"),
    (RULE.replace("0.01", "-0.01"), "rule 1: tar_max"),
    (RULE.replace("0.01", "0"), "rule 1: tar_max"),
    (RULE.replace("0.01", "nan"), "rule 1: tar_max"),
    (RULE.replace("0.01", "inf"), "rule 1: tar_max"),
    (RULE.replace("0.01", "'0.01'"), "rule 1: tar_max"),
    (RULE.replace("0.01", "true"), "rule 1: tar_max"),
    (RULE.replace("1e-4", "[1e-4]"), "rule 1: far"),
    (RULE + "k = 16.0\n", "rule 1: k"),
    (RULE + "k = 0\n", "rule 1: k"),
    (RULE + "times_chance_max = -3\n", "rule 1: times_chance_max"),
    (RULE + "times_chance_max = inf\n", "rule 1: times_chance_max"),
    (RULE + "coarse = 'yes'\n", "rule 1: coarse"),
    (RULE + "context_adjusted = 1\n", "rule 1: context_adjusted"),
    (RULE + "probe = ''\n", "rule 1: probe"),
    (RULE + "space = 3\n", "rule 1: space"),
    (RULE + "[gate]\nfindings = 'strict'\n", "gate: findings"),
    (RULE + "[gate]\nwarnings = 1\n", "gate"),
    ("gate = 3\n" + RULE, "gate"),
    ("\n[[require]]\nfar 1e-4\n", "is not TOML"),
    (RULE + "space = '" + "x" * 100_000, "is not TOML"),
]
"""A policy, and the place in it that its refusal names."""


def test_a_mistake_is_one_line_that_names_file_rule_and_key(written: Path) -> None:
    said = []
    for text, where in MISTAKES:
        written.write_text(text, encoding="utf-8")
        with pytest.raises(UnfaceError) as caught:
            read_policy(written)
        sentence = str(caught.value)
        assert sentence.startswith(f"{written}: {where}")
        assert "\n" not in sentence
        said.append(sentence.removeprefix(f"{written}: "))
    golden("\n".join(said), "gate/mistakes.txt")


def test_long_and_hostile_values_are_shown_short_and_plain(written: Path) -> None:
    written.write_text(RULE + f"k = '{'x' * 1000}'\n", encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        read_policy(written)
    assert len(str(caught.value)) < len(str(written)) + 150
    written.write_text(RULE + '"\\u001b[31m\\n" = 1\n', encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        read_policy(written)
    assert "'\\x1b[31m\\n'" in str(caught.value)


def test_nesting_without_end_is_one_line(written: Path) -> None:
    written.write_text(f"require = {'[' * 100_000}", encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        read_policy(written)
    assert str(caught.value).startswith(f"{written}: ")


def test_all_of_a_measure_may_be_asked_for() -> None:
    table = {"utility": "knn", "retained_min": 1}
    assert make_policy({"require": [table]}, "{}: {}".format).require == (UtilityRule(utility="knn", retained_min=1),)


def test_what_is_no_text_or_not_there_is_named(written: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        read_policy(written)
    assert str(caught.value).startswith(f"{written}: ")
    written.write_bytes(b"\xff\xfe[")
    with pytest.raises(UnfaceError) as caught:
        read_policy(written)
    assert str(caught.value).startswith(f"{written}: ")


def policy_or_line(make: Callable[[], Policy]) -> Policy | None:
    """The policy, or None where a single line said what is wrong with it; any other error fails the test."""
    try:
        return make()
    except UnfaceError as error:
        return pytest.fail(f"more than a line: {error}") if "\n" in str(error) else None


VALUES = st.one_of(st.floats(), st.integers(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=2))


@given(st.dictionaries(st.sampled_from([*KEYS.split(", "), "unknown"]), VALUES))
def test_whatever_stands_in_a_rule_is_a_usable_rule_or_one_line(table: dict[str, object]) -> None:
    policy = policy_or_line(lambda: make_policy({"require": [table]}, lambda name, key: f"{name}: {key}"))
    if policy is None:
        return
    (rule,) = policy.require
    assert rule.model_dump(exclude_unset=True) == table
    numbers = [value for value in rule.model_dump().values() if isinstance(value, float)]
    assert all(math.isfinite(number) and number > 0 for number in numbers)


@given(st.integers(0, 2000), st.text(max_size=3))
def test_a_damaged_file_is_a_policy_or_one_line(tmp_path_factory: pytest.TempPathFactory, at: int, new: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_bytes((text[:at] + new + text[at + 1 :]).encode("utf-8", "replace"))
    policy = policy_or_line(lambda: read_policy(path))
    if policy is not None:
        assert len(policy.require) == len(tomllib.loads(path.read_text(encoding="utf-8"))["require"])


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000, "-" + "9" * 30])
def test_a_number_without_end_is_one_line(written: Path, number: str) -> None:
    written.write_text(RULE + f"k = {number}\n", encoding="utf-8")
    with pytest.raises(UnfaceError, match="64 bits"):
        read_policy(written)
