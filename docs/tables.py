"""Writes the tables that README.md and docs/data.md show of the embedded people, from what `unface demo` left:

python docs/tables.py unface-demo

Each stands between two comments that name it, <!-- name --> and <!-- /name -->. `make figures` does this too.
"""

import hashlib
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from unface.auditing import AUDIT_FILE, AuditResult, load_audit
from unface.auditing.schema import SpaceResult
from unface.auditing.words import interval, percent
from unface.data import EMBEDDED_ENCODERS, read_embeddings
from unface.models import card

HERE = Path(__file__).resolve().parent
PAGES = (HERE.parent / "README.md", HERE / "data.md")
FAR = 1e-3
SPACES = {"raw": "raw", "isp": "ISP", "leace": "LEACE", "random": "random subspace", "pca": "label-free PCA"}
FAMILIES = {"recognition": "face recogniser", "general": "general encoder"}


def main() -> None:
    """Rewrite both pages."""
    demo = Path(sys.argv[1])
    audits = {name: load_audit(demo / name / AUDIT_FILE) for name in EMBEDDED_ENCODERS}
    tables = {"before and after": before_and_after(audits), "embedded files": embedded_files()}
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


def before_and_after(audits: Mapping[str, AuditResult]) -> str:
    """Worst-case TAR of each encoder, raw and after each eraser and control, and what k-NN keeps of its accuracy."""
    lines = [row("encoder", *SPACES.values()), row(*["---"] * (1 + len(SPACES)))]
    for name, result in audits.items():
        erasure = next(space.erasure for space in result.spaces if space.erasure)
        about = f"**{name}**<br>{FAMILIES[card(name).family]}, {erasure.rank} of {erasure.dim} removed"
        found = {space.name: cell(space) for space in result.spaces}
        lines.append(row(about, *(found[space] for space in SPACES)))
    return "\n".join(lines)


def cell(space: SpaceResult) -> str:
    tar = next(point.tar for point in space.points if point.worst and point.far == FAR)
    assert tar is not None, "the demo resolves this rate"
    said = f"{percent(tar.value)} {interval(tar.low, tar.high)}"
    for kept in space.utility:
        if kept.measure == "knn":
            ends = kept.retained
            said += f"<br>k-NN {100 * ends.value:.0f} % [{100 * ends.low:.0f}, {100 * ends.high:.0f}]"
    return said


def embedded_files() -> str:
    """Every file that comes with unface: what is in it, its size and its hash."""
    lines = [row("file", "vectors", "bytes", "sha256"), row(*["---"] * 4)]
    for file in sorted((files("unface.data") / "nobody").iterdir(), key=lambda file: file.name):
        data = file.read_bytes()
        found = read_embeddings(str(file))
        size = f"{len(found):,} × {found.space.dim}"
        lines.append(row(f"`{file.name}`", size, f"{len(data):,}", f"`{hashlib.sha256(data).hexdigest()}`"))
    return "\n".join(lines)


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """The page with every table that it has a place for."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if start in page:
            before, rest = page.split(start)
            page = f"{before}{start}\n{table}\n\n{end}{rest.split(end)[1]}"
    return page


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
