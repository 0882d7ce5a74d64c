"""Face-context attribution in words: the paper's table, what it rests on, and what was left out of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from unface.page.tables import NOT_MEASURED, Cell, Table, difference, pairs, table
from unface.result.attribution import AttributedSpace, AttributionQuality, EncoderAttribution
from unface.result.numbers import Mean, Share
from unface.result.words import count, interval, percent

MEASURES = ("FII", "CPI(0)", "CPI(8)", "ΔCPI, points", "σ*", "B*", "B* = 0", "B* = 1", "nearer to donor")
HALF = 4
"""Measures in the first of two tables."""
_COUNTED = {"picture": "pictures", "pairing": "pictures without a pair", "ring": "without a ring", "swap": "swaps"}


@dataclass(frozen=True)
class Measured:
    """A number, how certain it is, and what it was counted on."""

    value: str
    interval: str = ""
    counted: str = ""

    @property
    def cell(self) -> Cell:
        """For the page."""
        return Cell(f"{self.value} {self.interval}".strip(), self.counted)


def measures(space: AttributedSpace) -> tuple[Measured, ...]:
    """One for each of the measures."""
    fii = _signed(space.fii.index, "pair") if space.fii else Measured(NOT_MEASURED)
    if space.cpi is None or space.b_star is None:
        return fii, *[Measured(NOT_MEASURED)] * (len(MEASURES) - 1)
    cpi, b_star = space.cpi, space.b_star
    change, _, ends = difference(cpi.change.value, cpi.change.low, cpi.change.high).partition(" ")
    return (
        fii,
        _share(cpi.at[0].preferred),
        _share(cpi.at[-1].preferred),
        Measured(change, ends, count(cpi.change.of, "triplet")),
        _crossover(space),
        _threshold(space),
        _share(b_star.at_zero),
        _share(b_star.at_one),
        _share(cpi.donor_nearer),
    )


def attribution_tables(encoders: Sequence[EncoderAttribution]) -> list[Table]:
    """A row for each encoder and space; in two halves, which a page and a sheet of paper are wide enough for."""
    halves = {"Face against surroundings": slice(0, HALF), "How much background it takes": slice(HALF, None)}
    spaces = [(one, space) for one in encoders for space in one.spaces]
    return [
        table(
            caption,
            ("encoder, space", *MEASURES[part]),
            [
                (Cell(one.encoder, _what(space)), *(found.cell for found in measures(space)[part]))
                for one, space in spaces
            ],
        )
        for caption, part in halves.items()
    ]


def quality_table(encoders: Sequence[EncoderAttribution]) -> Table:
    """What the numbers rest on."""
    columns = ("encoder", "pictures used", "pairs", "swaps", "face's share", "padding", "ring's area off", "monotone")
    return table("What this rests on", columns, [_quality(one) for one in encoders])


def left_out_table(encoders: Sequence[EncoderAttribution]) -> Table | None:
    """How many could not be used, by reason; None where all could."""
    found = {(one.step, one.reason): None for each in encoders for one in each.quality.left_out}
    counts = [{(one.step, one.reason): one.count for one in each.quality.left_out} for each in encoders]
    rows = [[Cell(key[1], key[0]), *(Cell(f"{of.get(key, 0):,}") for of in counts)] for key in found]
    return table("Left out, by reason", ("reason", *(one.encoder for one in encoders)), rows) if rows else None


def left_out_words(quality: AttributionQuality) -> str:
    """Counted and named by reason, in one line."""
    parts = []
    for step, what in _COUNTED.items():
        reasons = [f"{one.count:,} ({one.reason})" for one in quality.left_out if one.step == step]
        if reasons:
            parts.append(f"{what}: {', '.join(reasons)}")
    return "; ".join(parts) or "nothing"


def _what(space: AttributedSpace) -> str:
    return space.name if space.rank is None else f"{space.name}, {count(space.rank, 'dimension')} removed"


def _signed(found: Mean, noun: str) -> Measured:
    value, low, high = (f"{number:+.3f}".replace("-", "−") for number in (found.value, found.low, found.high))
    return Measured(value, f"[{low}, {high}]", f"{count(found.of, noun)} of {people(found.identities)}")


def people(number: int) -> str:
    """1 person, 2 people."""
    return count(number, "person", "people")


def _share(found: Share) -> Measured:
    return Measured(percent(found.value), interval(found.low, found.high), f"{pairs(found)} triplets")


def _crossover(space: AttributedSpace) -> Measured:
    assert space.cpi is not None
    crossover = space.cpi.crossover
    drawn = f"{percent(crossover.crossing)} of draws cross ½"
    if crossover.value is None:
        return Measured("never", "", drawn)
    ends = "" if crossover.low is None or crossover.high is None else f"[{crossover.low:.1f}, {crossover.high:.1f}]"
    return Measured(f"{crossover.value:.1f}", ends, drawn)


def _threshold(space: AttributedSpace) -> Measured:
    assert space.b_star is not None
    median, crossing = space.b_star.median, space.b_star.crossing
    between = f"{crossing.value:.2f} [{crossing.low:.2f}, {crossing.high:.2f}] between grid points"
    return Measured(f"{median.value:g}", f"[{median.low:g}, {median.high:g}]", between)


def _quality(one: EncoderAttribution) -> tuple[Cell | str, ...]:
    found, raw = one.quality, one.spaces[0].b_star
    monotone = Cell(NOT_MEASURED)
    if raw is not None:
        monotone = Cell(f"{percent(raw.rising.value)} rising", f"{percent(raw.flat.value)} flat, in the raw space")
    return (
        Cell(one.encoder, f"{one.canvas} pixels; faces by {one.detector}, swaps by {one.swap}"),
        Cell(f"{found.usable:,} of {found.pictures:,}", people(found.identities)),
        f"{found.pairs:,}",
        Cell(f"{found.swaps:,} of {found.swaps_tried:,}"),
        Cell(f"{found.fcr.mean:.3f} ± {found.fcr.std:.3f}", f"{one.axes} axes; 0.33 is wanted"),
        Cell(percent(found.padding.mean), f"at most {percent(found.padding.largest)}"),
        Cell(percent(found.area_difference.mean), f"at most {percent(found.area_difference.largest)}"),
        monotone,
    )


def attribution_line(one: EncoderAttribution) -> str:
    """All spaces of an encoder in one line, for the foot of an audit."""
    spaces = []
    for space in one.spaces:
        fii, cpi, *_ = measures(space)
        b_star = measures(space)[MEASURES.index("B*")]
        spaces.append(f"{space.name}: FII {fii.value} {fii.interval}, CPI(0) {cpi.value}, B* {b_star.value}")
    return f"Face-context attribution, {count(one.quality.pairs, 'pair')}: {'; '.join(spaces)}."
