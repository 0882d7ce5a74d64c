"""If these fail, a collection behind a URL is sanitised differently from one in a folder, or by two at a time."""

import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.scale.collection import NAMES, collection, hashes
from tests.scale.stored import projection
from unface.output import lock
from unface.output.lock import run_lock
from unface.scale import place_at, sanitise_directory


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(lock, "_RENEWED_S", 0.02)
    monkeypatch.setattr(lock, "_ABANDONED_S", 0.2)
    here = f"memory://{uuid.uuid4().hex}"
    yield here
    fsspec.filesystem("memory").rm(here, recursive=True)


def test_a_file_url_is_the_folder_itself(tmp_path: Path) -> None:
    source, out = collection(tmp_path / "raw"), tmp_path / "clean"
    sanitise_directory(projection(), source.as_uri(), out.as_uri())
    sanitise_directory(projection(), source, tmp_path / "other")
    assert hashes(out) == hashes(tmp_path / "other")
    assert place_at(out.as_uri()).local


def test_an_object_store_gets_the_same_bytes_goes_on_and_gives_them_back(tmp_path: Path, url: str) -> None:
    source = collection(tmp_path / "raw")
    memory = fsspec.filesystem("memory")
    receipt = sanitise_directory(projection(), source, f"{url}/clean", verify=True)
    sanitise_directory(projection(), source, tmp_path / "clean")
    for name in NAMES:
        assert memory.cat(f"{url}/clean/{name}") == (tmp_path / "clean" / name).read_bytes()
    assert receipt.where == f"{url}/clean"
    assert receipt.verified is not None
    assert receipt.verified.rows == 120
    memory.rm(f"{url}/clean/_unface/receipt.json")
    memory.rm(f"{url}/clean/_unface/done/a.parquet.json")
    assert sanitise_directory(projection(), source, f"{url}/clean").rows == 120
    assert not memory.exists(f"{url}/clean/_unface/lock")


def test_reading_goes_ahead_of_erasing_where_it_waits_for_a_network_and_where_cores_are_left(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead: list[int] = []

    def overlapped(
        items: Iterator[object], work: Callable[[object], object], threads: int, _: object
    ) -> Iterator[object]:
        ahead.append(threads)
        return map(work, items)

    monkeypatch.setattr("unface.scale.stream.overlapped", overlapped)
    source = collection(tmp_path / "raw")
    sanitise_directory(projection(), source, tmp_path / "clean", threads=2)
    assert ahead == []
    sanitise_directory(projection(), source, tmp_path / "other", threads=2 * len(NAMES))
    assert ahead == [2] * len(NAMES)
    sanitise_directory(projection(), source, f"{url}/clean", threads=2)
    assert ahead == [2] * len(NAMES) + [1] * len(NAMES)


def test_a_source_may_be_an_object_store_too(tmp_path: Path, url: str) -> None:
    source = collection(tmp_path / "raw")
    for name in NAMES:
        fsspec.filesystem("memory").pipe(f"{url}/raw/{name}", (source / name).read_bytes())
    sanitise_directory(projection(), f"{url}/raw", f"{url}/clean")
    content = fsspec.filesystem("memory").cat(f"{url}/clean/deep/er/c.parquet")
    assert pq.read_table(io.BytesIO(content)).num_rows == 69


def test_a_folder_is_locked_too(tmp_path: Path) -> None:
    source, out = collection(tmp_path / "raw"), tmp_path / "clean"
    with run_lock(place_at(out)), refused("output", "clean", "another OUT"):
        sanitise_directory(projection(), source, out)
    assert sanitise_directory(projection(), source, out).rows == 120
