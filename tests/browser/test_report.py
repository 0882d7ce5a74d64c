"""If these fail, the page does not work where it is read: on a phone, by keyboard, in the dark, on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import Opened, show
from tests.documents.drawn import evil_page, full, invalid
from tests.kit import documents
from tests.kit.results import attribution

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, page in (("full", full()), ("invalid", invalid()), ("evil", evil_page())):
        (folder / f"{name}.html").write_text(page.source, encoding="utf-8")
    (folder / "attribution.html").write_text(documents.page(attribution("made", "second")), encoding="utf-8")
    return folder


@pytest.fixture
def report(browser: "Browser", folder: Path) -> Iterator[Opened]:
    yield from show(browser, folder / "full.html")


@pytest.fixture
def phone(browser: "Browser", folder: Path) -> Iterator[Opened]:
    yield from show(browser, folder / "full.html", width=360)


@pytest.fixture
def in_the_dark(browser: "Browser", folder: Path) -> Iterator[Opened]:
    yield from show(browser, folder / "full.html", dark=True)


@pytest.fixture
def scriptless(browser: "Browser", folder: Path) -> Iterator[Opened]:
    yield from show(browser, folder / "full.html", javascript=False)


def readout(opened: Opened, method: str) -> list[str]:
    row = opened.page.locator(".readout tbody tr").filter(has=opened.page.get_by_role("rowheader", name=method))
    return row.locator("td").all_inner_texts()


def paper(opened: Opened) -> list[int]:
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def test_the_slider_moves_the_numbers(report: Opened) -> None:
    slider = report.page.get_by_role("slider", name="Dimensions removed")
    assert readout(report, "isp") == ["2.6 % [2.4, 2.8]", "260 ×", "87.0 % [85.8, 88.2]", "93.5 % [92.3, 94.7]"]
    slider.fill("0")
    assert readout(report, "isp") == ["4.5 % [4.2, 4.8]", "450 ×", "97.0 % [95.8, 98.2]", "98.5 % [97.3, 99.7]"]
    assert readout(report, "random")[0] == "6.1 % [5.7, 6.5]"
    assert readout(report, "raw")[0] == "6.6 % [6.2, 7.1]"
    assert "With 64 dimensions removed" in report.page.locator(".readout caption").inner_text()


def test_the_slider_works_by_keyboard_and_says_what_it_shows(report: Opened) -> None:
    slider = report.page.get_by_role("slider", name="Dimensions removed")
    slider.focus()
    report.page.keyboard.press("ArrowRight")
    assert readout(report, "isp")[0] == "1.8 % [1.7, 1.9]"
    assert report.page.locator("output").inner_text() == "256"
    assert slider.get_attribute("aria-valuetext") == "rank 256: raw 6.6 %, isp 1.8 %, random 4.8 %, pca 2.0 %"
    report.page.keyboard.press("Home")
    assert readout(report, "pca")[0] == "4.6 % [4.3, 4.9]"


def test_the_charts_mark_the_rank_that_is_chosen(report: Opened) -> None:
    marked = report.page.locator("path.chosen")
    assert {mark.get_attribute("data-rank") for mark in marked.all()} == {"192"}
    assert marked.count() == 3 * 3  # charts × methods
    report.page.get_by_role("slider", name="Dimensions removed").fill("1")
    assert {mark.get_attribute("data-rank") for mark in marked.all()} == {"128"}


def test_tab_reaches_the_slider_and_the_skip_link_comes_first(report: Opened) -> None:
    reached = []
    for _ in range(60):
        report.page.keyboard.press("Tab")
        reached.append(report.page.evaluate("document.activeElement.type || document.activeElement.className"))
        if reached[-1] == "range":
            break
    assert reached[0] == "skip"
    assert reached[-1] == "range"


def test_nothing_is_complained_of_and_only_the_file_itself_is_read(report: Opened) -> None:
    report.page.get_by_role("slider", name="Dimensions removed").fill("3")
    assert report.complaints == []
    assert report.asked == [report.url]


def test_the_page_of_attribution_reads_nothing_else_in_light_and_dark(browser: "Browser", folder: Path) -> None:
    for dark in (False, True):
        for opened in show(browser, folder / "attribution.html", dark=dark):
            assert opened.complaints == []
            assert opened.asked == [opened.url]
            assert opened.page.get_by_role("img", name="Drawn face, raw").first.is_visible()
            assert (max(paper(opened)) < 50) == dark
            ring = opened.page.locator("svg.chart path[stroke-dasharray='5 3']").first
            assert ring.evaluate("path => getComputedStyle(path).stroke") == (
                "rgb(185, 190, 199)" if dark else "rgb(74, 79, 87)"
            )


def test_a_script_in_a_name_stays_text(browser: "Browser", folder: Path) -> None:
    for opened in show(browser, folder / "evil.html"):
        opened.page.get_by_role("slider").fill("0")
        assert "<script>alert(1)</script>" in opened.page.locator("h1").inner_text()
        assert "<script>alert(1)</script>" in opened.page.locator(".readout").inner_text()
        assert opened.dialogs == []
        assert opened.complaints == []
        assert opened.asked == [opened.url]


def test_the_policy_stops_a_script_that_is_not_ours(browser: "Browser", folder: Path) -> None:
    added = folder / "added.html"
    added.write_text(full().source.replace("</main>", "<script>alert(1)</script></main>"), encoding="utf-8")
    for opened in show(browser, added):
        assert opened.dialogs == []
        assert any("Content Security Policy" in text for text in opened.complaints)


def test_dark_paper_for_those_who_ask(report: Opened, in_the_dark: Opened) -> None:
    assert min(paper(report)) > 240
    assert max(paper(in_the_dark)) < 50
    label = in_the_dark.page.locator("svg.chart text").first
    assert label.evaluate("text => getComputedStyle(text).fill") == "rgb(185, 190, 199)"


@pytest.mark.parametrize("name", ["full", "invalid", "evil", "attribution"])
def test_a_phone_never_scrolls_sideways(browser: "Browser", folder: Path, name: str) -> None:
    for opened in show(browser, folder / f"{name}.html", width=360):
        opened.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_wide_tables_scroll_in_their_own_box_on_a_phone(phone: Opened) -> None:
    box = phone.page.locator("#leakage .scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto'")


def test_paper_has_the_decision_and_the_main_table_and_says_what_it_leaves_out(report: Opened) -> None:
    report.page.emulate_media(media="print")
    for shown in (".decision", ".figures", "#next", "#findings", "#leakage table >> nth=0", "#limits", ".paper"):
        assert report.page.locator(shown).first.is_visible(), shown
    for left_out in ("nav", "details", "#frontier", "#method", "input[type=range]"):
        assert not report.page.locator(left_out).first.is_visible(), left_out
    report.page.emulate_media(media="screen")
    assert not report.page.locator(".paper").is_visible()


def test_paper_is_white_even_for_those_who_ask_for_dark(in_the_dark: Opened) -> None:
    in_the_dark.page.emulate_media(media="print", color_scheme="dark")
    assert paper(in_the_dark) == [255, 255, 255]
    label = in_the_dark.page.locator("svg.chart text").first
    assert label.evaluate("text => getComputedStyle(text).fill") == "rgb(74, 79, 87)"


def test_without_scripts_there_is_no_slider_but_every_number(scriptless: Opened) -> None:
    assert not scriptless.page.locator("input[type=range]").is_visible()
    assert readout(scriptless, "isp")[0] == "2.6 % [2.4, 2.8]"
    scriptless.page.get_by_text("Every rank", exact=True).click()
    assert "1.8 % [1.7, 1.9]" in scriptless.page.locator("#frontier").inner_text()


def test_an_invalid_audit_keeps_its_banner_in_sight(browser: "Browser", folder: Path) -> None:
    for opened in show(browser, folder / "invalid.html"):
        opened.page.locator("#method").scroll_into_view_if_needed()
        banner = opened.page.get_by_role("alert")
        assert banner.bounding_box() is not None
        assert banner.evaluate("banner => banner.getBoundingClientRect().top") == 0
