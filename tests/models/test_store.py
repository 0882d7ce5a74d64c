"""If this fails, the cache is not where people put it, or its failures are not told in one sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.served import tiny_card
from tests.refusals.table import refused
from unface.models import Part
from unface.models.resolve import is_offline
from unface.models.store import Mismatch, models_folder, place, staging


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "a"))
    assert place(tiny_card()) == tmp_path / "a" / "models" / "tiny" / "net.onnx"
    monkeypatch.delenv("UNFACE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert models_folder() == tmp_path / "b" / "unface" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert models_folder() == tmp_path / "c" / ".cache" / "unface" / "models"


def test_a_cache_of_an_earlier_version_is_still_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Off Linux the user's cache folder is elsewhere, but models that lie in ~/.cache are not fetched again."""
    for name in ("UNFACE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("unface.models.store.user_cache_path", lambda *_, **__: tmp_path / "Library")
    assert models_folder() == tmp_path / "Library" / "models"
    (tmp_path / ".cache" / "unface").mkdir(parents=True)
    assert models_folder() == tmp_path / ".cache" / "unface" / "models"


def test_a_cache_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("UNFACE_CACHE", str(tmp_path / "file"))
    with refused("weights", ..., "directory"), staging():
        pass


def test_a_full_disk_is_told_as_such_and_leaves_nothing(cache: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    with staging() as aside:
        (next(cache.glob("models/.*.tmp")) / "net.onnx").symlink_to(full)
        with refused("weights", ..., "space"):
            aside.write(Part("net.onnx", 0, ""), [b"x" * (1 << 20)])
    assert [path for path in cache.rglob("*") if not path.is_dir()] == []


def test_no_more_is_read_than_was_promised() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000
        raise AssertionError("read on after too much")

    with pytest.raises(Mismatch, match="more than the 1,500 bytes"), staging() as aside:
        aside.write(Part("net.onnx", 1500, ""), endless())


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("true", True), ("0", False), ("", False), ("no", False)])
def test_offline_is_read_from_the_environment(value: str, offline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_OFFLINE", value)
    assert is_offline() is offline
