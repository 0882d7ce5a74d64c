"""If these fail, the page about faces and surroundings shows a photograph or a name, or other numbers than its file."""

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.page.read_page import Page
from tests.report.drawn import EVIL, full, with_evil_words
from tests.report.made import full_audit, with_parts
from tests.report.made_attribution import encoder, result
from unface.auditing.attribution import Attribution
from unface.auditing.attribution.page import face_figures
from unface.errors import UnfaceError
from unface.page.charts import looks_of
from unface.report.attribution import print_attribution, render_attribution
from unface.report.html import render_report
from unface.report.table import print_audit
from unface.result.attribution import AttributionResult, require_no_attribution
from unface.result.audit import AuditResult


@cache
def page() -> Page:
    return Page(render_attribution(result("made", "second")))


@cache
def audited() -> AuditResult:
    return with_parts(full_audit(), attribution=encoder())


def rows(of: Page, caption: str) -> list[list[str]]:
    """The cells of the table under this caption."""
    region = of.one("div", role="region", **{"aria-label": caption})
    lines = [one for one in of.all("tr") if region in one.within]
    cells = [one for one in of.all("td", "th") if region in one.within]
    return [[cell.words for cell in cells if line in cell.within] for line in lines]


def test_the_table_has_the_papers_measures_with_intervals_and_denominators() -> None:
    head, first, second, *others = rows(page(), "Face against surroundings")
    more, more_first, *_ = rows(page(), "How much background it takes")
    assert head == ["encoder, space", "FII", "CPI(0)", "CPI(8)", "ΔCPI, points"]
    assert more == ["encoder, space", "σ*", "B*", "B* = 0", "B* = 1", more[-1]]
    assert first[:4] == [
        "made raw",
        "+0.300 [+0.280, +0.320] 90 pairs of 30 people",
        "10.0 % [5.0, 15.0] 8 of 80 triplets",
        "35.0 % [30.0, 40.0] 28 of 80 triplets",
    ]
    assert first[4] == "+25.0 [+23.0, +27.0] 80 triplets"
    assert more_first[1].startswith("never")
    assert more_first[2] == "0.75 [0.73, 0.77] 0.62 [0.60, 0.64] between grid points"
    assert second[0] == "made isp, 16 dimensions removed"
    assert second[1].startswith("+0.050")
    assert [row[0] for row in others] == ["second raw", "second isp, 16 dimensions removed"]


def test_what_was_left_out_is_counted_by_reason_and_nobody_is_named() -> None:
    assert rows(page(), "Left out, by reason") == [
        ["reason", "made", "second"],
        ["no face picture", "12", "12"],
        ["face at the border picture", "8", "8"],
        ["the donor looks away swap", "6", "6"],
    ]
    assert "ann/7.jpg" not in page().source
    assert "ann" not in result().model_dump_json()


def test_every_chart_has_a_table_and_a_sentence() -> None:
    charts = page().all("svg", **{"class": "chart"})
    assert len(charts) == 2 * (2 + 2)  # encoders × (drawn faces + curves)
    assert all(len(one.attributes["aria-label"]) > 30 for one in charts)
    for name in ("made", "second"):
        blurred = rows(page(), f"Place preferred as faces are blurred, {name}")
        assert blurred[0] == ["blur of all faces, σ in pixels", "raw", "isp"]
        assert blurred[3] == ["2", "20.0 % [15.0, 25.0] 16 of 80", "85.0 % [80.0, 90.0] 68 of 80"]
        revealed = rows(page(), f"Place preferred as background is revealed, {name}")
        assert revealed[-1][:2] == ["1", "100.0 % [95.0, 100.0] 80 of 80"]
        similar = rows(page(), f"Similarities as background is revealed, {name}")
        assert similar[2] == ["raw", "0.25", "0.250", "0.600"]


def test_no_photograph_unless_asked_for() -> None:
    assert page().all("img") == []
    assert "No picture and no name of a person" in page().words
    assert not re.search(r"https?://|url\(|data:image", page().source.replace("img-src data:", ""))


@dataclass(frozen=True)
class Shown:
    caption: str
    jpeg: bytes


def test_photographs_that_were_asked_for_come_with_a_warning() -> None:
    shown = Page(render_attribution(result(), [[Shown("canvas", b"\xff\xd8"), Shown("face blurred", b"\xff\xd8")]]))
    assert [one.attributes["src"] for one in shown.all("img")] == ["data:image/jpeg;base64,/9g="] * 2
    assert shown.one("p", role="alert").words.startswith("This page shows photographs of people")
    assert "No picture" not in shown.words


