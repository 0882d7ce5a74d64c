"""The table of docs/sizing.md: arithmetic from what two cores took for two million vectors."""

from collections.abc import Iterator

from studies.measured import read_findings
from studies.tables import heading, row

VECTORS, DIM, BYTES, CORES = 2_000_000, 512, 4, 16
POWERS = {6: "10⁶", 7: "10⁷", 8: "10⁸", 9: "10⁹", 10: "10¹⁰"}


def sizes() -> Iterator[str]:
    """``apply`` over so many vectors."""
    wall, cpu = a_vector("apply_wall_seconds"), a_vector("apply_cpu_seconds")
    ten_machines = f"ten machines of {CORES} cores"
    columns = ["vectors", "bytes read, and as many written", "CPU-hours", "2 cores", f"{CORES} cores", ten_machines]
    yield from heading(columns)
    for power, vectors in POWERS.items():
        count = 10**power
        many = time(cpu * count / CORES / 10) if power >= 8 else ""
        cells = [size(count * (DIM * BYTES + 16)), hours(cpu * count), time(wall * count), time(cpu * count / CORES)]
        yield row([vectors, *cells, many])


def a_million(key: str, how: str) -> str:
    """Seconds for a million vectors, as a sentence says them."""
    return format(1e6 * a_vector(key), how)


def a_vector(key: str) -> float:
    seconds = read_findings("speed/scale_speed").figures[key]
    assert isinstance(seconds, float | int)
    return seconds / VECTORS


def size(count: float) -> str:
    """2.1 GB, 21 TB."""
    unit, name = (1e12, "TB") if count >= 1e12 else (1e9, "GB")
    return f"{two_digits(count / unit)} {name}"


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1g}" if seconds < 3600 else two_digits(seconds / 3600)


def time(seconds: float) -> str:
    """12 s, 2.0 min, 3.3 h."""
    for unit, name, most in ((1, "s", 100), (60, "min", 100)):
        if seconds < unit * most:
            return f"{two_digits(seconds / unit)} {name}"
    return f"{two_digits(seconds / 3600)} h"


def two_digits(number: float) -> str:
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"
