"""If these fail, a target or an attack of another package is not found, or is asked elsewhere without leave."""

from pathlib import Path

import pytest

from tests.refusals.table import refused
from tests.validate.world import World, world
from unface.result.validation import ValidationResult
from unface.validate.attacks import load_attack
from unface.validate.run import Case, Plan, validate
from unface.validate.targets import open_target

PACKAGE = '''
import numpy as np
from unface.validate import Picture
from unface.validate.ports import Recovered

class Mirror:
    """Scores by the length of the text."""
    decisions_only, batch = False, 5
    def __init__(self, text):
        self.name, self.text = f"theirs:{text}", text
        if text == "home":
            self.local = True
    def score(self, person, pictures):
        return np.array([float(len(person) + len(picture.name)) for picture in pictures])

class First:
    """The first face that it asked with."""
    name, adaptive, settings = "first", False, ({},)
    def run(self, oracle, knowledge, queries):
        oracle.ask(knowledge.pictures[: max(queries)])
        templates = np.repeat(knowledge.vectors[None, :1], len(queries), axis=1).astype(float)
        return Recovered(tuple(queries), templates, ((knowledge.pictures[0],) * len(queries),))

def broken(text):
    raise RuntimeError("no key")

def nothing(text):
    return object()
'''
ENTRY_POINTS = """
[unface.targets]
theirs = somebodys_service:Mirror
broken = somebodys_service:broken
nothing = somebodys_service:nothing
gone = no_such_module_anywhere:Target

[unface.attacks]
first = somebodys_service:First
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip would leave it."""
    site = tmp_path / "site"
    info = site / "somebodys_service-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-service\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "somebodys_service.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(site)


def case(made: World, target: str) -> Case:
    return Case(
        open_target(target),
        made.enrolled,
        made.knowledge,
        made.judges,
        enrolled_source="nobody",
        queries_source="nobody",
    )


def test_an_installed_target_is_attacked_by_an_installed_attack(tmp_path: Path) -> None:
    made = world(people=4)
    plan = Plan(20, attacks=("best-of-n", "first"), hardening=False)
    result = validate(case(made, "theirs:home"), plan, tmp_path / "ledger.jsonl").result
    assert (result.target.kind, result.target.name, result.target.local) == ("theirs", "theirs:home", True)
    assert [attack.name for attack in result.attacks] == ["best-of-n", "first"]
    assert result.asked.answered == 4 * 20
    path = result.save(tmp_path / "out")
    assert ValidationResult.load(path) == result


def test_an_installed_target_that_does_not_say_it_is_here_needs_leave(tmp_path: Path) -> None:
    made = world(people=4)
    with refused("validation", "theirs:away"):
        validate(case(made, "theirs:away"), Plan(20), tmp_path / "ledger.jsonl")
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("broken", "somebodys_service:broken"),
        ("gone", "no_such_module_anywhere:Target"),
        ("nothing", "unface.validate.ports.Target"),
    ],
)
def test_a_target_that_cannot_be_made_is_one_line(target: str, named: str) -> None:
    with refused("name", f"target '{target}'", named):
        open_target(f"{target}:x")


def test_an_unknown_attack_is_told_those_that_are_installed() -> None:
    assert load_attack("first").name == "first"
    with refused("name", None, "'last'"):
        load_attack("last")
