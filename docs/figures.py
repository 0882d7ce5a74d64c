"""Renders pages from docs/templates, so that every measured figure on a page is the recorded one.

    python -m docs.figures [DEMO]

A page with figures has a template: docs/templates/results.md.jinja for docs/results.md, README.md.jinja for README.md.
Edit the template, never the page, and run this. A template is the page in Markdown, with calls such as
``{{ tar("sscd-int8_lfw_apart", "isp", 1e-3) }}`` where a figure or a table stands; GLOBALS lists what can be called,
each reads what docs/measured holds. A test renders every page again and compares. DEMO is what ``unface demo``
left; its table is recorded first. ``make figures`` does this and draws the pictures.
"""

import hashlib
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from benchmarks import record as benchmarks
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from studies import measured, tables
from studies.measured import Cell, Table, heading, row, write_findings
from studies.record import Record, read_records

from unface.data import EMBEDDED_ENCODERS, read_embeddings
from unface.models import card
from unface.result.audit import AuditResult, SpaceResult
from unface.result.words import interval, percent

HERE = Path(__file__).resolve().parent
TEMPLATES = HERE / "templates"
SITE_ONLY = {"erasure-tables.md"}  # 6,000 lines, rendered when the site is built
PAGES = {
    name: HERE.parent / name if name == "README.md" else HERE / name
    for template in sorted(TEMPLATES.iterdir())
    if (name := template.stem) not in SITE_ONLY
}
Figure = Callable[..., str | Iterable[str]]  # what a template calls: a figure, or the lines of a table

DEMO_FAR = 1e-3
DEMO_SPACES = {"raw": "raw", "isp": "ISP", "leace": "LEACE", "random": "random subspace", "pca": "label-free PCA"}
FAMILIES = {"recognition": "face recogniser", "general": "general encoder"}


def main() -> None:
    """Render every page, and say which changed."""
    if sys.argv[1:]:
        record_demo(Path(sys.argv[1]))
    for name, page in PAGES.items():
        if (text := rendered(name)) != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"{name}: rendered")


def rendered(name: str) -> str:
    """A page from its template."""
    return environment().get_template(f"{name}.jinja").render()


@cache
def environment() -> Environment:
    """Jinja with everything that templates call; a table is a list of lines."""
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, str) else "\n".join(value).strip(),
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the pages are Markdown
    )
    jinja.globals.update(GLOBALS)
    return jinja


def record_demo(folder: Path) -> None:
    """The table of what ``unface demo`` left, as docs/measured/demo.json."""
    audits = {name: AuditResult.load(folder / name) for name in EMBEDDED_ENCODERS}
    where = f"{platform.system()} {platform.machine()}"
    write_findings("demo", command="unface demo", where=where, tables={"before and after": before_and_after(audits)})


def before_and_after(audits: Mapping[str, AuditResult]) -> Table:
    """Worst-case TAR of each encoder, raw and after each eraser and control, and what k-NN keeps of its accuracy."""
    rows: list[list[Cell]] = []
    for name, result in audits.items():
        erasure = next(space.erasure for space in result.spaces if space.erasure)
        about = f"**{name}**<br>{FAMILIES[card(name).family]}, {erasure.rank} of {erasure.dim} removed"
        cells = {space.name: demo_cell(space) for space in result.spaces}
        rows.append([about, *(cells[space] for space in DEMO_SPACES)])
    return Table(columns=dict.fromkeys(("encoder", *DEMO_SPACES.values()), ""), rows=rows)


def demo_cell(space: SpaceResult) -> str:
    """TAR and k-NN accuracy kept, each with its interval."""
    tar = next(point.tar for point in space.points if point.worst and point.far == DEMO_FAR)
    assert tar is not None, "the demo resolves this rate"
    lines = [f"{percent(tar.value)} {interval(tar.low, tar.high)}"]
    for kept in space.utility:
        if kept.measure == "knn":
            ends = kept.retained
            lines.append(f"k-NN {100 * ends.value:.0f} % [{100 * ends.low:.0f}, {100 * ends.high:.0f}]")
    return "<br>".join(lines)


def embedded_files() -> list[str]:
    """Every file that comes with unface: what is in it, its size and its hash."""
    lines = heading(["file", "vectors", "bytes", "sha256"])
    for file in sorted((files("unface.data") / "nobody").iterdir(), key=lambda file: file.name):
        data, people = file.read_bytes(), read_embeddings(str(file))
        size = f"{len(people):,} × {people.space.dim}"
        lines.append(row([f"`{file.name}`", size, f"{len(data):,}", f"`{hashlib.sha256(data).hexdigest()}`"]))
    return lines


def bytes_of(path: str) -> str:
    """The size of a file of the repository."""
    return f"{(HERE.parent / path).stat().st_size:,}"


def rooms() -> list[str]:
    """The rooms of the source, from their docstrings."""
    from docs import pictures

    return pictures.rooms()


@cache
def audits() -> dict[str, Record]:
    """What was recorded of the audits on real faces, read once."""
    return read_records()


def of_audits(function: Figure, *arguments: object) -> str | Iterable[str]:
    """Call a function of studies.tables."""
    return function(audits(), *arguments)


FROM_AUDITS: tuple[Figure, ...] = (
    *(tables.audit_sections, tables.worst_table, tables.within_and_elsewhere, tables.adjusted_table),
    *(tables.left_out_overview, tables.kept_table, tables.sweep_tables, tables.rank_table, tables.against_table),
    *(tables.tar, tables.tar_interval, tables.times_chance, tables.tar_adjusted, tables.removed),
    *(tables.removed_adjusted, tables.same_shoot, tables.lead, tables.compared, tables.below, tables.above),
    *(tables.chosen, tables.weaker, tables.kept, tables.directions, tables.identities, tables.rank),
    *(tables.last_direction, tables.shuffled, tables.at_chance),
)
FROM_OTHERS: tuple[Figure, ...] = (
    *(measured.table, measured.cell, measured.figure, benchmarks.speed_table, benchmarks.speed),
    *(
        benchmarks.apply_sizes,
        benchmarks.seconds_a_million,
        benchmarks.coverage_output,
        benchmarks.covered,
    ),
    *(embedded_files, bytes_of, rooms),
)
GLOBALS: dict[str, Figure] = {
    **{function.__name__: partial(of_audits, function) for function in FROM_AUDITS},
    **{function.__name__: function for function in FROM_OTHERS},
}


if __name__ == "__main__":
    main()
