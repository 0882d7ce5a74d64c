"""t-SNE of some test identities before and after, drawn; people are numbered and never named."""

import altair as alt

from unface.auditing.maps import Map
from unface.page.charts import PEOPLE, SHAPES, Figure, Rows, data, draw
from unface.page.templates import render
from unface.result.parts import Section

# A map of more points is a cloud, and makes the page heavy.
_POINTS = 1000
_TEXT = (
    "Vectors of some test people laid out on a plane by t-SNE; one colour and shape is one person. Tight clumps are "
    "people that the eye can separate; their absence proves nothing."
)


def section(maps: list[Map]) -> Section:
    """One map for each space; the same person has the same mark in all."""
    return Section("maps", "Before and after", render("figures.jinja", figures=[_map(one) for one in maps], text=_TEXT))


def _map(drawn: Map) -> Figure:
    people = list(dict.fromkeys(drawn.identity))
    fitting = max(1, round(len(people) * min(1.0, _POINTS / max(len(drawn.x), 1))))
    shown = {identity: index for index, identity in enumerate(people[:fitting])}
    rows: Rows = [
        {"x": x, "y": y, "hue": shown[who] % len(PEOPLE), "form": shown[who] // len(PEOPLE) % len(SHAPES)}
        for x, y, who in zip(drawn.x, drawn.y, drawn.identity, strict=True)
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
        f"Map of {len(rows)} vectors of {len(shown)} test identities in {drawn.space}, coloured by identity",
        height=320,
    )
    left_out = f", {len(people) - len(shown)} more not drawn" if len(people) > len(shown) else ""
    note = f"{len(rows)} vectors of {len(shown)} test identities{left_out}; perplexity {drawn.perplexity:g}."
    return Figure(drawn.space, svg, note=note)
