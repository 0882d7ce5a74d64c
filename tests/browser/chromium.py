"""Debian's chromium, opened once for a folder of tests; those that need it skip where it is missing."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

CHROMIUM = shutil.which("chromium")


@dataclass
class Opened:
    """A page with what it did: requests, complaints on the console, dialogs."""

    page: "Page"
    url: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def dismiss(self, dialog: "Dialog") -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def started() -> Iterator["Browser"]:
    """The body of a fixture."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def show(
    browser: "Browser",
    file: Path,
    *,
    width: int = 1200,
    height: int = 800,
    dark: bool = False,
    javascript: bool = True,
) -> Iterator[Opened]:
    """The page, for the length of a loop that is run once."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        java_script_enabled=javascript,
    )
    opened = Opened(context.new_page(), file.as_uri())
    opened.page.on("request", lambda request: opened.asked.append(request.url))
    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("dialog", opened.dismiss)
    opened.page.goto(opened.url)
    yield opened
    context.close()


def sheets(page: "Page") -> int:
    """How many A4 pages it prints on."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
