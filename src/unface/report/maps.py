"""t-SNE of some test identities before and after, numbered and never named."""

import altair as alt

from unface.auditing.schema import AuditResult, Map
from unface.report.draw import Figure, Rows, data, draw
from unface.report.looks import PEOPLE, SHAPES

# A map of more points is a cloud, and makes the page heavy.
_POINTS = 1000


def map_figures(result: AuditResult) -> list[Figure]:
    """One for each space; the same person has the same mark in all."""
    return [_map(found) for found in result.maps]


def _map(found: Map) -> Figure:
    people = list(dict.fromkeys(found.identity))
    fitting = max(1, round(len(people) * min(1.0, _POINTS / max(len(found.x), 1))))
    shown = {identity: index for index, identity in enumerate(people[:fitting])}
    rows: Rows = [
        {"x": x, "y": y, "hue": shown[who] % len(PEOPLE), "form": shown[who] // len(PEOPLE) % len(SHAPES)}
        for x, y, who in zip(found.x, found.y, found.identity, strict=True)
        if who in shown
    ]
    hues = alt.Scale(domain=list(range(len(PEOPLE))), range=list(PEOPLE))
    forms = alt.Scale(domain=list(range(len(SHAPES))), range=list(SHAPES))
    plain = alt.Scale(zero=False, nice=False)
    layer = data(rows).mark_point(filled=True, size=30, opacity=0.85, aria=False)
    svg = draw(
        [
            layer.encode(
                x=alt.X("x:Q", axis=None, scale=plain),
                y=alt.Y("y:Q", axis=None, scale=plain),
                color=alt.Color("hue:N", scale=hues, legend=None),
                shape=alt.Shape("form:N", scale=forms, legend=None),
            )
        ],
        f"Map of {len(rows)} vectors of {len(shown)} test identities in {found.space}, coloured by identity",
        height=320,
    )
    left_out = f", {len(people) - len(shown)} more not drawn" if len(people) > len(shown) else ""
    note = f"{len(rows)} vectors of {len(shown)} test identities{left_out}; perplexity {found.perplexity:g}."
    return Figure(found.space, svg, note=note)
