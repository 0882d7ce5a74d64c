"""If this fails, something is in the repository that belongs to one machine, or its version disagrees with itself."""

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import unface

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 1_000_000  # bytes
PEOPLE_WHO_DO_NOT_EXIST = {"src/unface/data/nobody": 15_000_000, "tests/pictures": 4_000_000}  # bytes in all

# Brackets around single characters keep this file from matching itself.
LOCAL = {
    "a path of one machine": re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/"),
    "a package index": re.compile(
        r"(?i)--(extra-)?inde[x]-url|index[-_]url\s*=\s*\w|find[-]links|trusted[-]host|artifac[t]ory"
        r"|(?<!pypi\.org)/simple/?(?=[\s'\"]|$)"
    ),
    "a private address": re.compile(r"https?://(10|192\.168|172\.(1[6-9]|2\d|3[01]))\.\d"),
}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout, so there are no tracked files to check")
    return [file for name in listing.stdout.split("\0") if name and (file := ROOT / name).is_file()]


def test_no_tracked_file_speaks_of_one_machine(tracked: list[Path]) -> None:
    assert [sentence for file in tracked for sentence in local_facts(file)] == []


def test_no_tracked_file_is_large_but_the_embedded_people(tracked: list[Path]) -> None:
    sizes = {file.relative_to(ROOT): file.stat().st_size for file in tracked}
    for folder, most in PEOPLE_WHO_DO_NOT_EXIST.items():
        assert sum(sizes.pop(file) for file in list(sizes) if file.is_relative_to(folder)) < most
    assert [str(file) for file, size in sizes.items() if size > LARGEST] == []


def local_facts(file: Path) -> list[str]:
    """A sentence for each line of a text file that names a machine's path, package index or address."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [
        f"{file.name}:{number} holds {what}: {line.strip()}"
        for number, line in enumerate(lines, 1)
        for what, pattern in LOCAL.items()
        if pattern.search(line)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "data = '/" + "work/faces'",
        "cd /" + "home/ann/unface",
        "pip install --index" + "-url x",
        "extra-index-" + "url = https://packages.example",
        "https://packages.example/simp" + "le/",
        "http://10." + "0.0.7/",
    ],
)
def test_a_local_fact_is_found(tmp_path: Path, line: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"fine\n{line}\n")
    assert [sentence.split(" ")[0] for sentence in local_facts(file)] == ["notes.md:2"]


def test_relative_paths_and_addresses_on_the_web_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(
        "see docs/work/one.md, ./root/x, https://www.apache.org/licenses/\n'PIP_INDEX_URL', KEY = 'index-url'\n"
    )
    assert local_facts(file) == []


def test_version_is_written_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    holder = ROOT / project["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{unface.__version__}"' in holder.read_text(encoding="utf-8")


def test_installed_version_is_the_source_version() -> None:
    try:
        installed = metadata.version("unface")
    except metadata.PackageNotFoundError:
        pytest.skip("unface is run from its source tree without being installed")
    assert installed == unface.__version__


def test_changelog_opens_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)
    expected = "Unreleased" if ".dev" in unface.__version__ else unface.__version__
    assert expected in sections[:2]
    assert sections[0] in {"Unreleased", expected}
