"""attribution.html and the same on the terminal: drawn from attribution.json alone."""

import base64
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unface.auditing.attribution.page import section
from unface.auditing.attribution.words import HALF, MEASURES, left_out_words, measures, people
from unface.page.tables import print_safely
from unface.page.templates import render_page
from unface.report.opening import Grid, Opening
from unface.result.attribution import AttributionResult, EncoderAttribution
from unface.result.words import count


class Shown(Protocol):
    """A picture to be put into the page, and what was done to it."""

    @property
    def caption(self) -> str: ...

    @property
    def jpeg(self) -> bytes: ...


def render_attribution(result: AttributionResult, faces: Sequence[Sequence[Shown]] = ()) -> str:
    """The page; the same bytes for the same file, and no picture of anybody unless ``faces`` are given."""
    return render_page(
        "unface.report:attribution.html.jinja",
        result=result,
        opening=_opening(result),
        attribution=section(result.encoders),
        faces=[[(one.caption, base64.b64encode(one.jpeg).decode()) for one in row] for row in faces],
    )


def _opening(result: AttributionResult) -> Opening:
    """Two sentences, the share of pictures that place decides, and what follows; no policy is about it."""
    tested = (
        f"Tested: {count(result.source.pictures, 'picture')} of {people(result.source.identities)}. When two pictures "
        "of one person get similar vectors, is that because of the face or because of what is around it?"
    )
    sides: list[str] = []
    said, grids = [], []
    for one in result.encoders:
        raw = one.spaces[0]
        found = {}
        if raw.fii is not None:
            found["blurring"] = _side(raw.fii.index.low > 0, raw.fii.index.high < 0)
        if raw.cpi is not None:
            placed = raw.cpi.at[0].preferred
            found["swapping faces"] = _side(placed.high < 0.5, placed.low > 0.5)
            grids.append(Grid(one.encoder, placed.value, _SQUARES, aside=True))
        if found:
            said.append(f"{one.encoder}: {_agreed(found)}.")
            sides += found.values()
    how_bad = " ".join(said) or "No pair of pictures could be compared."
    steps = tuple(step for side, step in _STEPS.items() if side in sides)
    return Opening("", "", "", (), "", "", tested, how_bad, tuple(grids), _TWO_TESTS if grids else "", steps)


def _side(face: bool, surroundings: bool) -> str:
    return "the face" if face else "the surroundings" if surroundings else ""


def _agreed(found: dict[str, str]) -> str:
    """What the tests say together; by test, the side that counts for more."""
    clear = {test: side for test, side in found.items() if side}
    if len(set(clear.values())) > 1:
        return "the tests disagree; " + ", ".join(f"{test} points to {side}" for test, side in clear.items())
    if not clear:
        return "no clear difference"
    (test, side), alone = next(iter(clear.items())), len(clear) < len(found)
    return f"{side} counts for more" + (f", shown by {test} alone" if alone else "")


_TWO_TESTS = (
    "Blurring: the face or as much of the background is blurred, and what that changes is compared. Swapping faces: "
    "another face is put into the picture."
)
_SQUARES = "pictures are nearer to another face in the same place than to their own face elsewhere"
_STEPS = {
    "the face": "Treat these vectors as data about people: measure with 'unface audit' how often photos are matched.",
    "the surroundings": "Photos may be matched by where they were taken: audit with --context, which adjusts for it.",
}


def print_attribution(result: AttributionResult, console: Console) -> None:
    """What it says; the paper's table in two halves, which fit eighty columns; denominators and what was left out."""
    opening = _opening(result)
    print_safely(console, Text(opening.how_bad, style="bold"))
    print_safely(console, Text(opening.footnote or opening.tested, style="dim"))
    console.print()
    for part in (slice(0, HALF), slice(HALF, None)):
        print_safely(console, _table(result, part))
        console.print()
    for one in result.encoders:
        for line in _below(one):
            print_safely(console, Text(line))
    for note in result.source.notes:
        print_safely(console, Text(f"· reading: {note}"), style="dim")


def _table(result: AttributionResult, part: slice) -> Table:
    """Two lines for each encoder and space: the numbers, and under them their intervals."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("encoder, space", *MEASURES[part]):
        table.add_column(column, overflow="fold")
    for one in result.encoders:
        for space in one.spaces:
            cells = [Text(f"{found.value}\n{found.interval}") for found in measures(space)[part]]
            table.add_row(Text(f"{one.encoder}\n{space.name}"), *cells)
    return table


def _below(one: EncoderAttribution) -> tuple[str, str]:
    found, raw = one.quality, one.spaces[0]
    triplets = count(raw.cpi.change.of, "triplet") if raw.cpi else "no triplets"
    ringed = count(raw.fii.index.of, "pair") if raw.fii else "no pairs"
    used = (
        f"{one.encoder}: {found.usable:,} of {count(found.pictures, 'picture')} used, {people(found.identities)}; "
        f"FII on {ringed}, CPI and B* on {triplets} ({found.swaps:,} of {count(found.swaps_tried, 'swap')} worked)"
    )
    return used, f"{one.encoder}: left out {left_out_words(found)}"
