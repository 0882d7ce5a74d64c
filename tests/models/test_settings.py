"""If this fails, unface asks another index than pip does."""

from pathlib import Path

import pytest

from unface.models.index import index_settings

KEY = "index-url"
VARIABLE = "PIP_INDEX_URL"
PUBLIC = "https://pypi.org/simple"


@pytest.fixture
def pip_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (VARIABLE, "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    path = tmp_path / ".config" / "pip" / "pip.conf"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def own_file(pip_conf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that PIP_CONFIG_FILE names, which wins over all others."""
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "own.conf"))
    return tmp_path / "own.conf"


def test_with_no_settings_it_is_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    assert index_settings().addresses == (PUBLIC,)  # the fixture of all tests has taken pip's files away


def test_a_file_is_read_and_the_variable_wins(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_file.write_text(f"[global]\n{KEY} = https://a.example/py/\ncert = /x/ca.pem\n")
    assert index_settings().addresses[0] == "https://a.example/py"
    assert index_settings().certificates == "/x/ca.pem"
    monkeypatch.setenv(VARIABLE, "https://b.example/py")
    assert index_settings().addresses[0] == "https://b.example/py"


def test_the_named_file_wins_over_the_users(own_file: Path, pip_conf: Path) -> None:
    pip_conf.write_text(f"[global]\n{KEY} = https://a.example/py\n")
    assert index_settings().addresses[0] == "https://a.example/py"
    own_file.write_text(f"[install]\n{KEY} = https://b.example/py\n")
    assert index_settings().addresses[0] == "https://b.example/py"


def test_more_indexes_are_asked_after_the_first(own_file: Path) -> None:
    own_file.write_text(
        f"[global]\n{KEY}=https://a.example/p%40ss\nextra-{KEY} =\n  https://b.example\n  https://c.example/\n"
    )
    assert index_settings().addresses == ("https://a.example/p%40ss", "https://b.example", "https://c.example")


def test_a_broken_file_is_passed_over(own_file: Path) -> None:
    own_file.write_text("no section here\n")
    assert index_settings().addresses
