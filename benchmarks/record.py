"""What a benchmark found, kept in docs/measured/speed, and the tables and figures that pages show of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from studies.measured import HOME, Cell, Findings, Table, heading, read_findings, row, write_findings, written

from benchmarks.ratios import Ratio
from unface import UnfaceError

HERE = Path(__file__).resolve().parent
COLUMNS = {"claim": "", "measured": ".3g", "bound": "g", "is": "", "seen": ""}

# scale_speed measures two million vectors of 512 dimensions in single precision.
VECTORS, VECTOR_BYTES, CORES = 2_000_000, 512 * 4 + 16, 16
POWERS = {6: "10⁶", 7: "10⁷", 8: "10⁸", 9: "10⁹", 10: "10¹⁰"}

INTERVALS = {"default": "(default)", "seeds": "over seeds", "pairs": "Wilson on pairs"}


def write_ratios(benchmark: str, ratios: list[Ratio], where: str, home: Path = HOME) -> None:
    """Replace what was recorded of this benchmark before; nothing where it was skipped."""
    rows: list[list[Cell]] = [
        [ratio.name, _short(ratio.value), ratio.bound, "at least" if ratio.at_least else "at most", ratio.detail]
        for ratio in ratios
    ]
    if rows:
        command = f"python benchmarks/run.py {benchmark}"
        tables = {"ratios": Table(columns=COLUMNS, rows=rows)}
        figures = {name: _short(seen) for ratio in ratios for name, seen in ratio.figures.items()}
        write_findings(f"speed/{benchmark}", command=command, where=where, tables=tables, figures=figures, home=home)


def speed_table(*benchmarks: str) -> Iterator[str]:
    """Every claim of these benchmarks, what was measured, its bound, and where."""
    yield from heading(["claim", "measured", "bound", "where"])
    for benchmark in benchmarks:
        findings = read_findings(f"speed/{benchmark}")
        for claim, value, bound, limit, _ in _ratios(findings):
            sign = "≥" if limit == "at least" else "≤"
            yield row([str(claim), _three_digits(value), f"{sign} {written(bound, 'g')}", findings.where])


def speed(benchmark: str, claim: int, how: str) -> str:
    """One number of a benchmark, whose claims are counted from 1."""
    return written(_ratios(read_findings(f"speed/{benchmark}"))[claim - 1][1], how)


def apply_sizes() -> Iterator[str]:
    """``apply`` over so many vectors: arithmetic from what two cores took for two million."""
    wall, cpu = _seconds("apply_wall_seconds"), _seconds("apply_cpu_seconds")
    ten_machines = f"ten machines of {CORES} cores"
    yield from heading(
        ["vectors", "bytes read, and as many written", "CPU-hours", "2 cores", f"{CORES} cores", ten_machines]
    )
    for power, vectors in POWERS.items():
        count = 10**power
        size, hours = count * VECTOR_BYTES, cpu * count / 3600
        size_text = f"{_two_digits(size / 1e12)} TB" if size >= 1e12 else f"{_two_digits(size / 1e9)} GB"
        hours_text = f"{hours:.1g}" if hours < 1 else _two_digits(hours)
        many = _time(cpu * count / CORES / 10) if power >= 8 else ""
        yield row([vectors, size_text, hours_text, _time(wall * count), _time(cpu * count / CORES), many])


def seconds_a_million(key: str, how: str) -> str:
    """Seconds for a million vectors."""
    return format(1e6 * _seconds(key), how)


def audit_coverage_output() -> Iterator[str]:
    """All that benchmarks/audit_coverage.py printed, as a block of text."""
    yield from ("```text", *_lines("audit-coverage"), "```")


def coverage_output() -> Iterator[str]:
    """All that benchmarks/coverage.py printed, as a block of text."""
    yield from ("```text", *_lines("coverage"), "```")


def covered(file: str, kind: str, of: str, how: str) -> str:
    """The least and the most that one kind of interval covers, of "TAR" (whole and half) or of "difference"."""
    lines = [line for line in _lines(file) if INTERVALS[kind] in line]
    shares = [float(number) for line in lines for number in re.findall(rf"{of}(?:, half)? +([\d.]+)", line)]
    if not shares:
        raise UnfaceError(f"benchmarks/{file}.txt: says nothing of {of} by {kind}; run benchmarks/coverage.py again")
    return " to ".join(format(end, how) for end in (min(shares), max(shares)))


def _lines(file: str) -> list[str]:
    return (HERE / f"{file}.txt").read_text(encoding="utf-8").splitlines()


def _ratios(findings: Findings) -> list[list[Cell]]:
    return findings.tables["ratios"].rows


def _seconds(key: str) -> float:
    """For one vector."""
    seconds = read_findings("speed/scale_speed").figures[key]
    assert isinstance(seconds, float | int)
    return seconds / VECTORS


def _short(number: float) -> float:
    """To more digits than a timing is worth."""
    return float(f"{number:.4g}")


def _three_digits(value: Cell) -> str:
    """Three digits, or whole numbers from a hundred on."""
    if isinstance(value, list):
        return " to ".join(map(_three_digits, value))
    assert isinstance(value, float | int)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _time(seconds: float) -> str:
    """12 s, 2.0 min, 3.3 h."""
    for unit, name in ((1, "s"), (60, "min")):
        if seconds < 100 * unit:
            return f"{_two_digits(seconds / unit)} {name}"
    return f"{_two_digits(seconds / 3600)} h"


def _two_digits(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"
