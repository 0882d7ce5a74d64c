"""If this fails, a set holds somebody twice or a picture of somebody else, or a run that was cut off ends otherwise."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.synth.toy import DarkIsNobody, ToyPrior, contents, degrees, hue, judges, made, opened
from unface.data import read_images
from unface.synth import Recipe, Synthesised
from unface.synth.folder import Folder
from unface.synth.make import Studio, compressed
from unface.synth.palette import palette_of
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
