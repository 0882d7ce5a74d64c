"""If this fails, a room imports something above or beside it, and the rooms no longer read from the bottom up."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "unface"

LEVELS = {
    "_version": 0,
    "errors": 0,
    "progress": 0,
    "seeds": 0,
    "threads": 0,
    "data": 1,
    "output": 1,
    "result": 1,
    "linear": 2,
    "metrics": 2,
    "models": 2,
    "moments": 2,
    "pairs": 2,
    "erase": 3,
    "faces": 3,
    "prior": 3,
    "probe": 3,
    "swap": 3,
    "utility": 3,
    "verification": 3,
    "encode": 4,
    "scale": 4,
    "attribute": 5,
    "auditing": 6,
    "judge": 5,
    "stores": 5,
    "synth": 6,
    "gate": 7,
    "report": 7,
    "cli": 8,
    "__init__": 9,
    "__main__": 9,
}
# Of the rooms of level 1, those with a file format write it through this one.
BELOW_ITS_LEVEL = "output"


def test_imports_only_go_down() -> None:
    assert list(violations(SOURCE)) == []


def violations(source: Path) -> Iterator[str]:
    """One sentence for each file in no known room and each import of a room that is not lower."""
    for file in sorted(source.rglob("*.py")):
        where = file.relative_to(source)
        room = where.parts[0].removesuffix(".py")
        if room not in LEVELS:
            yield f"{where}: room '{room}' has no level; add it to the table in tests/test_architecture.py"
            continue
        for line, target in imported_rooms(file, source):
            if target not in LEVELS:
                yield f"{where}:{line}: imports '{target}', which is no known room"
            elif target != room and not is_below(target, room):
                yield f"{where}:{line}: {room} (level {LEVELS[room]}) imports {target} (level {LEVELS[target]})"


def is_below(target: str, room: str) -> bool:
    levels = LEVELS[target], LEVELS[room]
    return levels[0] < levels[1] or (target == BELOW_ITS_LEVEL and levels[0] == levels[1])


def imported_rooms(file: Path, source: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of unface anywhere in the file, also inside functions."""
    package = ("unface", *file.relative_to(source).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from ((node.lineno, room) for room in rooms_of(tuple(name.name.split(".")), source))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            for name in node.names:
                yield from ((node.lineno, room) for room in rooms_of((*base, name.name), source))


def rooms_of(dotted: tuple[str, ...], source: Path) -> Iterator[str]:
    """The room a dotted name lies in; a name taken from ``unface`` itself comes from ``__init__``."""
    if dotted[0] != "unface":
        return
    top = dotted[1] if len(dotted) > 1 else "__init__"
    is_module = len(dotted) > 2 or top in LEVELS or (source / top).is_dir() or (source / f"{top}.py").is_file()
    yield top if is_module else "__init__"


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        file = root / (name.replace("__in__", "/") + ".py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    "text",
    [
        "from unface.cli import app",
        "import unface.report.table",
        "from unface import auditing",
        "from ..report import table",
        "from .. import report",
        "def later():\n    from unface.auditing import audit",
        "from unface import audit",
        "import unface",
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, text: str) -> None:
    found = list(violations(tree(tmp_path, probe__in__panel=text)))
    assert len(found) == 1
    assert found[0].startswith("probe/panel.py:")
    assert "probe (level 3) imports" in found[0]


def test_rooms_on_one_level_may_not_import_each_other(tmp_path: Path) -> None:
    found = list(violations(tree(tmp_path, pairs__in__blocks="from unface.metrics import det", metrics__in__det="")))
    assert found == ["pairs/blocks.py:1: pairs (level 2) imports metrics (level 2)"]


@pytest.mark.parametrize(
    "text",
    ["from .kshot import draw", "from unface.probe.kshot import draw", "from ..data import Split", "import numpy"],
)
def test_own_room_lower_rooms_and_other_packages_are_allowed(tmp_path: Path, text: str) -> None:
    assert list(violations(tree(tmp_path, probe__in__panel=text))) == []


def test_an_unknown_room_is_named(tmp_path: Path) -> None:
    found = list(violations(tree(tmp_path, helpers="", cli__in__main="from unface.attic.box import open")))
    assert found == [
        "cli/main.py:1: imports 'attic', which is no known room",
        "helpers.py: room 'helpers' has no level; add it to the table in tests/test_architecture.py",
    ]
