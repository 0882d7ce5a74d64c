"""An Altair chart as SVG that lives in the page: it prints, needs no script, and takes the page's fonts and colours.

Only numbers and this program's own words go into a chart; names from an audit stand beside it as escaped text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt
import vl_convert
from markupsafe import Markup

from unface.page.tables import Table
from unface.result.audit import AuditResult

INK, GREY, AXIS, GRID = "#1f2328", "#767c85", "#4a4f57", "#e3e5e8"
ERASERS = ("#1c5d99", "#a8501c", "#2f7a4f", "#7a4a96")
# Of the maps alone, where each colour is a person.
PEOPLE = ("#3f79b0", "#c2692f", "#3f8a5f", "#a4508b", "#8a7420", "#5b62b8", "#b0484f", "#2b8794")
_CONTROLS = (((2, 2), "cross"), ((6, 3), "square"), ((10, 3), "triangle-down"), ((4, 6), "triangle-up"))
SHAPES = ("circle", "diamond", "triangle-up", "square")

# As wide as a phone shows without scaling, so that text in a chart is never small; wider pages show two in a row.
WIDTH, HEIGHT = 344, 250
Rows = list[dict[str, float | int | str]]


@dataclass(frozen=True)
class Look:
    """How one space is drawn, everywhere on the page."""

    name: str
    colour: str
    dash: tuple[int, int]
    shape: str


@dataclass(frozen=True)
class Figure:
    """A chart with its title, what it shows in one sentence for those who cannot see it, and its numbers."""

    title: str
    svg: Markup
    looks: tuple[Look, ...] = ()
    table: Table | None = None
    note: str = ""


def draw(layers: list[alt.Chart], label: str, *, width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """Layers upon each other, as SVG that a screen reader reads as ``label``."""
    # In one call: each of altair's configure_… methods would copy the chart with all its rows.
    chart = alt.layer(
        *layers,
        width=width,
        height=height,
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        config=alt.Config(
            background="transparent",
            padding=4,
            view=alt.ViewConfig(stroke=None),
            axis=alt.AxisConfig(
                domainColor=GRID,
                gridColor=GRID,
                tickColor=GRID,
                labelColor=AXIS,
                titleColor=AXIS,
                labelFontSize=11,
                titleFontSize=12,
                titleFontWeight="normal",
                titlePadding=6,
            ),
            axisX=alt.AxisConfig(labelFlush=False, tickCount=6),
        ),
    )
    return _inline(vl_convert.vegalite_to_svg(chart.to_dict(validate=False)), label)


def data(rows: Rows) -> alt.Chart:
    """A chart of these rows, still without marks."""
    return alt.Chart({"values": rows})


def thinned(values: Sequence[float]) -> list[tuple[int, float]]:
    """(position from one, value), at most three hundred of them: a line needs no more."""
    step = max(1, -(-len(values) // 300))
    return [(1 + index, values[index]) for index in range(0, len(values), step)]


def landmarks(values: Sequence[float], *more: int) -> list[tuple[int, float]]:
    """The same at 1, 2, 4, 8 … and the last, and where else is asked: enough for a table."""
    doubling = [2**power for power in range(len(values).bit_length())]
    wanted = {*doubling, len(values), *more}
    return [(position, values[position - 1]) for position in sorted(wanted) if 1 <= position <= len(values)]


def colour(shown: list[Look]) -> alt.Color:
    """Colour by the field ``look``; the key stands in the page."""
    scale = alt.Scale(domain=[look.name for look in shown], range=[look.colour for look in shown])
    return alt.Color("look:N", scale=scale, legend=None)


def dash(shown: list[Look]) -> alt.StrokeDash:
    """The same for dashes."""
    scale = alt.Scale(domain=[look.name for look in shown], range=[list(look.dash) for look in shown])
    return alt.StrokeDash("look:N", scale=scale, legend=None)


def shape(shown: list[Look]) -> alt.Shape:
    """The same for the shapes of points."""
    scale = alt.Scale(domain=[look.name for look in shown], range=[look.shape for look in shown])
    return alt.Shape("look:N", scale=scale, legend=None)


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """Of spaces without an audit around them: the first is raw, the others are erasers."""
    raw, *erasers = names
    return {raw: Look(raw, INK, (1, 0), "circle"), **{name: _eraser(name, n) for n, name in enumerate(erasers)}}


def looks(result: AuditResult, swept: Mapping[str, bool] | None = None) -> dict[str, Look]:
    """The look of each space by its name: ink for raw, colour for erasers, grey for controls.

    ``swept`` are methods of a sweep, and whether each is a control; they look like the first space that they made.
    """
    swept = swept or {}
    control: dict[str, bool] = {}
    for space in result.spaces[1:]:
        control[space.name] = space.erasure is not None and space.erasure.control
    methods = {space.erasure.method: space.name for space in reversed(result.spaces) if space.erasure}
    control |= {name: swept[name] for name in swept if name not in control and name not in methods}
    found = {result.raw.name: Look(result.raw.name, INK, (1, 0), "circle")}
    erasers = [name for name in control if not control[name] and name not in found]
    for index, name in enumerate(erasers):
        found[name] = _eraser(name, index)
    for index, name in enumerate(name for name in control if control[name] and name not in found):
        found[name] = Look(name, GREY, *_CONTROLS[index % len(_CONTROLS)])
    found |= {name: replace(found[methods[name]], name=name) for name in swept if name in methods and name not in found}
    return found


def _eraser(name: str, index: int) -> Look:
    """Past the last colour a dash tells them apart."""
    dash = (1, 0) if index < len(ERASERS) else (8, 3)
    return Look(name, ERASERS[index % len(ERASERS)], dash, SHAPES[index % len(SHAPES)])


def _inline(svg: str, label: str) -> Markup:
    """Without namespaces, backgrounds and marks for assistive technology, which reads the label instead."""
    svg = re.sub(r' aria-label="rank (\d+)"', r' data-rank="\1"', svg)
    svg = re.sub(r'<path class="(?:background|foreground)"[^>]*/>', "", svg)
    svg = re.sub(r' (?:aria-[a-z]+|role|pointer-events|font-family|class)="[^"]*"', "", svg)
    # A tenth of a pixel is enough for marks; what axes say stays as it is.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d)\d+", r"\1", tag[0]), svg.replace(' opacity="1"', ""))
    head = re.match(r'<svg[^>]* width="(\d+)" height="(\d+)"[^>]*>(?:<rect[^>]*/>)?', svg)
    assert head is not None, "vl-convert writes its width and height"
    size = Markup('width="{0}" height="{1}" viewBox="0 0 {0} {1}"').format(head[1], head[2])
    # Only numbers and words of this program are in the drawing, so it is safe as it is; the label may hold names.
    return Markup('<svg class="chart" {} role="img" aria-label="{}">').format(size, label) + Markup(svg[head.end() :])