def test_the_drawn_face_is_shaded_by_what_blurring_takes() -> None:
    raw, isp = face_figures(encoder(), looks_of(["raw", "isp"]))
    shades = [re.findall(r'fill-opacity="([\d.]+)"', one.svg) for one in (raw, isp)]
    assert shades == [["0.50", "0.12"], ["0.12", "0.06"]]  # face, ring: 0.4, 0.1 and 0.1, 0.05
    assert "blurring the face takes 0.40 from similarity, as much background 0.10" in raw.svg


def test_without_swaps_it_says_that_cpi_was_not_measured() -> None:
    alone = result().model_copy(update={"encoders": [encoder(swapped=False)]})
    shown = Page(render_attribution(alone))
    assert "CPI and B*: not measured" in shown.words
    assert rows(shown, "Face against surroundings")[1][2:] == ["not measured"] * 3
    assert rows(shown, "How much background it takes")[1][1:] == ["not measured"] * 5


def test_no_name_becomes_an_element() -> None:
    dumped = with_evil_words(result("made", "second").model_dump(by_alias=True, mode="json"))
    assert isinstance(dumped, dict)
    for one, honest in zip(dumped["encoders"], result("made", "second").encoders, strict=True):
        one["axes"] = honest.axes
        for counted, true in zip(one["quality"]["left_out"], honest.quality.left_out, strict=True):
            counted["step"] = true.step
    evil = Page(render_attribution(AttributionResult.model_validate(dumped)))
    assert [one.tag for one in evil.elements] == [one.tag for one in page().elements]
    assert not [name for one in evil.elements for name in one.attributes if name.startswith("on")]
    assert f"isp{EVIL}" in evil.words


def test_an_audit_with_attribution_has_the_panel_and_one_without_says_so() -> None:
    there, absent = Page(render_report(audited())), full()
    assert rows(there, "Face against surroundings")[1][1].startswith("+0.300")
    assert there.all("a", href="#attribution")
    assert not absent.all("section", id="attribution")
    assert "face-context attribution" in absent.words
    assert there.all("img") == []


def test_an_audit_of_before_reads_as_one_without_attribution() -> None:
    dumped = audited().model_dump(by_alias=True, mode="json")
    assert Attribution.of(AuditResult.model_validate(dumped)) == encoder()
    del dumped["parts"]["attribution"]
    assert Attribution.of(AuditResult.model_validate(dumped)) is None


@pytest.fixture
def console() -> Console:
    return Console(file=StringIO(), width=140)


def printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_terminal_shows_every_space_and_what_was_left_out(console: Console) -> None:
    print_attribution(result("made"), console)
    text = printed(console)
    assert text.startswith("made: the face counts for more."), "the answer is the first line"
    assert re.search(r"made +\+0\.300 +10\.0 % +35\.0 % +\+25\.0 *\nraw +\[\+0\.280, \+0\.320\] \[5\.0, 15\.0\]", text)
    assert re.search(r"made +\+0\.050 +75\.0 % .*\nisp ", text)
    assert re.search(r"made +never +0\.75 +0\.0 % +25\.0 % +95\.0 % *\nraw +\[0\.73, 0\.77\]", text)
    narrow = Console(file=StringIO(), width=80)
    print_attribution(result("made"), narrow)
    assert max(map(len, printed(narrow).splitlines())) <= 80
    assert (
        "100 of 120 pictures used, 34 people; FII on 90 pairs, CPI and B* on 80 triplets (80 of 86 swaps"
        in " ".join(text.split())
    )
    assert "left out pictures: 12 (no face), 8 (face at the border); swaps: 6 (the donor looks away)" in " ".join(
        text.split()
    )


def test_an_audit_says_it_in_one_line(console: Console) -> None:
    print_audit(audited(), console)
    assert "Face-context attribution, 90 pairs: raw: FII +0.300 [+0.280, +0.320], CPI(0) 10.0 %, B* 0.75; isp: FII" in (
        " ".join(printed(console).split())
    )


def test_a_killed_run_leaves_no_result_without_its_page_and_can_be_given_again(tmp_path: Path) -> None:
    """A child that is killed before its last rename, that of the result file."""
    killed = (
        "import os, signal, sys; from pathlib import Path; from tests.report.made_attribution import result;"
        " real = Path.replace; Path.replace = lambda path, to: os.kill(os.getpid(), signal.SIGKILL)"
        " if to.suffix == '.json' else real(path, to); result('one').save(sys.argv[1], '<html></html>')"
    )
    child = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    assert child.returncode == -signal.SIGKILL
    there = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert there == {"attribution.html", "left-out.csv"}
    require_no_attribution(tmp_path, force=False)
    result("one").save(tmp_path, "<html></html>")
    assert {path.name for path in tmp_path.iterdir()} == {*there, "attribution.json"}
    with pytest.raises(UnfaceError, match="exists already"):
        require_no_attribution(tmp_path, force=False)
