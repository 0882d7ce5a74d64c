"""If this fails, docs/architecture.md is not what the code says; run `make figures`."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs import pictures as drawn
from studies.measured import read_findings

from tests.test_architecture import LEVELS

PAGE = drawn.HERE / "architecture.md"


def test_the_picture_shows_the_imports_there_are() -> None:
    assert drawn.ARCHITECTURE.read_text(encoding="utf-8") == drawn.architecture()


def test_the_picture_of_erasers_shows_the_recorded_rates() -> None:
    picture = drawn.ERASURE.read_text(encoding="utf-8")
    assert picture == drawn.erasure()
    assert len(re.findall(r"<title>[\w-]+, ISP: ", picture)) == 12


def test_the_frontier_shows_every_recorded_strength_and_no_label_covers_another() -> None:
    picture = drawn.FRONTIER.read_text(encoding="utf-8")
    assert picture == drawn.frontier()
    tables = read_findings("frontier").tables
    swept = [name for name in tables if f"{name}, low rates" in tables]
    recorded = [row for name in swept for part in ("", ", strengths between") if name + part in tables
                for row in tables[name + part].rows]  # fmt: skip
    assert len(swept) == 6
    assert picture.count(" linked, ") == len(recorded)
    found = re.findall(r'<text class="keeper strength" x="([\d.]+)" y="([\d.]+)">([^<]+)', picture)
    assert len(found) == sum(str(row[0]).startswith("keeper") for row in recorded)
    # A letter of 11 pixels is six wide or less.
    boxes = [(float(x), float(y), float(x) + 6 * len(text), float(y) + 11) for x, y, text in found]
    covered = [
        (one, other) for at, one in enumerate(boxes) for other in boxes[:at]
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]  # fmt: skip
    assert covered == []


def test_the_picture_of_releases_shows_every_recorded_generator() -> None:
    picture = drawn.RELEASE.read_text(encoding="utf-8")
    assert picture == drawn.release()
    rows = read_findings("release").tables["dose"].rows
    assert len(re.findall(r"<title>(?:arcface-mbf|pixels|sscd-int8)", picture)) == len(rows)


def test_the_heat_map_of_attacks_shows_the_recorded_success() -> None:
    picture = drawn.INVERSION.read_text(encoding="utf-8")
    assert picture == drawn.inversion()
    tables = [table for name in ("inversion", "inversion_whole") for table in read_findings(name).tables.items()]
    cells = {
        tuple(row[:4]) for name, table in tables if name in ("success", "templates") for row in table.rows
        if row[0] == "photographs"
    }  # fmt: skip
    assert picture.count("people, interval") == len(cells)


def test_the_picture_of_protected_sets_shows_every_method_and_share_that_was_measured() -> None:
    picture = drawn.PROTECTION.read_text(encoding="utf-8")
    assert picture == drawn.protection()
    tables = read_findings("facemae").tables
    measured = {(row[0], row[1]) for name in ("methods", "curve") for row in tables[name].rows}
    assert picture.count(": accuracy ") == len(measured)


def test_the_table_names_the_rooms_there_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(drawn.rooms()) in page
    assert re.findall(r"^\| \d+ \| \[`(\w+)`\]", page, flags=re.MULTILINE) == drawn.ROOMS


def test_every_link_of_the_page_leads_to_a_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [link for link in links if not (drawn.HERE / link).exists()] == []
    assert len(links) > len(LEVELS)


def test_every_dot_is_right_of_the_stairs() -> None:
    sides = [(float(dot.attrib["cx"]) - drawn.LEFT, float(dot.attrib["cy"]) - drawn.TOP) for dot in circles()]
    assert len(sides) > len(LEVELS)
    assert [(x, y) for x, y in sides if x <= y] == []


def test_dots_are_the_imports_of_a_room_worked_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "panel.py").write_text("from unface.pairs import sweep\nfrom unface.probe import kshot\n")
    (tmp_path / "probe" / "late.py").write_text("def run():\n    import unface.data.split\n")
    monkeypatch.setattr(drawn, "SOURCE", tmp_path)
    assert drawn.imports("probe") == {"pairs", "data"}


def circles() -> list[ElementTree.Element]:
    return ElementTree.fromstring(drawn.architecture()).findall(".//{http://www.w3.org/2000/svg}circle")
