"""Numbers as people say them; every sentence of an audit is put together from these."""

import math
import re

ONE_WORD = re.compile(
    r"FAR \d[\d.]*(?:e-\d+| %)?|(?<![\w.#])\d[\d.]*e-\d+|k = \d+|--[a-z][a-z-]+"
    r"|(?<![\w.#])[~−+]?\d[\d.,]* [%×](?: \[[^\]<]{1,30}\])?|[−+]\d[\d.,]* \[[^\]<]{1,30}\]"
)
"""A rate, a share with its interval, a number of pictures, an option: no line ends inside one."""


def percent(value: float) -> str:
    """8.4 %, 0.31 %, 0.0040 %: two significant digits below ten percent."""
    return f"{in_percent(value)} %"


def in_percent(value: float) -> str:
    """The same without the sign: 8.4, 0.31."""
    return f"{100 * value:.{decimals(100 * value)}f}"


def decimals(percentage: float) -> int:
    """That show two significant digits below ten; never more than a dozen."""
    if percentage == 0 or abs(percentage) >= 10 or math.isnan(percentage):
        return 1
    return min(max(1, 1 - math.floor(math.log10(abs(percentage)))), 12)


def interval(low: float, high: float) -> str:
    """[7.1, 9.9] in percent."""
    return f"[{in_percent(low)}, {in_percent(high)}]"


def rate(far: float) -> str:
    """1e-4, 2.5e-5, 0.05: a false-accept rate as people of the field write it."""
    return f"{far:g}" if far >= 0.01 else re.sub(r"\.?0*e-0*", "e-", f"{far:e}")


def one_in(far: float) -> str:
    """One false match in 10,000."""
    return f"one false match in {round(1 / far):,}"


def rough(resolution: str) -> str:
    """The sentence that ends a verdict at a coarse rate; nothing for a resolved one."""
    return " That is rough: few people set the threshold (coarse)." if resolution == "coarse" else ""


def times(value: float) -> str:
    """840 times, 1.3 times."""
    return f"{factor(value)} times"


def factor(value: float) -> str:
    """The same without the word: 840, 1.3."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """1 identity, 2 identities."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def signed_points(value: float) -> str:
    """−3.8, +0.12: a difference of two shares, in points of a percent."""
    return f"{'−' if value < 0 else '+'}{in_percent(abs(value))}"
