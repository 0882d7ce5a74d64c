"""If these fail, a set is mixed with another, overwritten, or begun where it cannot be finished."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.synth.toy import DarkIsNobody, ToyPrior, contents, judges, made
from unface._version import __version__
from unface.errors import UnfaceError
from unface.output.lock import run_lock
from unface.scale import place_at
from unface.synth import Recipe, synthesise

RECIPE = Recipe(identities=5, images=6, size=64, seed=3)


def test_a_finished_folder_is_refused_and_keeps_its_bytes(tmp_path: Path) -> None:
    out, small = tmp_path / "people", Recipe(2, 1, 64)
    made(out, small)
    before = contents(out)
    with pytest.raises(UnfaceError, match=r"people: is finished already; choose another --out, or remove it first"):
        made(out, small)
    assert contents(out) == before


def test_a_folder_with_anything_in_it_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UnfaceError, match=r"is not empty; choose another --out"):
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
    with pytest.raises(UnfaceError) as caught:
        made(out, recipe)
    told = f"people: was begun with different settings ({words}); give the same command, or another --out"
    assert str(caught.value) == told


@pytest.mark.parametrize("version", ["0.0.1", None], ids=["another", "none"])
def test_an_unfinished_run_of_another_version_is_not_mixed_in(tmp_path: Path, version: str | None) -> None:
    out = tmp_path / "people"
    with pytest.raises(RuntimeError):
        made(out, RECIPE, prior=ToyPrior(3))
    manifest = out / "_unface" / "manifest.json"
    plan = json.loads(manifest.read_text())
    assert plan.pop("unface") == __version__
    manifest.write_text(json.dumps(plan if version is None else {**plan, "unface": version}))
    words = f"people: was begun by unface {version or 'of before'}, whose pictures may be others than those of "
    with pytest.raises(UnfaceError, match=f"{words}{__version__}; continue that one, or give another --out"):
        made(out, RECIPE)


def test_two_runs_never_write_one_folder(tmp_path: Path) -> None:
    with run_lock(place_at(tmp_path / "people")), pytest.raises(UnfaceError, match="another process is writing it"):
        made(tmp_path / "people", RECIPE)


def test_somebody_whom_no_judge_knows_again_ends_the_run_with_why(tmp_path: Path) -> None:
    never = judges(apart=25, same=0)
    with pytest.raises(UnfaceError, match=r"person \d: 0 of 6 pictures accepted in \d+ tries \(\d+ not the person"):
        synthesise(RECIPE, ToyPrior(), never, Sees(), tmp_path / "people")


class Sees:
    name = "sees"

    def detect(self, image: np.ndarray) -> list:  # type: ignore[type-arg]  # nobody reads its items

        return DarkIsNobody().detect(np.full_like(image, 200))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"identities": 0}, "identities is 0; expected at least 1"),
        ({"images": 0}, "images is 0; expected at least 1"),
        ({"size": 32}, "size is 32; expected at least 64"),
        ({"size": 20_000}, "size is 20000; expected at most 1024"),
        ({"truncation": 0.0}, "truncation is 0; expected above 0 and at most 1.5"),
        ({"truncation": float("nan")}, "truncation is nan"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(UnfaceError, match=words):
        Recipe(**({"identities": 2, "images": 2} | wrong))  # type: ignore[arg-type]  # options of several types


@pytest.mark.parametrize("times", [1, 2])
def test_one_judge_is_not_enough(tmp_path: Path, times: int) -> None:
    with pytest.raises(UnfaceError, match=f"{times} judges; expected 2 or more, all different"):
        synthesise(RECIPE, ToyPrior(), judges()[:1] * times, Sees(), tmp_path / "people")
    assert not (tmp_path / "people").exists()
