"""Redraws docs/architecture.svg and the table in docs/architecture.md from the rooms, imports and docstrings there are:

python -m docs.architecture_picture
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import BELOW_ITS_LEVEL, LEVELS, SOURCE, imported_rooms

HERE = Path(__file__).resolve().parent
PAGE = HERE / "architecture.md"
PICTURE = HERE / "architecture.svg"
ROOMS = sorted(LEVELS, key=lambda room: (-LEVELS[room], room == BELOW_ITS_LEVEL, room))  # top to bottom, left to right

CELL, LEFT, TOP = 22, 84, 100
SIDE = CELL * len(ROOMS)
LOOKS = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .level { fill: #656d76 }
.paper { fill: #ffffff } .stair { fill: #ddf4ff } .line { stroke: #d0d7de } .dot { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .level { fill: #8d96a0 }
.paper { fill: #0d1117 } .stair { fill: #12283f } .line { stroke: #30363d } .dot { fill: #58a6ff }
}
"""
LEGEND = [
    "A dot: the room of this row imports",
    "the room of this column.",
    "A step of the stairs is a level:",
    "imports only go down.",
]


def main() -> None:
    """Both."""
    PICTURE.write_text(picture(), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def picture() -> str:
    """Rooms along a diagonal, highest first; what a room imports is to its right, who imports it above it."""
    width, height = LEFT + SIDE + 50, TOP + SIDE + 16
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>Which room of unface imports which</title>",
            f"<style>{LOOKS}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            *stairs(),
            *names(),
            *dots(),
            *(f'<text x="24" y="{TOP + SIDE - 92 + 20 * n}">{line}</text>' for n, line in enumerate(LEGEND)),
            "</svg>\n",
        ]
    )


def stairs() -> Iterator[str]:
    """One square for each level: rooms of one level know nothing of each other, so that it stays empty."""
    for level in sorted(set(LEVELS.values())):
        inside = [place for place, room in enumerate(ROOMS) if LEVELS[room] == level]
        start, size = CELL * inside[0], CELL * len(inside)
        yield f'<rect class="stair" x="{LEFT + start}" y="{TOP + start}" width="{size}" height="{size}"/>'
        yield f'<text class="level" x="{LEFT + SIDE + 14}" y="{TOP + start + size / 2 + 5}">{level}</text>'
    yield f'<text class="level" x="{LEFT + SIDE + 4}" y="{TOP - 8}">level</text>'


def names() -> Iterator[str]:
    """Every room's name beside its step and above its column, with a line from one to the other."""
    for place, room in enumerate(ROOMS):
        middle = CELL * place + CELL / 2
        x, y = LEFT + middle, TOP + middle
        edge = LEFT + CELL * [LEVELS[other] for other in ROOMS].index(LEVELS[room])
        yield f'<path class="line" d="M{x} {TOP}V{y}M{edge} {y}H{LEFT + SIDE}"/>'
        yield f'<text x="{edge - 6}" y="{y + 4}" text-anchor="end">{room}</text>'
        yield f'<text transform="translate({x + 4} {TOP - 6}) rotate(-60)">{room}</text>'


def dots() -> Iterator[str]:
    for row, room in enumerate(ROOMS):
        for column in sorted(ROOMS.index(other) for other in imports(room)):
            x, y = LEFT + CELL * column + CELL / 2, TOP + CELL * row + CELL / 2
            told = f"{room} imports {ROOMS[column]}"
            yield f'<circle class="dot" cx="{x}" cy="{y}" r="4.5"><title>{told}</title></circle>'


def imports(room: str) -> set[str]:
    """The other rooms that any file of this one imports, also inside functions."""
    files = (SOURCE / room).rglob("*.py") if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    return {other for file in files for _, other in imported_rooms(file, SOURCE)} - {room}


def table() -> str:
    """Every room and the first line of its docstring."""
    lines = ["| level | room | holds |", "|---|---|---|"]
    for room in ROOMS:
        path = room if (SOURCE / room).is_dir() else f"{room}.py"
        lines.append(f"| {LEVELS[room]} | [`{room}`](../src/unface/{path}) | {first_line(room)} |")
    return "\n".join(lines)


def first_line(room: str) -> str:
    file = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert said, f"{file.relative_to(SOURCE)} has no docstring"
    return said.splitlines()[0].replace("``", "`")


def with_table(page: str) -> str:
    """The page with the table of rooms between its two comments."""
    start, end = "<!-- rooms -->\n", "<!-- /rooms -->"
    return re.sub(f"(?<={start}).*?(?={end})", lambda _: f"\n{table()}\n\n", page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
