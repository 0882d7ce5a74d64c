"""If this fails, the documentation site cannot be built, leaves something out, or shows readers broken text."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import unface
from tests.pages import ROOT
from unface.gate import read_policy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("material", reason="mkdocs-material is not installed; pip install 'unface[dev]'")
pytest.importorskip("mkdocstrings_handlers.python", reason="mkdocstrings is not installed; pip install 'unface[dev]'")

PAGES = sorted(
    [*(page.stem for page in (ROOT / "docs").glob("*.md")), "erasure-tables"]
)  # that one is made with the site
WITHOUT_A_NETWORK = """
import socket
def refuse(*_): raise SystemExit("the build connects to something")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli()
"""


@dataclass(frozen=True)
class Site:
    """The built site, and the CPU time that took."""

    folder: Path
    cpu_seconds: float

    @cached_property
    def pages(self) -> dict[str, "Read"]:
        return {page.stem: Read.of(page) for page in self.folder.glob("*.html")}


@dataclass
class Read(HTMLParser):
    """What one page loads, leads to from its navigation, is headed by, and says in each paragraph."""

    loaded: list[str] = field(default_factory=list)
    navigation: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    inside: bool = False

    @classmethod
    def of(cls, page: Path) -> "Read":
        read = cls()
        HTMLParser.__init__(read)
        read.feed(page.read_text(encoding="utf-8"))
        return read

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in {"link", "script", "img", "source", "iframe", "object", "embed", "video", "audio", "use"}:
            self.loaded += [values[name] for name in ("src", "href", "srcset", "data", "poster") if name in values]
        if tag == "a" and "md-nav__link" in values.get("class", ""):
            self.navigation.append(values.get("href", ""))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(values.get("id", ""))
        if tag == "p":
            self.inside = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.paragraphs[-1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder, before = tmp_path_factory.mktemp("site"), os.times()
    command = [sys.executable, "-c", WITHOUT_A_NETWORK, "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    after = os.times()
    return Site(folder, after.children_user + after.children_system - before.children_user - before.children_system)


def test_it_is_built_in_seconds(site: Site) -> None:
    assert site.cpu_seconds < 30, "6 seconds on an EPYC"


def test_every_page_is_built_and_in_the_navigation(site: Site) -> None:
    assert set(PAGES) == set(site.pages) - {"404"}
    targets = {href.removesuffix(".html") for href in site.pages["results"].navigation if not href.startswith("#")}
    assert set(PAGES) - targets == set()


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    asked = {f"{name}: {url}" for name, page in site.pages.items() for url in page.loaded if elsewhere(url)}
    styles = (style for style in site.folder.rglob("*.css"))
    asked |= {f"{style.name}: {url}" for style in styles for url in imports(style.read_text("utf-8")) if elsewhere(url)}
    assert asked == set()
    assert sum(len(page.loaded) for page in site.pages.values()) > len(PAGES)


def elsewhere(url: str) -> bool:
    return re.match(r"\s*(\w+:)?//", url) is not None


def imports(style: str) -> list[str]:
    return re.findall(r"""(?:url\(|@import)\s*["']?([^"')]+)""", style)


@pytest.mark.parametrize("url", ["https://fonts.example/a.css", "//cdn.example/x.js", " http://example/"])
def test_an_address_elsewhere_is_told_from_one_of_the_site(url: str) -> None:
    assert elsewhere(url)
    assert imports(f"@import '{url.strip()}'; a {{ background: url({url}) }}") == [url.strip()] * 2
    assert not elsewhere("assets/a.css")
    assert not elsewhere("data:image/svg+xml,<svg/>")


def test_no_paragraph_is_a_list_table_or_block_that_was_not_understood(site: Site) -> None:
    """Lists need an empty line before them here, and indents of four; the repository's own reader is more lenient."""
    left = re.compile(r"^\s*([-*] |\||```|:::)|console exact", flags=re.MULTILINE)
    paragraphs = [(name, text) for name, page in site.pages.items() for text in page.paragraphs]
    assert [(name, text[:80]) for name, text in paragraphs if left.search(text)] == []
    assert len(paragraphs) > 10 * len(PAGES)


def test_the_reference_has_every_public_name_and_no_other(site: Site) -> None:
    entries = [heading for heading in site.pages["api"].headings if re.fullmatch(r"unface\.\w+", heading)]
    assert sorted(entries) == sorted(f"unface.{name}" for name in unface.__all__ if name != "__version__")


def test_search_finds_every_page_but_the_long_tables(site: Site) -> None:
    index = site.folder / "search" / "search_index.json"
    found = {entry["location"].split(".html")[0] for entry in json.loads(index.read_text("utf-8"))["docs"]}
    assert set(PAGES) - found == {"erasure-tables"}
    assert index.stat().st_size < 1_000_000


def test_the_policy_shown_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (policy,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "policy.toml").write_text(policy, encoding="utf-8")
    assert len(read_policy(tmp_path / "policy.toml").require) == policy.count("[[require]]")


def test_links_out_of_the_pages_become_text_and_must_lead_somewhere() -> None:
    from docs import site as hooks
    from mkdocs.exceptions import PluginError

    page = made_up_page()
    text = (
        "[`cli`](../src/unface/cli), [news](../CHANGELOG.md#added), [all](.), [here](data.md), [far](https://a.org/b)"
    )
    assert hooks.on_page_markdown(text, page=page) == "`cli`, news, all, [here](data.md), [far](https://a.org/b)"
    with pytest.raises(PluginError, match=r"docs/made-up.md: no \.\./absent.md to link to"):
        hooks.on_page_markdown("[gone](../absent.md)", page=page)


def test_what_is_said_to_the_tests_is_not_shown() -> None:
    from docs import site as hooks

    text = "```console exact\n$ unface\n```"
    assert hooks.on_page_markdown(text, page=made_up_page()) == "```console\n$ unface\n```"


def test_every_audit_that_is_recorded_has_its_section_on_the_generated_page(site: Site) -> None:
    records = {record.stem for record in (ROOT / "docs" / "measured" / "erasure").glob("*.json")}
    assert records
    assert records - set(site.pages["erasure-tables"].headings) == set()
    page = (site.folder / "erasure-tables.html").read_text(encoding="utf-8")
    assert page.count("<table>") > 2 * len(records)


def test_links_to_the_records_lead_to_the_generated_page(site: Site) -> None:
    pages = "".join((site.folder / name).read_text("utf-8") for name in ("erasure.html", "erasure-details.html"))
    links = re.findall(r'href="(erasure-tables\.html(?:#[^"]*)?)"', pages)
    assert {"erasure-tables.html", "erasure-tables.html#every-audit"} < set(links)
    for anchor in (link.partition("#")[2] for link in links):
        assert not anchor or anchor in site.pages["erasure-tables"].headings


def made_up_page() -> SimpleNamespace:
    return SimpleNamespace(file=SimpleNamespace(src_uri="made-up.md"), meta={})


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site.folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: "Browser", url: str, *, width: int = 1200, dark: bool = False) -> "Page":
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light")
    page.goto(url)
    return page


def test_a_reader_can_search_and_the_browser_asks_nobody_else(browser: "Browser", address: str) -> None:
    page = opened(browser, "about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}index.html")
    # the page listens to keys alone; text that is put in without them is searched for only by chance
    page.get_by_role("textbox", name="Search").press_sequentially("same-shoot pairs")
    found = page.locator(".md-search-result__link[href*='statistics.html']").first
    found.wait_for(state="attached")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize("name", ["index", "api", "claims", "erasure", "stores"])
def test_a_page_fits_a_phone(browser: "Browser", address: str, name: str) -> None:
    page = opened(browser, f"{address}{name}.html", width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_dark_where_the_reader_is(browser: "Browser", address: str, dark: bool) -> None:
    page = opened(browser, f"{address}index.html", dark=dark)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in re.findall(r"\d+", colour)[:3]) < 128) is dark
    page.close()
