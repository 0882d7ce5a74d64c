"""Draws the pictures of the pages: python -m docs.pictures DEMO

docs/architecture.svg from the rooms and imports there are, docs/erasure.svg, docs/frontier.svg, docs/release.svg,
docs/inversion.svg and docs/protection.svg from the records of the studies, docs/audit.svg and docs/report.png from what
``unface demo`` left in DEMO. The last needs Debian's chromium, and Playwright. ``make figures`` does this too.
"""

import ast
import io
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from studies import tables
from studies.measured import read_findings
from studies.record import read_records
from tests.test_architecture import LEVELS, SOURCE, imported_rooms

from unface.data import EMBEDDED_ENCODERS
from unface.report.html import write_report
from unface.report.side_by_side import print_side_by_side
from unface.result.audit import AuditResult
from unface.result.words import percent

HERE = Path(__file__).resolve().parent
ARCHITECTURE = HERE / "architecture.svg"
SHOWN = "sscd-int8"
ROOMS = sorted(LEVELS, key=lambda room: (-LEVELS[room], room))  # top to bottom, and left to right

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

ERASURE = HERE / "erasure.svg"
AUDITS, RATE = "_celeba9k_apart", 1e-4
MARKS = {"raw": "raw", "leace": "LEACE", "pca": "label-free PCA", "isp": "ISP"}  # the last one is drawn on top
LINKED_LOOKS = """
text { font: 14px system-ui, sans-serif; fill: #1f2328 } .paper { fill: #ffffff } .line { stroke: #d0d7de }
.raw { fill: #1f2328 } .isp { fill: #0072b2 } .leace { fill: #d55e00 } .pca { fill: #009e73 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .line { stroke: #30363d } .raw { fill: #e6edf3 } .isp { fill: #58a6ff }
}
"""

FRONTIER = HERE / "frontier.svg"
ALBUMS, COPIES = "2 against 3", ("harder copies found", "copies found")
ERASERS = {
    "raw": "raw", "random": "random subspace", "pca": "label-free PCA", "isp": "ISP", "leace": "LEACE",
    "keeper": "keeper",
}  # fmt: skip
FRONTIER_LOOKS = (
    LINKED_LOOKS
    + """
.leace { fill: #cc79a7 } .keeper { fill: #d55e00 } .random { fill: #8c959f } .strength { font-size: 11px }
.join { fill: none } .join.raw { stroke: #8c959f } .join.isp { stroke: #0072b2 } .join.pca { stroke: #009e73 }
.join.leace { stroke: #cc79a7 } .join.keeper { stroke: #d55e00 } .join.random { stroke: #8c959f }
"""
)

RELEASE = HERE / "release.svg"
DOSED = {"arcface-mbf": "isp", "pixels": "leace", "sscd-int8": "pca"}  # encoders, and a mark
PLANTED = {
    "jpeg": "face", "mirror": "face", "crop": "face",
    "eyes transplant": "eyes", "nose transplant": "nose", "mouth transplant": "mouth",
}  # fmt: skip

PROTECTION = HERE / "protection.svg"
PROTECTED = {"FaceMAE": "isp", "plain MAE": "leace", "originals": "raw"}  # and a mark; others are as PCA
_BESIDE = {"masks": (-12, -6), "mean-colour masks": (-12, 22), "plain MAE": (12, 20), "FaceMAE 50 %": (-12, -4)}
"""Where labels stand that others would cover: pixels to the right of the mark, and below it."""

INVERSION = HERE / "inversion.svg"
SPACES = {"raw": "raw", "isp": "ISP", "keeper": "keeper", "pca": "label-free PCA", "random": "random"}
_SHADES = ((238, 0), (242, 114), (246, 178))  # of nothing and of everything: red, green, blue
HEAT_LOOKS = """
text { font: 14px system-ui, sans-serif; fill: #1f2328 } .paper { fill: #ffffff } .none { fill: none; stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .none { stroke: #30363d }
}
text.dark { fill: #000000 } text.light { fill: #ffffff }
"""


def main() -> None:
    """All eight."""
    demo = Path(sys.argv[1])
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
    ERASURE.write_text(erasure(), encoding="utf-8")
    FRONTIER.write_text(frontier(), encoding="utf-8")
    RELEASE.write_text(release(), encoding="utf-8")
    INVERSION.write_text(inversion(), encoding="utf-8")
    PROTECTION.write_text(protection(), encoding="utf-8")
    draw_terminal(demo)
    draw_report(demo / SHOWN)


