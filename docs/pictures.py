"""Draws the pictures of the pages: python -m docs.pictures DEMO

docs/architecture.svg from the rooms and imports there are, docs/erasure.svg, docs/release.svg, docs/inversion.svg and
docs/protection.svg from the records of the studies, docs/audit.svg and docs/report.png from what ``unface demo`` left
in DEMO. The last needs Debian's chromium, and Playwright. ``make figures`` does this too.
"""

import ast
import io
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """All seven."""
    demo = Path(sys.argv[1])
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
    ERASURE.write_text(erasure(), encoding="utf-8")
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


if __name__ == "__main__":
    main()


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

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 40} {height}" role="img">',
        "<title>Share of photo pairs linked at FAR 1e-4, raw and after erasure</title>",
        f"<style>{LINKED_LOOKS}</style>",
        f'<rect class="paper" width="{left + width + 40}" height="{height}"/>',
    ]
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


def release() -> str:
    """Left: how far a generator exposes its training people, by pictures and passes. Right: planted people found."""
    top, bottom, width, height = 70, 330, 350, 400
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" role="img">',
        "<title>Exposure of training people by training pictures, and share of planted people that are listed</title>",
        f"<style>{LINKED_LOOKS} .join {{ fill: none; stroke: #8c959f }}</style>",
        f'<rect class="paper" width="1000" height="{height}"/>',
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
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {height}" role="img">',
        "<title>Reconstructions that pass for the person on other photos, in percent, by attack and space</title>",
        f"<style>{HEAT_LOOKS}</style>",
        f'<rect class="paper" width="{side}" height="{height}"/>',
    ]
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

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 130} {top + height + 52}" role="img">',
        "<title>Accuracy of a recogniser trained on a release, against how many people an attacker finds in it</title>",
        f"<style>{LINKED_LOOKS}</style>",
        f'<rect class="paper" width="{left + width + 130}" height="{top + height + 52}"/>',
    ]
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


def mark(space: str, x: float, y: float, title: str) -> str:
    """A disc, square, triangle or diamond, distinct without colour."""
    shapes = {"raw": "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0", "leace": "M-5 -5H5V5H-5z", "pca": "M0 -6L6 5H-6z"}
    shape = shapes.get(space, "M0 -7L7 0L0 7L-7 0z")
    return f'<path class="{space}" transform="translate({x:.1f} {y:.1f})" d="{shape}"><title>{title}</title></path>'
