"""What a benchmark found, kept in docs/measured/speed, and the table of it all that docs/results.md shows."""

from collections.abc import Iterator
from pathlib import Path

from studies.measured import HOME, Cell, Findings, Table, read_findings, said, write_findings
from studies.tables import heading, row

from benchmarks.ratios import Ratio

COLUMNS = {"claim": "", "measured": ".3g", "bound": "g", "is": "", "seen": ""}


def write_ratios(benchmark: str, ratios: list[Ratio], where: str, home: Path = HOME) -> None:
    """In place of what was recorded of this benchmark before; nothing where it was skipped."""
    rows: list[list[Cell]] = [
        [ratio.name, short(ratio.value), ratio.bound, "at least" if ratio.at_least else "at most", ratio.detail]
        for ratio in ratios
    ]
    if rows:
        command = f"python benchmarks/run.py {benchmark}"
        tables = {"ratios": Table(columns=COLUMNS, rows=rows)}
        figures = {name: short(seen) for ratio in ratios for name, seen in ratio.figures.items()}
        write_findings(f"speed/{benchmark}", command=command, where=where, tables=tables, figures=figures, home=home)


def speeds(*benchmarks: str) -> Iterator[str]:
    """Every claim of these benchmarks, what was measured, what it must keep to, and where."""
    yield from heading(["claim", "measured", "bound", "where"])
    for benchmark in benchmarks:
        found = read_findings(f"speed/{benchmark}")
        for claim, value, bound, limit, _ in ratios_of(found):
            sign = "≥" if limit == "at least" else "≤"
            yield row([str(claim), shown(value), f"{sign} {said(bound, 'g')}", found.where])


def speed(benchmark: str, claim: str, how: str) -> str:
    """One number of a benchmark, whose claims are counted from 1, as a sentence says it."""
    return said(ratios_of(read_findings(f"speed/{benchmark}"))[int(claim) - 1][1], how)


def ratios_of(found: Findings) -> list[list[Cell]]:
    return found.tables["ratios"].rows


def short(number: float) -> float:
    """To more digits than a timing is worth."""
    return float(f"{number:.4g}")


def shown(value: Cell) -> str:
    """Three digits, or whole numbers from a hundred on."""
    if isinstance(value, list):
        return " to ".join(map(shown, value))
    assert isinstance(value, float | int)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
