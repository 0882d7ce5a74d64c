"""Files of recorded values: a tree with one name or value a line, which a person can read and git can compare."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.golden.flatten import Path as NamePath
from tests.golden.flatten import Value

VALUES = Path(__file__).parent / "values"
_VERSION = "unface numbers guard 1"


class Damaged(Exception):
    """A file of the guard that cannot be used, and the command that makes it."""


def file_of(case: str) -> Path:
    """Where the values of a case are kept."""
    return VALUES / f"{case}.txt"


def write(case: str, values: Mapping[NamePath, Value]) -> None:
    """Write the values of a case, each name once."""
    lines = [f"# {_VERSION}: {case}"]
    before: NamePath = ()
    for path in sorted(values):
        same = 0
        while same < min(len(path) - 1, len(before)) and path[same] == before[same]:
            same += 1
        lines += [" " * depth + _quoted(path[depth]) for depth in range(same, len(path) - 1)]
        lines.append(" " * (len(path) - 1) + _quoted(path[-1]) + "\t" + text_of(values[path]))
        before = path[:-1]
    lines.append(f"# {len(values)} values")
    VALUES.mkdir(exist_ok=True)
    file_of(case).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(case: str) -> dict[NamePath, Value]:
    """Read the values of a case, or say in one line what is wrong with the file."""
    file = file_of(case)
    make = f"'python -m tests.golden --record {case}' makes it"
    if not file.exists():
        raise Damaged(f"{file.name}: there is no such file in tests/golden/values; {make}")
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != f"# {_VERSION}: {case}":
        raise Damaged(f"{file.name}: does not begin with '# {_VERSION}: {case}'; {make}")
    values: dict[NamePath, Value] = {}
    try:
        values.update(_leaves(lines[1:-1]))
    except ValueError as error:
        raise Damaged(f"{file.name}: is damaged ({error}); {make}") from None
    if lines[-1] != f"# {len(values)} values":
        raise Damaged(f"{file.name}: holds {len(values)} values and ends with {lines[-1][:40]!r}; {make}")
    return values


def _leaves(lines: list[str]) -> Iterator[tuple[NamePath, Value]]:
    path: list[str] = []
    for number, line in enumerate(lines, 2):
        name, tab, value = line.partition("\t")
        depth = len(name) - len(name.lstrip(" "))
        if depth > len(path):
            raise ValueError(f"line {number}")
        path[depth:] = [_unquoted(name[depth:])]
        if tab:
            yield tuple(path), json.loads(value)


def text_of(value: Value) -> str:
    """A value as one line of JSON, floats to twelve digits."""
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, float) and math.isfinite(value):
        text = f"{value:.12g}"
        return text if set(text) & set(".e") else text + ".0"
    return json.dumps(value, ensure_ascii=False)


def _quoted(name: str) -> str:
    """A name that would be taken for something else is written as JSON."""
    plain = name.isprintable() and name and name[0] not in ' "#'
    return name if plain or name == "#order" else json.dumps(name, ensure_ascii=True)


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
