"""If this fails, a set holds somebody twice or a picture of somebody else, or a run that was cut off ends otherwise."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.synth.toy import DarkIsNobody, ToyPrior, contents, degrees, hue, judges, made, opened
from unface._version import __version__
from unface.data import read_images
from unface.output.lock import run_lock
from unface.scale import place_at
from unface.synth import Recipe, Synthesised, synthesise
from unface.synth.folder import Folder, Record
from unface.synth.make import Studio, compressed
from unface.synth.palette import palette_of
from unface.synth.people import Candidates, kept_apart
from unface.synth.photograph import PLAIN, photographed

RECIPE = Recipe(identities=5, images=6, size=64, seed=3)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Synthesised]:
    out = tmp_path_factory.mktemp("synth") / "people"
    return out, made(out, RECIPE)


def test_every_identity_has_its_pictures_and_nothing_else_is_left(unbroken: tuple[Path, Synthesised]) -> None:
    out, result = unbroken
    images = read_images(out)
    assert [image.id for image in images] == [f"{who:04d}/{number:02d}.jpg" for who in range(5) for number in range(6)]
    assert sorted(path.name for path in out.iterdir()) == [*(f"{who:04d}" for who in range(5)), "synth.json"]
    assert {opened(image.read()).shape for image in images} == {(64, 64, 3)}
    assert json.loads((out / "synth.json").read_text()) == result.as_json()


def test_pictures_are_near_to_their_person_and_people_far_from_each_other(unbroken: tuple[Path, Synthesised]) -> None:
    out, result = unbroken
    portraits = portraits_of(result)
    for upper in (True, False):
        known = np.array([hue(portrait, upper) for portrait in portraits])
        assert (known @ known.T - 2 * np.eye(5)).max() < degrees(25) + 1e-3
        for who in range(5):
            seen = np.array([hue(opened(path.read_bytes()), upper) for path in sorted((out / f"{who:04d}").iterdir())])
            assert (seen @ known[who]).min() > degrees(20) - 1e-6


def portraits_of(result: Synthesised) -> list[np.ndarray]:
    """People as the prior draws them, compressed once as candidates are."""
    prior = ToyPrior()
    studio = Studio(RECIPE, prior, palette_of(prior, RECIPE, DarkIsNobody()), judges(), None, None)  # type: ignore[arg-type]
    faces = prior.decode(studio.latents(tuple(result.identities.values())), 128)
    pictures = photographed(faces, [PLAIN] * 5, faces, 64).numpy()
    return [opened(compressed(picture, PLAIN.quality)) for picture in pictures]


def test_counts_add_up_and_name_every_reason(unbroken: tuple[Path, Synthesised]) -> None:
    _, result = unbroken
    assert result.accepted == 30
    assert result.tries == 30 + sum(result.rejected.values())
    # The upper hue moves with the early slots; of the lower one only light and compression move a little.
    assert result.rejected["not the person (upper)"] > 5 * result.rejected.get("not the person (lower)", 0)
    assert result.rejected["no face"] > 0
    assert max(result.identities.values()) + 1 == 5 + sum(result.refused.values())
    lines = result.sentences()
    assert lines[0].endswith("people: 5 people who do not exist, 6 pictures each")
    assert f"{result.tries} tries accepted" in lines[2]


def test_judges_decide_without_them_pictures_would_be_of_others(tmp_path: Path) -> None:
    strict, lenient = (made(tmp_path / str(same), RECIPE, same=same) for same in (10.0, 20.0))
    assert strict.identities == lenient.identities
    assert strict.tries > lenient.tries


def test_a_seed_is_a_set_and_threads_change_no_byte(tmp_path: Path, unbroken: tuple[Path, Synthesised]) -> None:
    made(tmp_path / "again", RECIPE, threads=7)
    assert contents(tmp_path / "again") == contents(unbroken[0])
    made(tmp_path / "other", Recipe(5, 6, 64, seed=4))
    assert contents(tmp_path / "other")["0000/00.jpg"] != contents(unbroken[0])["0000/00.jpg"]


PLUGS = (0, 1, 3, 6, 11, 40)


def test_the_interpreter_is_left_as_it_was(tmp_path: Path) -> None:
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.004)
        made(tmp_path / "people", RECIPE)
        assert sys.getswitchinterval() == pytest.approx(0.004)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("plug", PLUGS)
def test_a_run_that_was_cut_off_ends_in_the_same_bytes(
    tmp_path: Path, unbroken: tuple[Path, Synthesised], plug: int
) -> None:
    out = tmp_path / "people"
    with pytest.raises(RuntimeError, match="plug"):
        made(out, RECIPE, prior=ToyPrior(plug))
    for person in out.glob("0*"):
        assert len(list(person.iterdir())) == 6
    there = {path: path.stat().st_mtime_ns for path in out.glob("0*/*.jpg")}
    made(out, RECIPE)
    assert contents(out) == contents(unbroken[0])
    assert {path: path.stat().st_mtime_ns for path in there} == there, "somebody who was there was made again"
    assert there or plug < PLUGS[-1]


@pytest.mark.parametrize("lost", ["manifest.json", "people/0003.json", "all"])
def test_a_run_killed_while_it_tidied_up_is_finished_by_the_next(
    tmp_path: Path, unbroken: tuple[Path, Synthesised], monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    out = tmp_path / "people"

    def killed(folder: Folder, result: dict[str, object]) -> None:
        folder.place.write("synth.json", (json.dumps(result, indent=2, ensure_ascii=False) + "\n").encode())
        for path in list((out / "_unface").rglob("*")):
            if path.is_file() and (lost == "all" or path.as_posix().endswith(lost)):
                path.unlink()

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "finish", killed)
        made(out, RECIPE)
    with refused("output", "people"):
        made(out, Recipe(5, 7, 64, seed=3))
    made(out, RECIPE)
    assert contents(out) == contents(unbroken[0])


@pytest.mark.parametrize("harm", ["candidates/000000.npz", "people/0001.json", "a picture", "a person"])
def test_what_was_lost_or_damaged_since_a_run_was_cut_off_is_made_again(
    tmp_path: Path, unbroken: tuple[Path, Synthesised], harm: str
) -> None:
    out = tmp_path / "people"
    with pytest.raises(RuntimeError, match="plug"):
        made(out, RECIPE, prior=ToyPrior(40))
    assert (out / "0001").is_dir()
    if harm == "a picture":
        (out / "0001" / "03.jpg").unlink()
    elif harm == "a person":
        shutil.rmtree(out / "0001")
    else:
        (out / "_unface" / harm).write_bytes((out / "_unface" / harm).read_bytes()[:9])
    made(out, RECIPE)
    assert contents(out) == contents(unbroken[0])


RUN = """
import os, signal, sys
from pathlib import Path
from tests.synth.toy import ToyPrior, made
from unface.synth import Recipe

