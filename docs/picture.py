"""Redraws docs/audit.svg and docs/report.png, the pictures in the README, from a demo audit:

python docs/picture.py unface-demo/audit.json

The second needs Debian's chromium, and Playwright.
"""

import io
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from unface.auditing import load_audit
from unface.report import print_audit

HERE = Path(__file__).parent


def main() -> None:
    """Both pictures."""
    audit = Path(sys.argv[1])
    draw_terminal(audit)
    draw_report(audit)


def draw_terminal(audit: Path) -> None:
    """Print an audit as a terminal of 112 columns would show it, and save what it looks like."""
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$ unface demo[/bold]")
    print_audit(load_audit(audit), console)
    # without rich's web fonts: a picture in a repository fetches nothing
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(HERE / "audit.svg"), title="unface", code_format=plain)


def draw_report(audit: Path) -> None:
    """The top of the page in a browser 900 pixels wide."""
    from playwright.sync_api import sync_playwright

    from unface.report.html import write_report

    with TemporaryDirectory() as folder, sync_playwright() as tools:
        page_file = write_report(load_audit(audit), Path(folder) / "report.html")
        browser = tools.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 1250})
        page.goto(page_file.as_uri())
        page.screenshot(path=str(HERE / "report.png"))
        browser.close()


if __name__ == "__main__":
    main()