def draw_terminal(demo: Path) -> None:
    """Print the demo's audits as a terminal of 88 columns would show them, and save what it looks like."""
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$ unface demo[/bold]\n")
    print_side_by_side({name: AuditResult.load(demo / name) for name in EMBEDDED_ENCODERS}, console)
    # without rich's web fonts: a picture in a repository fetches nothing
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(HERE / "audit.svg"), title="unface", code_format=plain)


def draw_report(audit: Path) -> None:
    """The first screen of the page in a browser 900 pixels wide."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as tools:
        page_file = write_report(AuditResult.load(audit), Path(folder) / "report.html")
        browser = tools.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 800})
        page.goto(page_file.as_uri())
        page.screenshot(path=str(HERE / "report.png"))
        browser.close()


def architecture() -> str:
    """Rooms along a diagonal, highest first; what a room imports is to its right, who imports it above it."""
    width, height = LEFT + SIDE + 50, TOP + SIDE + 16
    return "\n".join(
        [
            *canvas(width, height, "Which room of unface imports which", LOOKS),
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
            title = f"<title>{room} imports {ROOMS[column]}</title>"
            yield f'<circle class="dot" cx="{x}" cy="{y}" r="4.5">{title}</circle>'


def imports(room: str) -> set[str]:
    """The other rooms that any file of this one imports, also inside functions."""
    files = (SOURCE / room).rglob("*.py") if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    return {other for file in files for _, other in imported_rooms(file, SOURCE)} - {room}


def rooms() -> list[str]:
    """The table of docs/architecture.md: every room and the first line of its docstring."""
    lines = ["| level | room | holds |", "|---|---|---|"]
    for room in ROOMS:
        is_folder = (SOURCE / room).is_dir()
        source = SOURCE / room / "__init__.py" if is_folder else SOURCE / f"{room}.py"
        docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
        assert docstring, f"{source.relative_to(SOURCE)} has no docstring"
        holds, path = docstring.splitlines()[0].replace("``", "`"), room if is_folder else f"{room}.py"
        lines.append(f"| {LEVELS[room]} | [`{room}`](../src/unface/{path}) | {holds} |")
    return lines


def erasure() -> str:
    """Worst-case TAR of each encoder on a log scale, raw and after erasure, from the records of the study."""
    records = read_records()
    rows = {
        name.removesuffix(AUDITS): {space: tables.worst_tar(records, name, space, RATE) for space in MARKS}
        for name in records
        if name.endswith(AUDITS)
    }
    left, top, row, width = 180, 80, 30, 640
    height = top + row * len(rows) + 20

    def x(share: float) -> float:
        return left + width * (math.log10(max(share, 1e-4)) + 4) / 4

    title = "Share of photo pairs linked at FAR 1e-4, raw and after erasure"
    lines = canvas(left + width + 40, height, title, LINKED_LOOKS)
    for at, (space, name) in enumerate(MARKS.items()):
        lines += [mark(space, left + 8 + 150 * at, 20, name), f'<text x="{left + 22 + 150 * at}" y="25">{name}</text>']
    for power, label in zip(range(-4, 1), ("0.01 % (chance)", "0.1 %", "1 %", "10 %", "100 %"), strict=True):
        place = x(10.0**power)
        lines.append(f'<path class="line" d="M{place:.1f} {top - 12}V{height - 12}"/>')
        lines.append(f'<text x="{place:.1f}" y="{top - 20}" text-anchor="middle">{label}</text>')
    for at, (name, shares) in enumerate(sorted(rows.items(), key=lambda one: -one[1]["raw"])):
        y = top + row * at + row / 2
        ends = [x(share) for share in shares.values()]
        lines.append(f'<text x="{left - 14}" y="{y + 5:.1f}" text-anchor="end">{name}</text>')
        lines.append(f'<path class="line" d="M{min(ends):.1f} {y}H{max(ends):.1f}"/>')
        for space, share in shares.items():
            lines.append(mark(space, x(share), y, f"{name}, {MARKS[space]}: {percent(share)}"))
    return "\n".join([*lines, "</svg>\n"])


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Strength:
    """An eraser at one strength: shares of harder copies missed, and of people whose albums are linked."""

    eraser: str
    setting: str
    missed: float
    linked: float
    low: float
    high: float


def frontier() -> str:
    """A panel for each encoder: albums that attackers link against copies missed, both on log scales."""
    tables = read_findings("frontier").tables
    encoders = {name: _strengths(name) for name in tables if ALBUMS in tables[name].columns and "," not in name}
    width, height, left, top = 400, 280, 62, 84
    across, down = width + 90, height + 96
    side = left + across * 2, top + down * (-(-len(encoders) // 2))
    title = "People linked by albums at FAR 1e-4 against harder copies missed, by encoder and eraser"
    lines = canvas(side[0], side[1], title, FRONTIER_LOOKS)
    for at, (eraser, name) in enumerate(ERASERS.items()):
        lines += [mark(eraser, left + 8 + 160 * at, 22, ""), f'<text x="{left + 20 + 160 * at}" y="27">{name}</text>']
    for at, (encoder, strengths) in enumerate(encoders.items()):
        x, y = left + across * (at % 2), top + down * (at // 2)
        lines += _frontier_panel(encoder, strengths, x, y, width, height)
    return "\n".join([*lines, "</svg>\n"])


def _strengths(encoder: str) -> list[Strength]:
    """Of one encoder, from the record; the least that is drawn is 0.01 %."""
    tables, found = read_findings("frontier").tables, []
    for name in (encoder, f"{encoder}, strengths between"):
        table = tables.get(name)
        columns = [] if table is None else list(table.columns)
        copies = next((one for one in COPIES if one in columns), None)
        if table is None or copies is None:
            continue
        for row in table.rows:
            cells: dict[str, Any] = dict(zip(columns, row, strict=True))
            (linked, low, high), (kept, *_) = cells[ALBUMS], cells[copies]
            eraser, _, setting = str(cells["space"]).partition(" ")
            shares = [max(share, 1e-4) for share in (1 - kept, linked, low, high)]
            found.append(Strength(eraser, setting, *shares))
    return found


def _frontier_panel(
    encoder: str, strengths: Sequence[Strength], left: int, top: int, width: int, height: int
) -> list[str]:
    x = _log_axis([one.missed for one in strengths], left, left + width)
    y = _log_axis([end for one in strengths for end in (one.low, one.high)], top + height, top)
    lines = [f'<text x="{left + width / 2}" y="{top - 14}" text-anchor="middle" font-weight="600">{encoder}</text>']
    for share in _ticks([one.missed for one in strengths]):
        lines.append(f'<path class="line" d="M{x(share):.1f} {top}v{height}"/>')
        lines.append(f'<text x="{x(share):.1f}" y="{top + height + 18}" text-anchor="middle">{100 * share:g} %</text>')
    for share in _ticks([end for one in strengths for end in (one.low, one.high)]):
        lines.append(f'<path class="line" d="M{left} {y(share):.1f}h{width}"/>')
        lines.append(f'<text x="{left - 6}" y="{y(share) + 5:.1f}" text-anchor="end">{100 * share:g} %</text>')
    lines.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">copies missed</text>')
    lines.append(f'<text x="{left - 54}" y="{top - 14}">people linked</text>')
    for eraser, name in ERASERS.items():
        ours = sorted((one for one in strengths if one.eraser == eraser), key=lambda one: one.missed)
        if ours:
            path = "L".join(f"{x(one.missed):.1f} {y(one.linked):.1f}" for one in ours)
            bars = "".join(f"M{x(one.missed):.1f} {y(one.low):.1f}V{y(one.high):.1f}" for one in ours)
            lines.append(f'<path class="join {eraser}" d="M{path}{bars}"/>')
        for one in ours:
            said = f"{encoder}, {name} {one.setting}: {percent(one.linked)} linked, {percent(one.missed)} missed"
            lines.append(mark(eraser, x(one.missed), y(one.linked), said))
    marks = [(x(one.missed), y(one.linked)) for one in strengths]
    named = [(one.setting, x(one.missed), y(one.linked)) for one in strengths if one.eraser == "keeper"]
    return [*lines, *_labels(named, marks, (left, top, left + width, top + height))]


def _log_axis(shares: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """From a share to a place, with room at both ends."""
    low, high = math.log10(min(shares)), math.log10(max(shares))
    room = 0.06 * (high - low)
    return lambda share: start + (end - start) * (math.log10(share) - low + room) / (high - low + 2 * room)


def _ticks(shares: Sequence[float]) -> list[float]:
    """Round shares between the least and the most: 1, 2, 5 of each power of ten, or the powers alone if they are many;
    every tenth where those are too few."""
    low, high = min(shares), max(shares)
    for steps in ((1,), (1, 2, 5), tuple(range(1, 10))):
        every = [step * 10.0**power for power in range(-4, 1) for step in steps]
        found = [share for share in every if low <= share <= high and share <= 1]
        if len(found) >= 4:
            break
    return found


def _labels(
    named: Sequence[tuple[str, float, float]],
    marks: Sequence[tuple[float, float]],
    frame: Box,
) -> Iterator[str]:
    """Each label at the nearest place where neither it nor its line covers a mark, a label or another line.

    From right to left, and right of their marks where there is room; far ones have a line to their mark.
    """
    size, near = 14.0, 24
    marked = [(x - 7, y - 7, x + 7, y + 7) for x, y in marks]
    taken: list[Box] = []
    for text, x, y in sorted(named, key=lambda one: -one[1]):
        wide = 6.0 * len(text)
        places = [
            (distance, x + distance * math.cos(turn), y + distance * math.sin(turn))
            for turns in ((0, 2, -2, 3, 4, -4), (6, -6, 8))
            for distance in range(12, 160, 4)
            for turn in (math.pi * turn / 8 for turn in turns)
        ]
        for distance, px, py in places:
            start = px if px > x - 1 else px - wide
            box = (start, py - size / 2, start + wide, py + size / 2)
            line = [
                (x + (px - x) * part / 20, y + (py - y) * part / 20)
                for part in (range(6, 20) if distance > near else ())
            ]
            inside = frame[0] <= box[0] and box[2] <= frame[2] and frame[1] <= box[1] and box[3] <= frame[3]
            drawn: list[Box] = [(at - 1, down - 1, at + 1, down + 1) for at, down in line]
            if inside and not any(_meet(one, other) for one in (box, *drawn) for other in (*marked, *taken)):
                break
        taken += [box, *drawn]
        if line:
            yield f'<path class="join keeper" d="M{x:.1f} {y:.1f}L{px:.1f} {py:.1f}"/>'
        yield f'<text class="keeper strength" x="{start:.1f}" y="{py + 4:.1f}">{text}</text>'


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def release() -> str:
    """Left: how far a generator exposes its training people, by pictures and passes. Right: planted people found."""
    top, bottom, width, height = 70, 330, 350, 400
    title = "Exposure of training people by training pictures, and share of planted people that are listed"
    lines = [
        *canvas(1000, height, title, LINKED_LOOKS + " .join { fill: none; stroke: #8c959f }"),
        '<text x="60" y="24">AUC: training people nearer to drawn faces than others</text>',
        '<text x="560" y="24">Planted people who are listed, by the share planted</text>',
    ]

    def panel(
        left: int, places: Sequence[str], levels: Mapping[float, str], y: Callable[[float], float]
    ) -> list[float]:
        for value, label in levels.items():
            lines.append(f'<path class="line" d="M{left} {y(value):.1f}h{width}"/>')
            lines.append(f'<text x="{left - 8}" y="{y(value) + 5:.1f}" text-anchor="end">{label}</text>')
        found = [left + width * (at + 0.5) / len(places) for at in range(len(places))]
        for place, label in zip(found, places, strict=True):
            lines.append(f'<text x="{place:.1f}" y="{bottom + 22}" text-anchor="middle">{label}</text>')
        return found

    def curve(
        points: Sequence[tuple[float, Sequence[float]]], y: Callable[[float], float], kind: str, name: str
    ) -> None:
        """(x, (value, low, high)) each."""
        if not points:
            return
        lines.append(f'<path class="join" d="M{"L".join(f"{x:.1f} {y(value[0]):.1f}" for x, value in points)}"/>')
        for x, (value, low, high) in points:
            lines.append(f'<path class="join" d="M{x:.1f} {y(low):.1f}V{y(high):.1f}"/>')
            lines.append(mark(kind, x, y(value), f"{name}: {value:.3g} [{low:.3g}, {high:.3g}]"))

    def auc_y(value: float) -> float:
        return bottom - (bottom - top) * (value - 0.35) / 0.65

    rows: list[list[Any]] = read_findings("release").tables["dose"].rows
    generators = [tuple(row[1:4]) for row in rows if row[0] == "arcface-mbf"]  # pictures, steps, passes
    names = [f"{n:,}" if passes else "control" for n, _, passes in generators]
    places = panel(60, names, {0.5: "0.5", 0.75: "0.75", 1.0: "1"}, auc_y)
    for place, (_, _, passes) in zip(places, generators, strict=True):
        if passes:
            lines.append(f'<text x="{place:.1f}" y="{bottom + 40}" text-anchor="middle">{passes:.0f} ×</text>')
    for at, (encoder, kind) in enumerate(DOSED.items()):
        points = [
            (places[generators.index(tuple(row[1:4]))] + 8 * (at - 1), row[16]) for row in rows if row[0] == encoder
        ]
        trained = len(points) - (encoder == "arcface-mbf")
        curve(points[:trained], auc_y, kind, encoder)
        curve(points[trained:], auc_y, kind, f"{encoder}, control")
        lines += [mark(kind, 68 + 120 * at, 48, ""), f'<text x="{80 + 120 * at}" y="53">{encoder}</text>']
    lines.append(f'<text x="60" y="{height - 8}">pictures trained on, and times each was seen</text>')

    def share_y(value: float) -> float:
        return bottom - (bottom - top) * value

    planted = read_findings("release_planted").tables["transplants"]
    column = [*planted.columns]
    places = panel(560, ["1 %", "5 %", "20 %"], {0: "0 %", 0.5: "50 %", 1: "100 %"}, share_y)
    last: dict[str, float] = {}
    for kind, view in PLANTED.items():
        values: list[Any] = [row[column.index(view)] for row in planted.rows if row[0] == kind]
        points = [*zip(places, values, strict=True)]
        curve(points, share_y, "isp" if view == "face" else "leace", f"{kind}, listed by {view}")
        last["whole pictures" if view == "face" else view] = share_y(points[-1][1][0])
    used: list[float] = []
    for name, y in sorted(last.items(), key=lambda one: one[1]):
        used.append(max([y + 5, *(other + 17 for other in used[-1:])]))
        lines.append(f'<text x="{places[-1] + 14:.1f}" y="{used[-1]:.1f}">{name}</text>')
    lines.append(f'<text x="560" y="{height - 8}">share of 500 faces; eyes, nose, mouth are transplants</text>')
    return "\n".join([*lines, "</svg>\n"])


def inversion() -> str:
    """Success on other photos by attack, encoder and space; a cell that was not run is empty.

    What only the earlier run with the whole generator has is taken from that.
    """
    now, whole = (read_findings(name).tables for name in ("inversion", "inversion_whole"))
    columns = list(now["success"].columns)
    shares: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for row in [*now["success"].rows, *whole["success"].rows, *whole["templates"].rows]:
        one: dict[str, Any] = dict(zip(columns, row, strict=True))
        if one["people"] == "photographs" and one["other"] is not None:
            value, low, high = one["other"]
            said = f"{one['targets']:,} people, interval {low:.1f} to {high:.1f} %"
            shares.setdefault((one["attack"], one["encoder"]), {}).setdefault(one["space"], (value, said))
    left, top, row_height, width = 270, 44, 32, 108
    height, side = top + row_height * len(shares) + 10, left + width * len(SPACES) + 10
    title = "Reconstructions that pass for the person on other photos, in percent, by attack and space"
    lines = canvas(side, height, title, HEAT_LOOKS)
    for at, name in enumerate(SPACES.values()):
        lines.append(f'<text x="{left + width * (at + 0.5):.0f}" y="{top - 16}" text-anchor="middle">{name}</text>')
    for down, ((attack, encoder), cells) in enumerate(shares.items()):
        y = top + row_height * down
        lines.append(f'<text x="{left - 14}" y="{y + 20}" text-anchor="end">{attack} · {encoder}</text>')
        for at, space in enumerate(SPACES):
            box = f'x="{left + width * at + 1}" y="{y + 1}" width="{width - 2}" height="{row_height - 2}"'
            if space not in cells:
                lines.append(f'<rect class="none" {box}><title>not run</title></rect>')
                continue
            value, said = cells[space]
            red, green, blue = (round(ends[0] + (ends[1] - ends[0]) * value / 100) for ends in _SHADES)
            lines.append(f'<rect {box} fill="#{red:02x}{green:02x}{blue:02x}"><title>{said}</title></rect>')
            ink = "light" if value > 50 else "dark"
            middle = left + width * (at + 0.5)
            lines.append(f'<text class="{ink}" x="{middle:.0f}" y="{y + 20}" text-anchor="middle">{value:.1f}</text>')
    return "\n".join([*lines, "</svg>\n"])


def protection() -> str:
    """Utility against risk of protected face sets, with intervals; FaceMAE as a curve over the share it hides."""
    tables = read_findings("facemae").tables
    rows: list[list[Any]] = [*tables["methods"].rows, *(row for row in tables["curve"].rows if row[1] != 0.75)]
    left, top, width, height = 64, 16, 560, 300

    def x(risk: float) -> float:
        return left + width * risk

    def y(accuracy: float) -> float:
        return top + height * (0.84 - accuracy) / 0.18

    title = "Accuracy of a recogniser trained on a release, against how many people an attacker finds in it"
    lines = canvas(left + width + 130, top + height + 52, title, LINKED_LOOKS)
    for share in (0, 0.25, 0.5, 0.75, 1):
        lines.append(f'<path class="line" d="M{x(share):.0f} {top}V{top + height}"/>')
        lines.append(f'<text x="{x(share):.0f}" y="{top + height + 20}" text-anchor="middle">{share:.0%}</text>')
    for accuracy in (0.66, 0.70, 0.74, 0.78, 0.82):
        lines.append(f'<path class="line" d="M{left} {y(accuracy):.1f}H{left + width}"/>')
        lines.append(f'<text x="{left - 10}" y="{y(accuracy) + 5:.1f}" text-anchor="end">{accuracy:.0%}</text>')
    lines.append(f'<text x="{left}" y="{top + height + 42}">people found by the worst attacker (R, K = 2)</text>')
    lines.append(f'<text x="{left + 8}" y="{top + 14}">accuracy on LFW</text>')
    curve = sorted((row for row in rows if row[0] == "FaceMAE"), key=lambda row: float(row[1]))
    path = "L".join(f"{x(row[6][0]):.1f} {y(row[3][0]):.1f}" for row in curve)
    lines.append(f'<path class="line" d="M{path}" fill="none" stroke-width="2"/>')
    for row in rows:
        name, hidden, (accuracy, low, high), (risk, least, most) = row[0], row[1], row[3], row[6]
        across, up = f"M{x(least):.1f} {y(accuracy):.1f}H{x(most):.1f}", f"M{x(risk):.1f} {y(low):.1f}V{y(high):.1f}"
        lines.append(f'<path class="line" stroke-width="2" d="{across}{up}"/>')
        said = f"{name}: accuracy {accuracy:.1%}, found {risk:.1%}".replace("%", " %")
        lines.append(mark(PROTECTED.get(name, "pca"), x(risk), y(accuracy), said))
        label = f"{name} {hidden:.0%}".replace("%", " %") if name == "FaceMAE" else name
        right, down = _BESIDE.get(label, (12, 5))
        anchor = 'text-anchor="end" ' if right < 0 else ""
        lines.append(f'<text {anchor}x="{x(risk) + right:.1f}" y="{y(accuracy) + down:.1f}">{label}</text>')
    return "\n".join([*lines, "</svg>\n"])


def canvas(width: int, height: int, title: str, looks: str) -> list[str]:
    """How every picture begins: its size, what it shows, and the paper."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{looks}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]


def mark(space: str, x: float, y: float, title: str) -> str:
    """A disc, square, triangle, hexagon, cross or diamond, distinct without colour."""
    shapes = {
        "raw": "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0", "leace": "M-5 -5H5V5H-5z", "pca": "M0 -6L6 5H-6z",
        "keeper": "M0 -7L6 -3V4L0 7L-6 4V-3z", "random": "M-6 -2H-2V-6H2V-2H6V2H2V6H-2V2H-6z",
    }  # fmt: skip
    shape = shapes.get(space, "M0 -7L7 0L0 7L-7 0z")
    return f'<path class="{space}" transform="translate({x:.1f} {y:.1f})" d="{shape}"><title>{title}</title></path>'


if __name__ == "__main__":
    main()
