"""If these fail, a page hides its decision, shuts readers out, breaks on a phone, or prints on too much paper."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import sheets, show
from tests.documents import drawn
from tests.documents.drawn import every_kind

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KINDS = [*drawn.KINDS, "encoders"]
LONE_TILES = """() => [...document.querySelectorAll('.figures')].map(tiles => {
    const tops = [...tiles.children].map(tile => tile.getBoundingClientRect());
    const last = tops.filter(tile => tile.top === tops.at(-1).top);
    const columns = new Set(tops.map(tile => tile.left)).size;
    return columns > 1 && last.length === 1 && last[0].width < 0.9 * tiles.getBoundingClientRect().width;
})"""
BROKEN = "() => [...document.querySelectorAll('.one')].filter(one => one.getClientRects().length > 1).length"
WITHOUT_CUE = """() => [...document.querySelectorAll('.scroll')].filter(box => box.checkVisibility()).filter(box =>
    (box.scrollWidth > box.clientWidth) !== (box.querySelector('.cue').getBoundingClientRect().height > 0)).length"""
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for kind, page in every_kind().items():
        (folder / f"{kind}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_asks_for_nothing_is_small_and_prints_on_four_sheets(
    browser: "Browser", folder: Path, kind: str
) -> None:
    file = folder / f"{kind}.html"
    assert file.stat().st_size < 2_000_000
    for opened in show(browser, file):
        assert (opened.asked, opened.complaints) == ([opened.url], [])
        assert 0 < sheets(opened.page) <= 4


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "attribution"])
def test_the_first_screen_has_the_verdict_what_was_tested_how_bad_it_is_and_what_now(
    browser: "Browser", folder: Path, kind: str
) -> None:
    for opened in show(browser, folder / f"{kind}.html", width=1280):
        for part in (".decision .state", "text=Tested:", ".verdict", "#next"):
            box = opened.page.locator(part).first.bounding_box()
            assert box is not None, part
            assert box["y"] + box["height"] <= 800, part
    for opened in show(browser, folder / f"{kind}.html", width=390, height=844):
        box = opened.page.locator(".verdict").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 844


@pytest.mark.parametrize("kind", KINDS)
def test_no_tile_stands_alone_no_number_breaks_and_wide_tables_say_so(
    browser: "Browser", folder: Path, kind: str
) -> None:
    for opened in show(browser, folder / f"{kind}.html"):
        opened.page.evaluate(OPEN)
        for width in (320, 390, 700, 1280):
            opened.page.set_viewport_size({"width": width, "height": 800})
            assert not any(opened.page.evaluate(LONE_TILES)), width
            assert opened.page.evaluate(BROKEN) == 0, width
            opened.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert opened.page.evaluate(WITHOUT_CUE) == 0, width
            assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.skipif(find_spec("axe_playwright_python") is None, reason="axe-playwright-python is not installed")
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_no_issue_in_light_and_dark(browser: "Browser", folder: Path, kind: str) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    for dark in (False, True):
        for opened in show(browser, folder / f"{kind}.html", dark=dark):
            opened.page.evaluate(OPEN)
            opened.page.evaluate(axe)
            rules = ", runOnly: ['color-contrast']" if dark else ""
            found = opened.page.evaluate(f"axe.run(document, {{resultTypes: ['violations']{rules}}})")
            assert found["passes"], "axe has run"
            said = [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}" for one in found["violations"]]
            assert said == []
