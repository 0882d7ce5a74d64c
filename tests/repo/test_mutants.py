"""If these fail, mutants change texts, or are not found again in a later version of the code."""

import ast
from pathlib import Path

import pytest

from tests.mutants import ROOMS, Finder, Mutant, draw, read

ROOT = Path(__file__).resolve().parents[2]


def made(source: str) -> set[tuple[str, str]]:
    """Kind and changed line of every mutant."""
    changes = Finder("src/unface/room/file.py", source.encode()).changes
    for change in changes:
        ast.parse(change.apply(source.encode()))
    return {(change.mutant.kind, change.mutant.after) for change in changes}


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("    if a <= b:\n        pass", {("comparison", "if a < b:")}),
        ("    a = b - c", {("arithmetic", "a = b + c")}),
        ("    a += b", {("arithmetic", "a -= b")}),
        ("    a = b and not c", {("boolean", "a = b or not c"), ("not", "a = b and c")}),
        ("    a = -(-b)", {("minus", "a = (-b)"), ("minus", "a = -(b)")}),
        ("    a = 0.5", {("number", "a = 1.0")}),
        ("    a = False", {("truth", "a = True")}),
        ("    a = f(b, c.d)", {("swapped", "a = f(c.d, b)")}),
        ("    return b", {("returned", "return None")}),
        ("    b.append(c)", {("statement", "pass")}),
        ("    raise Refused(f'{1 + 2} rows')", {("statement", "pass")}),
        ('    a = b == "raw"', {("comparison", 'a = b != "raw"'), ("word", 'a = b == "xaw"')}),
        ('    a = {"raw": b["k"]}', {("word", 'a = {"xaw": b["k"]}'), ("word", 'a = {"raw": b["x"]}')}),
    ],
)
def test_behaviour_is_changed(line: str, changed: set[tuple[str, str]]) -> None:
    assert made(f"def f(a, b, c):\n{line}\n") == changed


@pytest.mark.parametrize(
    "source",
    [
        '"""Three words here."""\nimport a\n',
        "def f(a: Literal[1, 2], b: dict[str, 'c']) -> Literal[3]:\n    '''Four.'''\n",
        "def f(a):\n    b = f'{a + 1} of {len(a) > 2} rows' + ' and more'\n",
        'def f(a):\n    b = a == "no rule was given"\n',
        "def __repr__(self):\n    return self.a + 1\n",
        "if TYPE_CHECKING:\n    a = 1\n",
        "def f(a):\n    warn(a + 1)\n",
        "class A:\n    a: int = field(repr=False)\n",
    ],
)
def test_texts_annotations_and_imports_are_left_alone(source: str) -> None:
    assert {kind for kind, _ in made(source)} <= {"comparison"}


def test_a_mutant_is_found_again_when_its_line_has_moved() -> None:
    source = "class A:\n    def f(self, a):\n        a = a + 1\n        b = 2\n        a = a + 1\n"
    before = {change.mutant: change for change in Finder("file.py", source.encode()).changes}
    after = {change.mutant: change for change in Finder("file.py", b"# more\n\n\n" + source.encode()).changes}
    assert before.keys() == after.keys()
    assert all(after[mutant].start == change.start + len("# more\n\n\n") for mutant, change in before.items())
    second = Mutant("file.py", "A.f", "arithmetic", "a = a + 1", "a = a - 1", 1)
    assert before[second].apply(source.encode()).decode().splitlines()[-1] == "        a = a - 1"


def test_the_same_mutants_are_drawn_again_and_all_kinds_take_part() -> None:
    source = "def f(a, b):\n" + "".join(f"    a{at} = a > {at}\n" for at in range(50)) + "    return f(a, b)\n"
    changes = Finder("file.py", source.encode()).changes
    drawn = draw(changes, 10, "seed")
    assert drawn == draw(changes, 10, "seed") != draw(changes, 10, "another")
    assert {mutant.kind for mutant in drawn} == {"comparison", "number", "returned"}


def test_the_record_has_mutants_of_every_room_that_decides() -> None:
    mutants = [row.mutant for row in read(ROOT / "tests" / "mutants.tsv")]
    assert len(set(mutants)) == len(mutants)
    assert {mutant.room for mutant in mutants} == set(ROOMS)
    assert not [mutant for mutant in mutants if mutant.before == mutant.after]
