"""Every test of models has a cache of its own, knows no index but its own, and may fetch."""

from pathlib import Path

import pytest

from tests.models.served import Index


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("UNFACE_CACHE", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("UNFACE_OFFLINE", "PIP_CERT", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/nothing-here")
    return folder


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> "Use":
    return Use(monkeypatch)


class Use:
    """Makes an index the configured one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, index: Index, login: str = "") -> None:
        address = index.address.replace("://", f"://{login}@") if login else index.address
        self._monkeypatch.setenv("PIP_INDEX_URL", f"{address}/index/")


def left_behind(folder: Path) -> list[str]:
    """Every file under a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
