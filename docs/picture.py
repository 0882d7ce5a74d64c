"""Redraws docs/audit.svg and docs/report.png, the pictures in the README, from what `unface demo` left:

python docs/picture.py unface-demo

The second needs Debian's chromium, and Playwright. `make figures` does this and all else that pages show of the demo.
"""

import io
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from unface.auditing import AUDIT_FILE, load_audit
from unface.data import EMBEDDED_ENCODERS
from unface.report.html import write_report
from unface.report.side_by_side import print_side_by_side

HERE = Path(__file__).parent
WITH_FRONTIER = "sscd-int8"


def main() -> None:
    """Both pictures."""
    demo = Path(sys.argv[1])
    draw_terminal(demo)
    draw_report(demo / WITH_FRONTIER / AUDIT_FILE)


def draw_terminal(demo: Path) -> None:
    """Print the demo's audits as a terminal of 88 columns would show them, and save what it looks like."""
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$ unface demo[/bold]\n")
    print_side_by_side({name: load_audit(demo / name / AUDIT_FILE) for name in EMBEDDED_ENCODERS}, console)
    # without rich's web fonts: a picture in a repository fetches nothing
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(HERE / "audit.svg"), title="unface", code_format=plain)


def draw_report(audit: Path) -> None:
    """The top of the page in a browser 900 pixels wide."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as tools:
        page_file = write_report(load_audit(audit), Path(folder) / "report.html")
        browser = tools.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 1250})
        page.goto(page_file.as_uri())
        page.screenshot(path=str(HERE / "report.png"))
        browser.close()


if __name__ == "__main__":
    main()
