"""If these fail, a room may import something above or beside it, and rooms no longer read from the bottom up.

The layers stand in pyproject.toml, and ``make lint`` checks them with indirect imports; here that check is checked.
"""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "unface"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LAYERS: list[list[str]] = [[room.strip() for room in layer.split("|")] for layer in CONTRACTS[0]["layers"]]
LEVELS = {room: level for level, rooms in enumerate(reversed(LAYERS)) for room in rooms}
LEVELS |= {"__init__": len(LAYERS), "__main__": len(LAYERS)}


def imported_rooms(file: Path, source: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of unface anywhere in the file, also inside functions."""
    package = ("unface", *file.relative_to(source).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from ((node.lineno, room) for room in _rooms_of(tuple(name.name.split(".")), source))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            for name in node.names:
                yield from ((node.lineno, room) for room in _rooms_of((*base, name.name), source))


def _rooms_of(dotted: tuple[str, ...], source: Path) -> Iterator[str]:
    """The room a dotted name lies in; a name taken from ``unface`` itself comes from ``__init__``."""
    if dotted[0] != "unface":
        return
    top = dotted[1] if len(dotted) > 1 else "__init__"
    is_module = len(dotted) > 2 or top in LEVELS or (source / top).is_dir() or (source / f"{top}.py").is_file()
    yield top if is_module else "__init__"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter with the project's contracts on the package in ``folder``."""
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    command = [sys.executable, "-c", code, "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@pytest.mark.parametrize(
    ("file", "text", "broken"),
    [
        (
            "pairs/blocks.py",
            "from unface.metrics import Interval",
            "unface.pairs is not allowed to import unface.metrics",
        ),
        (
            "probe/panel.py",
            "def later():\n    from unface.auditing import audit",
            "unface.probe is not allowed to import",
        ),
        ("gate/judge.py", "import unface.auditing.run", "unface.gate is not allowed to import"),
        ("result/words.py", "import numpy", "unface.result is not allowed to import numpy"),
        ("attic/__init__.py", "", "unface.attic"),
    ],
    ids=["beside", "above, in a function", "gate", "heavy", "no layer"],
)
def test_an_import_that_is_not_allowed_is_found(tmp_path: Path, file: str, text: str, broken: str) -> None:
    copytree(SOURCE, tmp_path / "unface", ignore=lambda _, names: [name for name in names if not _is_source(name)])
    target = tmp_path / "unface" / file
    target.parent.mkdir(exist_ok=True)
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(f"{before}\n{text}\n", encoding="utf-8")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout
    assert broken in " ".join(done.stdout.split())


def _is_source(name: str) -> bool:
    return name.endswith(".py") or ("." not in name and name != "__pycache__")
