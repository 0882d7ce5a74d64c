"""Fills in the figures that pages show of what was measured, from the records in docs/measured: python -m docs.figures

A page marks each place with <!-- NAME WORDS --> … <!-- /NAME -->, which readers do not see. A mark at the end of its
line is the place of a table, any other that of a figure in a sentence. ``make figures`` does this and all else.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

from benchmarks import covered, sizes
from benchmarks import record as speeds
from studies import measured, prose, summary, tables
from studies.record import read_records
from studies.record_format import Record

from unface import UnfaceError

HERE = Path(__file__).resolve().parent
PAGES = (HERE.parent / "README.md", *sorted(HERE.glob("*.md")))
Maker = Callable[..., str | Iterable[str]]


def main() -> None:
    """Every page, and say which changed."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        if (after := filled(before, page.name)) != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.name}: filled in")


def filled(page: str, name: str) -> str:
    """The page with every marked figure and table made again."""
    for maker in MAKERS:
        opened, closed = (len(re.findall(rf"<!-- {mark} -->", page)) for mark in (rf"{maker}(?: [^>]*)?", f"/{maker}"))
        if opened != closed:
            raise UnfaceError(f"{name}: {opened} marks <!-- {maker} … -->, {closed} <!-- /{maker} -->; close each")
    if found := re.search(r"^[ >*-]*<!-- [^/>][^>]* -->.+", page, flags=re.MULTILINE):
        # Markdown takes the whole of such a line for HTML, and ends the paragraph before it
        raise UnfaceError(f"{name}: a line begins with a mark ({found[0][:60]} …); put a word before it")
    marks = rf"<!-- (?P<name>{'|'.join(MAKERS)})(?: (?P<words>[^>]*?))? -->(?P<table>\n)?.*?<!-- /(?P=name) -->"
    return re.sub(marks, made, page, flags=re.DOTALL)


def made(mark: re.Match[str]) -> str:
    """What stands between the marks, and both marks."""
    name, words = mark["name"], (mark["words"] or "").split()
    try:
        text = MAKERS[name](*words)
    except TypeError as error:
        raise UnfaceError(f"<!-- {' '.join([name, *words])} -->: {name} takes other words than these") from error
    inside = text if isinstance(text, str) else "\n".join(text)
    inside = f"\n\n{inside.strip()}\n\n" if mark["table"] else inside
    return f"<!-- {' '.join([name, *words])} -->{inside}<!-- /{name} -->"


def size_of(path: str) -> str:
    """Of a file of the repository, in bytes."""
    return f"{(HERE.parent / path).stat().st_size:,}"


@cache
def audits() -> dict[str, Record]:
    return read_records()


def from_audits(maker: Maker, *words: str) -> str | Iterable[str]:
    return maker(audits(), *words)


FROM_AUDITS: tuple[Maker, ...] = (
    *(tables.every_probe, summary.worst_cases, summary.adjusted_cases, summary.left_out_cases, summary.kept_shares),
    *(summary.within_and_elsewhere, summary.against, summary.sweeps, summary.over_ranks),
    *(prose.tar, prose.tar_interval, prose.times, prose.adjusted, prose.lead, prose.speaks),
    *(prose.behind, prose.taken, prose.taken_adjusted, prose.of_the_shoot),
    *(prose.compared, prose.below, prose.above, prose.kept, prose.identities, prose.rank, prose.directions),
    *(prose.last_direction, prose.shuffled, prose.at_chance),
)
FROM_FINDINGS: tuple[Maker, ...] = (
    *(measured.table, measured.cell, measured.figure, speeds.speeds, speeds.speed),
    *(sizes.sizes, sizes.a_million, covered.coverage, covered.covered, size_of),
)
MAKERS: dict[str, Maker] = {
    **{maker.__name__: partial(from_audits, maker) for maker in FROM_AUDITS},
    **{maker.__name__: maker for maker in FROM_FINDINGS},
}


if __name__ == "__main__":
    main()
