"""Face-context attribution on the terminal: the paper's table, and below it what the numbers rest on."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unface.auditing.schema import AttributionResult, EncoderAttribution
from unface.auditing.words import count
from unface.report.attribution import MEASURES, left_out_words, people, said

_HALF = 4


def print_attribution(result: AttributionResult, console: Console) -> None:
    """The paper's table in two halves, which fit eighty columns; then denominators and what was left out."""
    for part in (slice(0, _HALF), slice(_HALF, None)):
        console.print(_table(result, part))
        console.print()
    for one in result.encoders:
        for line in _below(one):
            console.print(Text(line), soft_wrap=True)
    for note in result.source.notes:
        console.print(Text(f"· reading: {note}"), style="dim", soft_wrap=True)


def _table(result: AttributionResult, part: slice) -> Table:
    """Two lines for each encoder and space: the numbers, and under them their intervals."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("encoder, space", *MEASURES[part]):
        table.add_column(column, overflow="fold")
    for one in result.encoders:
        for space in one.spaces:
            cells = [Text(f"{found.value}\n{found.interval}") for found in said(space)[part]]
            table.add_row(Text(f"{one.encoder}\n{space.name}"), *cells)
    return table


def attribution_line(one: EncoderAttribution) -> str:
    """All spaces of an encoder in one line, for the foot of an audit."""
    spaces = []
    for space in one.spaces:
        fii, cpi, *_ = said(space)
        b_star = said(space)[MEASURES.index("B*")]
        spaces.append(f"{space.name}: FII {fii.value} {fii.interval}, CPI(0) {cpi.value}, B* {b_star.value}")
    return f"Face-context attribution, {count(one.quality.pairs, 'pair')}: {'; '.join(spaces)}."


def _below(one: EncoderAttribution) -> tuple[str, str]:
    found, raw = one.quality, one.spaces[0]
    triplets = count(raw.cpi.change.of, "triplet") if raw.cpi else "no triplets"
    ringed = count(raw.fii.index.of, "pair") if raw.fii else "no pairs"
    used = (
        f"{one.encoder}: {found.usable:,} of {count(found.pictures, 'picture')} used, {people(found.identities)}; "
        f"FII on {ringed}, CPI and B* on {triplets} ({found.swaps:,} of {count(found.swaps_tried, 'swap')} worked)"
    )
    return used, f"{one.encoder}: left out {left_out_words(found)}"
