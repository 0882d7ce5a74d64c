"""If these fail, a set is mixed with another, overwritten, or begun where it cannot be finished."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.synth.toy import DarkIsNobody, ToyPrior, contents, judges, made
from unface._version import __version__
from unface.output.lock import run_lock
from unface.scale import place_at
from unface.synth import Recipe, synthesise

RECIPE = Recipe(identities=5, images=6, size=64, seed=3)


def test_a_finished_folder_is_refused_and_keeps_its_bytes(tmp_path: Path) -> None:
    out, small = tmp_path / "people", Recipe(2, 1, 64)
    made(out, small)
    before = contents(out)
    with refused("synthesis", ..., "--out", "finished"):
        made(out, small)
    assert contents(out) == before


def test_a_folder_with_anything_in_it_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with refused("synthesis", ..., "--out", "empty"):
        made(tmp_path, RECIPE)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize(
    ("recipe", "words"),
    [(Recipe(5, 7, 64, seed=3), "images"), (Recipe(5, 6, 64, 4, 0.5), "seed, truncation")],
)
def test_an_unfinished_run_of_something_else_is_not_mixed_in(tmp_path: Path, recipe: Recipe, words: str) -> None:
    out = tmp_path / "people"
    with pytest.raises(RuntimeError):
        made(out, RECIPE, prior=ToyPrior(3))
    with refused("output", "people", f"({words})", "--out"):
        made(out, recipe)


@pytest.mark.parametrize("version", ["0.0.1", None], ids=["another", "none"])
def test_an_unfinished_run_of_another_version_is_not_mixed_in(tmp_path: Path, version: str | None) -> None:
    out = tmp_path / "people"
    with pytest.raises(RuntimeError):
        made(out, RECIPE, prior=ToyPrior(3))
    manifest = out / "_unface" / "manifest.json"
    plan = json.loads(manifest.read_text())
    assert plan.pop("unface") == __version__
    manifest.write_text(json.dumps(plan if version is None else {**plan, "unface": version}))
    with refused("synthesis", "people", version or "of before", __version__):
        made(out, RECIPE)


def test_two_runs_never_write_one_folder(tmp_path: Path) -> None:
    with run_lock(place_at(tmp_path / "people")), refused("output", "people", "process"):
        made(tmp_path / "people", RECIPE)


def test_somebody_whom_no_judge_knows_again_ends_the_run_with_why(tmp_path: Path) -> None:
    never = judges(apart=25, same=0)
    with refused("synthesis", "person 0", "of 6"):
        synthesise(RECIPE, ToyPrior(), never, Sees(), tmp_path / "people")


class Sees:
    name = "sees"

    def detect(self, image: np.ndarray) -> list:  # type: ignore[type-arg]  # nobody reads its items

        return DarkIsNobody().detect(np.full_like(image, 200))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"identities": 0}, "identities"),
        ({"images": 0}, "images"),
        ({"size": 32}, "is 32"),
        ({"size": 20_000}, "is 20000"),
        ({"truncation": 0.0}, "above 0"),
        ({"truncation": float("nan")}, "is nan"),
        ({"seed": -1}, "is -1"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, float], words: str) -> None:
    with refused("synthesis", None, words):
        Recipe(**({"identities": 2, "images": 2} | wrong))  # type: ignore[arg-type]  # options of several types


@pytest.mark.parametrize("times", [1, 2])
def test_one_judge_is_not_enough(tmp_path: Path, times: int) -> None:
    with refused("synthesis", None, "expected 2"):
        synthesise(RECIPE, ToyPrior(), judges()[:1] * times, Sees(), tmp_path / "people")
    assert not (tmp_path / "people").exists()
