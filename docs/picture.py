"""Redraws docs/audit.svg, the picture in the README, from a demo audit:

python docs/picture.py unface-demo/audit.json
"""

import io
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from unface.auditing import load_audit
from unface.report import print_audit


def main() -> None:
    """Print an audit as a terminal of 150 columns would show it, and save what it looks like."""
    console = Console(record=True, width=150, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$ unface demo[/bold]")
    print_audit(load_audit(Path(sys.argv[1])), console)
    # without rich's web fonts: a picture in a repository fetches nothing
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(Path(__file__).parent / "audit.svg"), title="unface", code_format=plain)


if __name__ == "__main__":
    main()