class Dying(ToyPrior):
    def decode(self, latents, size):
        if self.batches == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decode(latents, size)

made(Path(sys.argv[1]), Recipe(5, 6, 64, seed=3), prior=Dying())
"""


def test_a_process_killed_between_two_batches_leaves_whole_people_and_is_gone_on_with(
    tmp_path: Path, unbroken: tuple[Path, Synthesised]
) -> None:
    out = tmp_path / "people"
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}:{root}", "OMP_NUM_THREADS": "1"}
    died = subprocess.run([sys.executable, "-c", RUN, str(out), "40"], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    people = sorted(path for path in out.iterdir() if path.name != "_unface")
    assert 1 <= len(people) < 5
    assert all(len(list(person.iterdir())) == 6 for person in people)
    made(out, RECIPE)
    assert contents(out) == contents(unbroken[0])


def test_a_full_disk_says_how_to_go_on_and_is_gone_on_with(
    tmp_path: Path, unbroken: tuple[Path, Synthesised], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "people"

    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        with refused("synthesis", "people", "No space left on device"):
            made(out, RECIPE)
    made(out, RECIPE)
    assert contents(out) == contents(unbroken[0])


def test_candidates_are_read_as_they_were_kept_with_the_vectors_of_each_judge(tmp_path: Path) -> None:
    folder = Folder(tmp_path, place_at(tmp_path))
    vectors = (np.eye(2, 3, dtype=np.float32), np.full((2, 5), 0.5, np.float32))
    folder.keep_candidates(7, Candidates(np.array([True, False, True]), vectors))
    again = folder.candidates(7)
    assert again is not None
    assert again.found.tolist() == [True, False, True]
    assert [rows.tolist() for rows in again.vectors] == [rows.tolist() for rows in vectors]
    assert folder.candidates(8) is None


@pytest.mark.parametrize("name", ["_unface", "_unface/unfinished", "_unface/unfinished/p000", "p000"])
def test_a_link_in_the_folder_is_refused_and_nothing_behind_it_changes(name: str, tmp_path: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    for precious in ("p000", "unfinished/p000"):
        (elsewhere / precious).mkdir(parents=True)
        (elsewhere / precious / "00.jpg").write_bytes(b"precious")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(elsewhere)
    before = sorted((path, path.read_bytes()) for path in elsewhere.rglob("*.jpg"))
    with refused("output", ...):
        Folder(out, place_at(out)).keep_person("p000", [b"1", b"2"], Record(1, Counter()))
    assert sorted((path, path.read_bytes()) for path in elsewhere.rglob("*") if path.is_file()) == before


BOTH = judges(apart=30, same=20)


def points(angles: Sequence[float]) -> NDArray[np.float32]:
    radians = np.radians(np.asarray(angles, dtype=float))
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def candidates(upper: Sequence[float | None], lower: Sequence[float | None], size: int = 2) -> Iterator[Candidates]:
    """Angles by judge, None without a face; in chunks."""
    for start in range(0, len(upper), size):
        some = [angles[start : start + size] for angles in (upper, lower)]
        found = np.array([angle is not None for angle in some[0]])
        yield Candidates(found, tuple(points([angle for angle in angles if angle is not None]) for angles in some))


def test_a_person_nearer_than_the_threshold_to_anybody_taken_is_refused_by_either_judge() -> None:
    upper = [0, 29, 31, None, 200, 90, 62, 120]
    lower = [0, 180, 180, None, 29, 205, 90, 300]
    people = kept_apart(candidates(upper, lower), BOTH, 3)
    # To the upper judge 1 is 29° from 0; to the lower one 4 is 29° from 0 and 5 is 25° from 2.
    assert people.numbers == (0, 2, 6)
    assert people.refused == Counter(
        {"too close to another person (upper)": 1, "too close to another person (lower)": 2, "no face": 1}
    )
    np.testing.assert_array_equal(people.vectors[0], points([0, 31, 62]))
    np.testing.assert_array_equal(people.vectors[1], points([0, 180, 90]))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_how_candidates_come_in_chunks_changes_nobody(size: int) -> None:
    rng = np.random.default_rng(0)
    upper, lower = rng.uniform(0, 360, (2, 60)).tolist()
    whole, cut = (kept_apart(candidates(upper, lower, chunk), BOTH, 6) for chunk in (7, size))
    assert (whole.numbers, whole.refused) == (cut.numbers, cut.refused)


def test_no_two_taken_people_are_nearer_than_the_threshold() -> None:
    rng = np.random.default_rng(1)
    people = kept_apart(candidates(*rng.uniform(0, 360, (2, 400)).tolist()), BOTH, 5)
    for vectors in people.vectors:
        cosines = vectors @ vectors.T - 2 * np.eye(5)
        assert cosines.max() < degrees(30)


def test_more_people_than_fit_on_the_circle_are_refused_in_a_sentence() -> None:
    def endless() -> Iterator[Candidates]:
        rng = np.random.default_rng(2)
        while True:
            yield from candidates(*rng.uniform(0, 360, (2, 10)).tolist())

    # Twelve arcs of 30° fill it; drawn at random, fewer find room.
    with refused("synthesis", "only 7 of 13 people could be kept apart", "500", "--identities"):
        kept_apart(endless(), BOTH, 13)


def test_where_there_are_no_faces_nobody_is_told_to_ask_for_fewer_people() -> None:
    with refused("synthesis", "only 0 of 2 people could be kept apart", "500", "--truncation", "--size"):
        kept_apart(candidates([None] * 600, [None] * 600), BOTH, 2)


def test_what_is_held_grows_with_the_people_there_and_not_with_those_asked_for() -> None:
    angles = [0.0, 40.0, 80.0, 120.0, 160.0]
    people = kept_apart(candidates(angles, angles), BOTH, 10**15)
    assert people.numbers == (0, 1, 2, 3, 4)
    for vectors in people.vectors:
        np.testing.assert_array_equal(vectors, points(angles))


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
