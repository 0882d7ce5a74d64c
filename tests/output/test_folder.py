"""If these fail, links, pipes and odd names in a folder double rows, lose them without a word, or hang the run."""

import os
from pathlib import Path

import pytest

from tests.refusals.table import refused
from tests.scale.collection import NAMES, collection, hashes
from tests.scale.stored import projection
from unface.scale import place_at, sanitise_directory


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
