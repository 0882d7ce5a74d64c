"""If this fails, what people would install is not what was tested: files are missing, or too many are in it."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import unface
from tests.kit.thorough import only_thorough

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
NEEDED = [
    "data/nobody/*.parquet",
    "models/cards/*.toml",
    "auditing/*/*.jinja",
    "report/*.jinja",
    "page/*.jinja",
    "page/*.css",
    "py.typed",
]

USE = """
import importlib.util
from unface.data import nobody
from unface.erase import ISP
assert not importlib.util.find_spec("torch"), "an extra was installed"
people = nobody("sface")
ISP(16).fit(people.vectors, people.identities)
print(len(people.names))
"""

TYPED = """
from pathlib import Path
import unface

people: unface.EmbeddingSet = unface.make_identities(60, 8, 32, rank=8, seed=1)
value: float = unface.verify(people.vectors, people.identities, far=(1e-2,)).at[1e-2].value
projection: unface.Projection = unface.ISP(rank=8).fit(people.vectors, people.identities).projection_
result: unface.AuditResult = unface.audit(people, far=(1e-2,), eraser=("isp",), rank=8)
again = unface.AuditResult.load(result.save(Path("audit")))
head = again.headline
"""


@dataclass(frozen=True)
class Built:
    """The two files that would be published, the wheel made from the source distribution."""

    sdist: Path
    wheel: Path

    def wheel_files(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def sdist_files(self) -> set[str]:
        with tarfile.open(self.sdist) as archive:
            return {name.split("/", 1)[1] for name in archive.getnames()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    for needed in ("build", "hatchling"):
        pytest.importorskip(needed, reason=f"{needed} is not installed; pip install 'unface[dev]'")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Built(sdist, wheel)


def test_twine_finds_nothing_to_complain_about(built: Built) -> None:
    pytest.importorskip("twine", reason="twine is not installed; pip install 'unface[dev]'")
    run(sys.executable, "-m", "twine", "check", "--strict", str(built.sdist), str(built.wheel))


def test_the_wheel_holds_every_file_of_the_source_and_nothing_else(built: Built) -> None:
    source = {str(file.relative_to(SOURCE)) for file in (SOURCE / "unface").rglob("*") if file.is_file()}
    about = {name for name in built.wheel_files() if name.split("/")[0].endswith(".dist-info")}
    assert built.wheel_files() - about == {name for name in source if "__pycache__" not in name}


@pytest.mark.parametrize("pattern", NEEDED)
def test_the_wheel_holds_what_is_read_at_run_time(built: Built, pattern: str) -> None:
    here = {str(file.relative_to(SOURCE)) for file in (SOURCE / "unface").glob(pattern)}
    assert here
    assert here <= built.wheel_files()


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert next(version for version in versions if version != "Unreleased") == unface.__version__


def test_both_files_bear_the_version_of_the_source(built: Built) -> None:
    assert built.sdist.name == f"unface-{unface.__version__}.tar.gz"
    assert built.wheel.name == f"unface-{unface.__version__}-py3-none-any.whl"


def test_the_source_distribution_holds_every_tracked_file(built: Built) -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout, so there are no tracked files to compare with")
    tracked = {name for name in listing.stdout.split("\0") if (ROOT / name).is_file()}
    assert tracked - built.sdist_files() == set()


def test_no_bytecode_or_cache_is_published(built: Built) -> None:
    names = built.wheel_files() | built.sdist_files()
    assert [name for name in names if re.search(r"\.pyc$|__pycache__|_cache/|\.hypothesis/|\.venv/", name)] == []


@pytest.fixture(scope="module")
def programs(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment: nothing of this checkout is in sight, what is not in the wheel or required by it fails."""
    fresh = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", str(fresh))
    python = str(fresh / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", python]
    reach = subprocess.run(
        [*pip, "download", "--no-deps", "threadpoolctl"], cwd=fresh, capture_output=True, check=False
    )
    if reach.returncode:
        pytest.skip("no package index is reachable, so there is nothing to install the requirements from")
    # half the time would go into bytecode that is never run
    run(*pip, "install", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(built.wheel), cwd=fresh)
    return fresh / "bin"


@only_thorough
def test_without_extras_it_installs_and_works(programs: Path, tmp_path: Path) -> None:
    assert run(str(programs / "unface"), "--version", cwd=tmp_path) == f"unface {unface.__version__}\n"
    assert "people" in run(str(programs / "unface"), "demo", "--help", cwd=tmp_path)
    assert "sface" in run(str(programs / "unface"), "models", "list", cwd=tmp_path)
    assert run(str(programs / "python"), "-c", USE, cwd=tmp_path) == "480\n"


@only_thorough
def test_public_names_load_without_a_warning(programs: Path, tmp_path: Path) -> None:
    every = "import unface; print(len([getattr(unface, name) for name in unface.__all__]))"
    loaded = run(str(programs / "python"), "-W", "error", "-c", every, cwd=tmp_path)
    assert loaded == f"{len(unface.__all__)}\n"


@only_thorough
def test_the_types_of_public_names_reach_a_strict_checker(programs: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; pip install 'unface[dev]'")
    (tmp_path / "typed.py").write_text(TYPED, encoding="utf-8")
    checker = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(programs / "python")]
    run(*checker, "typed.py", cwd=tmp_path)
    (tmp_path / "typed.py").write_text(TYPED.replace(": float =", ": str ="), encoding="utf-8")
    wrong = subprocess.run([*checker, "typed.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.stdout.count("error: Incompatible types in assignment") == 1, wrong.stdout


def run(*command: str, cwd: Path = ROOT) -> str:
    """What a command prints; a failure shows all of it."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
