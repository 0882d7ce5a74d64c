"""Amounts of a gate as people say them."""

from collections.abc import Iterable

from unface.auditing.words import factor, in_percent
from unface.gate.outcome import Found, Unit


def amount(value: float, unit: Unit) -> str:
    """0.31 %, 3.1 times, −2.1 points."""
    size = abs(value)
    number = factor(size) if unit == "times chance" else in_percent(size)
    if unit == "difference":
        return f"{'−' if value < 0 else '+'}{number} points"
    sign = "−" if value < 0 else ""
    return f"{sign}{number} {'%' if unit == 'share' else 'times chance'}"


def measured(found: Found) -> str:
    """0.31 % [0.22, 0.43]: a value with its interval."""
    low, high = (amount(end, found.unit).split(" ")[0] for end in (found.low, found.high))
    return f"{amount(found.value, found.unit)} [{low}, {high}]"


def told_apart(value: float, limit: float, unit: Unit) -> tuple[str, str]:
    """Both, with more digits where two different numbers would read alike."""
    shown = amount(value, unit), amount(limit, unit)
    if shown[0] != shown[1]:
        return shown
    scale, name = (100, "%") if unit == "share" else (1, "times chance")
    return f"{scale * value:.9g} {name}", f"{scale * limit:.9g} {name}"


def listed(names: Iterable[object]) -> str:
    """raw, isp, random."""
    return ", ".join(str(name) for name in names) or "none"


def one_line(text: str) -> str:
    """Names come from files: nothing in them may break a line, steer a terminal or be illegal in XML."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
