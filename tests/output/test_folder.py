"""If these fail, a folder is read or written through links that lead elsewhere, or goes on with another plan."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.refusals.table import refused
from tests.scale.collection import NAMES, collection, hashes
from tests.scale.stored import projection
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, agree, read_plan
from unface.output.place import Place, place_at
from unface.scale import sanitise_directory


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return collection(tmp_path / "raw")


def attempt(source: Path, out: Path) -> None:
    sanitise_directory(projection(), source, out)


def test_a_link_in_a_circle_is_refused_before_a_byte_is_written(source: Path, tmp_path: Path) -> None:
    (source / "deep" / "round").symlink_to("..")
    with refused("output", "deep/round"):
        attempt(source, tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_other_links_are_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "more").symlink_to(source)
    (tmp_path / "links" / "a.parquet").symlink_to(source / "a.parquet")
    assert sanitise_directory(projection(), tmp_path / "links", tmp_path / "clean").rows == 120 + 50
    assert sorted(hashes(tmp_path / "clean")) == ["a.parquet", *(f"more/{name}" for name in NAMES)]


def test_a_link_to_nothing_is_a_file_that_cannot_be_read(source: Path, tmp_path: Path) -> None:
    (source / "lost.parquet").symlink_to("nowhere.parquet")
    with refused("apply", "lost.parquet", "4", "of 5"):
        attempt(source, tmp_path / "clean")
    assert not (tmp_path / "clean/_unface/receipt.json").exists()


def test_nobody_waits_for_a_pipe(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe.parquet")
    assert sanitise_directory(projection(), source, tmp_path / "clean").files == 4


def test_a_name_that_is_no_text_is_told(source: Path, tmp_path: Path) -> None:
    (source / os.fsdecode(b"\xff.parquet")).write_bytes((source / "a.parquet").read_bytes())
    with refused("output", "'\\udcff.parquet'", "not UTF-8"):
        attempt(source, tmp_path / "clean")


def test_an_output_that_is_a_file_is_told_without_its_path(source: Path, tmp_path: Path) -> None:
    (tmp_path / "clean").write_text("something")
    with refused("output", "clean"):
        attempt(source, tmp_path / "clean")
    with refused("output", "null"):
        attempt(source, Path(os.devnull))


def test_what_is_listed_is_what_one_look_at_a_file_says(source: Path) -> None:
    """Or every source would count as changed while it was read."""
    place = place_at(source)
    assert all(place.look(found.name) == found for found in place.parquet_files())


def test_what_cannot_be_removed_is_told_in_one_line(source: Path) -> None:
    with refused("output", "deep") as caught:
        place_at(source).drop("deep")  # a folder: as root, the only thing that a file's removal fails on
    assert str(source) not in str(caught.value)


PROJECTION = projection()
REFUSED = r"is a symbolic link; unface follows no links in what it writes to; remove it"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of files that no run may touch."""
    (tmp_path / "elsewhere/sub").mkdir(parents=True)
    (tmp_path / "elsewhere/precious").write_text("one")
    (tmp_path / "elsewhere/sub/precious.json").write_text("two")
    return tmp_path / "elsewhere"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def link(path: Path, target: Path) -> None:
    """In place of what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("_unface", ""),
        ("_unface/unfinished", ""),
        ("_unface/unfinished/left", "precious"),
        ("_unface/unfinished/sub", "sub"),
        ("_unface/done", ""),
        ("_unface/done/deep", "sub"),
        ("_unface/done/a.parquet.json", "sub/precious.json"),
        ("_unface/lock", "precious"),
        ("_unface/lock", "not there yet"),
        ("_unface/manifest.json", "sub/precious.json"),
        ("_unface/receipt.json", "sub/precious.json"),
        ("deep", ""),
        ("a.parquet", "precious"),
    ],
)
def test_a_link_in_an_output_is_refused_and_nothing_elsewhere_changes(
    source: Path, tmp_path: Path, elsewhere: Path, name: str, target: str, finished: bool, force: bool
) -> None:
    out = tmp_path / "clean"
    if finished:
        sanitise_directory(PROJECTION, source, out)
        (out / "_unface/receipt.json").unlink()  # so that the run is continued
        shutil.copytree(out / "deep", elsewhere, dirs_exist_ok=True)  # files of names that this run has written
    link(out / name, elsewhere / target)
    before = files(elsewhere)
    with refused("output", f"clean/{name}"):
        sanitise_directory(PROJECTION, source, out, force=force)
    assert files(elsewhere) == before


def test_an_output_that_is_itself_a_link_is_the_folder_it_leads_to(source: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "clean").symlink_to(tmp_path / "disk")
    sanitise_directory(PROJECTION, source, tmp_path / "clean")
    sanitise_directory(PROJECTION, source, tmp_path / "other")
    assert hashes(tmp_path / "disk") == hashes(tmp_path / "other")


def test_a_folder_that_becomes_a_link_while_a_file_is_written_leads_nowhere(tmp_path: Path, elsewhere: Path) -> None:
    """The folder is opened once: its name may lead elsewhere a moment later."""
    place, before = place_at(tmp_path / "clean"), files(elsewhere)
    with place.written("x") as sink:
        sink.write(b"content")
        os.rename(tmp_path / "clean/_unface/unfinished", tmp_path / "moved")  # noqa: PTH104
        (tmp_path / "clean/_unface/unfinished").symlink_to(elsewhere)
    assert (tmp_path / "clean/x").read_bytes() == b"content"
    assert list((tmp_path / "moved").iterdir()) == []
    assert files(elsewhere) == before


def test_one_file_at_a_time_links_are_not_followed(tmp_path: Path, elsewhere: Path) -> None:
    place, before = place_at(tmp_path / "clean"), files(elsewhere)
    link(tmp_path / "clean/sub", elsewhere / "sub")
    link(tmp_path / "clean/file", elsewhere / "precious")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: place.write("sub/new", b"x"),
        lambda: place.write("file", b"x"),
        lambda: place.drop("sub/precious.json"),
        lambda: place.read("file"),
        lambda: place.read("sub/precious.json"),
    )
    for work in attempts:
        with refused("output", ..., "link"):
            work()
    assert files(elsewhere) == before


def test_a_pipe_for_a_working_file_is_refused_and_nobody_waits_for_it(tmp_path: Path) -> None:
    place = place_at(tmp_path / "clean")
    place.write("_unface/x", b"")
    for name in ("lock", "manifest.json"):
        os.mkfifo(tmp_path / "clean/_unface" / name)
    with refused("output", "clean"), run_lock(place):
        pass
    with refused("output", "_unface/manifest.json"):
        place.read("_unface/manifest.json")


PLAN = {"encoder": "tiny", "batch_size": 4}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_at(tmp_path / "out")


def test_the_same_plan_continues_and_another_is_refused_by_what_differs(place: Place) -> None:
    assert read_plan(place) is None
    agree(place, PLAN)
    assert read_plan(place) == PLAN
    agree(place, PLAN)
    with refused("output", "out", "encoder, batch size", "--force"):
        agree(place, {"encoder": "big", "batch_size": 5})
    with refused("output", "out", "--out"):
        agree(place, {**PLAN, "seed": 1}, otherwise="another --out")
    assert read_plan(place) == PLAN


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_plan_is_named(place: Place, content: bytes) -> None:
    place.write(MANIFEST, content)
    with refused("output", "out", "_unface/manifest.json"):
        agree(place, PLAN)
