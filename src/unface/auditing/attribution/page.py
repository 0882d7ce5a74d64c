"""Face or surroundings on the page: the table, a drawn face that is nobody's, and curves over blur and background."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import altair as alt
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from unface.auditing.attribution.words import attribution_tables, left_out_table, quality_table
from unface.page.charts import AXIS, GREY, GRID, Figure, Look, Rows, colour, dash, data, draw, looks_of
from unface.page.tables import Cell, Table, bounded, pairs, table
from unface.page.templates import render
from unface.result.attribution import AttributedSpace, EncoderAttribution
from unface.result.numbers import Share
from unface.result.parts import Section
from unface.result.words import percent

Levels = Callable[[AttributedSpace], Sequence[tuple[float, Share]]]
_SIDE = 224.0
_LONG = 1.15  # eyes to mouth, in distances between the eyes, of an ordinary face
_CENTRE = np.array([_SIDE / 2, _SIDE / 2])
_STRONGEST = 0.5  # opacity of the largest effect among an encoder's spaces
_REVEALED = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class _Drawn:
    """The figures of one encoder."""

    encoder: str
    faces: list[Figure]
    curves: list[Figure]
    similarities: Table | None


def section(encoders: Sequence[EncoderAttribution], looks: Mapping[str, Look] | None = None) -> Section:
    """``looks`` are those of a page that draws the same spaces elsewhere."""
    drawn = []
    for one in encoders:
        used = looks or looks_of([space.name for space in one.spaces])
        drawn.append(_Drawn(one.encoder, face_figures(one, used), _curve_figures(one, used), _similarity_table(one)))
    body = render(
        "unface.auditing.attribution:section.jinja",
        tables=attribution_tables(encoders),
        quality=quality_table(encoders),
        left_out=left_out_table(encoders),
        drawn=drawn,
    )
    return Section("attribution", "Face or surroundings", body)


def _curve_figures(one: EncoderAttribution, looks: Mapping[str, Look]) -> list[Figure]:
    """CPI over σ and over B, raw against erased; none where no triplet was to be had."""
    shown = [space for space in one.spaces if space.cpi is not None and space.b_star is not None]
    if not shown:
        return []
    return [
        _curve_figure(
            "Place preferred as faces are blurred",
            "blur of all faces, σ in pixels",
            _blurred,
            one.encoder,
            shown,
            looks,
        ),
        _curve_figure(
            "Place preferred as background is revealed",
            "share of the background seen, B",
            _seen,
            one.encoder,
            shown,
            looks,
        ),
    ]


def _similarity_table(one: EncoderAttribution) -> Table | None:
    """Behind the second chart: how alike the query is to its place and to its person."""
    rows = [
        (Cell(space.name), f"{level.share:g}", _cosine(level.to_context.value), _cosine(level.to_identity.value))
        for space in one.spaces
        if space.b_star is not None
        for level in space.b_star.at
    ]
    columns = ("space", "B", "cosine to another face in its place", "cosine to its face elsewhere")
    return table(f"Similarities as background is revealed, {one.encoder}", columns, rows) if rows else None


def _curve_figure(
    title: str,
    axis: str,
    levels: Levels,
    encoder: str,
    shown: Sequence[AttributedSpace],
    looks: Mapping[str, Look],
) -> Figure:
    used = [looks[space.name] for space in shown]
    rows: Rows = [
        {"look": space.name, "x": at, "share": share.value, "low": share.low, "high": share.high}
        for space in shown
        for at, share in levels(space)
    ]
    places = sorted({at for at, _ in levels(shown[0])})
    x = alt.X("x:Q", title=axis, scale=alt.Scale(domain=[places[0], places[-1]], nice=False), axis=_ticks(places))
    y = alt.Y(
        "share:Q",
        title="place preferred to person",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="~%", tickCount=5),
    )
    half = data([{"x": places[0], "share": 0.5}, {"x": places[-1], "share": 0.5}])
    layers = [
        half.mark_line(color=GREY, strokeWidth=1, opacity=0.8).encode(x=x, y=y),
        data(rows).mark_rule(strokeWidth=1, opacity=0.6).encode(x=x, y="low:Q", y2="high:Q", color=colour(used)),
        data(rows).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour(used), strokeDash=dash(used)),
    ]
    ends = "; ".join(
        f"{space.name} from {percent(levels(space)[0][1].value)} to {percent(levels(space)[-1][1].value)}"
        for space in shown
    )
    numbers = _numbers(f"{title}, {encoder}", axis, places, shown, levels)
    return Figure(title, draw(layers, f"{title}: {ends}"), tuple(used), numbers)


def _numbers(
    caption: str, axis: str, places: Sequence[float], shown: Sequence[AttributedSpace], levels: Levels
) -> Table:
    found = [dict(levels(space)) for space in shown]
    rows = [[Cell(f"{at:g}"), *(Cell(bounded(one[at]), pairs(one[at])) for one in found)] for at in places]
    return table(caption, (axis, *(space.name for space in shown)), rows)


def _blurred(space: AttributedSpace) -> Sequence[tuple[float, Share]]:
    return [(level.sigma, level.preferred) for level in space.cpi.at] if space.cpi else []


def _seen(space: AttributedSpace) -> Sequence[tuple[float, Share]]:
    return [(level.share, level.preferred) for level in space.b_star.at] if space.b_star else []


def _ticks(places: Sequence[float]) -> alt.Axis:
    return alt.Axis(values=list(places), format=".2~f", labelOverlap=False)


def _cosine(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def face_figures(one: EncoderAttribution, looks: Mapping[str, Look]) -> list[Figure]:
    """One for each space whose FII was measured; shades compare within an encoder."""
    shown = [space for space in one.spaces if space.fii is not None]
    largest = max((max(_drops(space)) for space in shown), default=0.0)
    return [_face_figure(one, space, looks[space.name], largest) for space in shown]


def _face_figure(one: EncoderAttribution, space: AttributedSpace, look: Look, largest: float) -> Figure:
    apart = _eyes_apart(one)
    semi = apart * np.array([1.2, 1.3 * _LONG]) / (1 if one.axes == "semi" else 2)
    face, ring = _drops(space)
    parts = [_scenery(), _features(apart), _shade(_ellipse(semi, 0.0), face, largest, look)]
    around = _ellipse(semi, _ring_width(semi))
    parts.append(_shade(f"{_ellipse(semi, 0.0)} {around}", ring, largest, look))
    parts.append(_line(around, AXIS, "5 3", 1.0))
    parts += [_line(_ellipse(semi, _reach(tuple(semi), share)), GREY, "1 4", 1.0) for share in _REVEALED]
    parts.append(_line(_ellipse(semi, 0.0), AXIS, "", 1.2))
    label = f"{space.name}: blurring the face takes {_number(face)} from similarity, as much background {_number(ring)}"
    if space.b_star is not None:
        seen = space.b_star.crossing.value
        parts.append(_line(_ellipse(semi, _reach(tuple(semi), seen)), look.colour, "", 2.5))
        label += f"; place counts for more than the face {_once(seen)}"
    head = Markup('<svg class="chart" width="224" height="224" viewBox="0 0 224 224" role="img" aria-label="{}">')
    svg = head.format(f"Drawn face, {label}") + Markup("").join(parts) + Markup("</svg>")
    return Figure(f"{one.encoder}, {space.name}", svg, note=f"{label}.")


def _drops(space: AttributedSpace) -> tuple[float, float]:
    assert space.fii is not None
    return space.fii.face_drop.value, space.fii.background_drop.value


def _eyes_apart(one: EncoderAttribution) -> float:
    """So that the ellipse covers as much of the canvas as it did on average."""
    half = 1.0 if one.axes == "semi" else 0.5
    return float(_SIDE * np.sqrt(one.quality.fcr.mean / (np.pi * 1.2 * 1.3 * _LONG * half**2)))


def _outline(semi: NDArray[np.float64], away: float) -> NDArray[np.float64]:
    """(n, 2): the ellipse, or the line at a distance around it."""
    turn = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    unit = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    normal = unit / semi
    return np.asarray(_CENTRE + unit * semi + away * normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _ellipse(semi: NDArray[np.float64], away: float) -> str:
    points = " L".join(f"{x:.1f} {y:.1f}" for x, y in _outline(semi, away))
    return f"M{points} Z"


def _ring_width(semi: NDArray[np.float64]) -> float:
    """At which a ring around an ellipse has the ellipse's own area: P·t + π·t² = π·a·b (Steiner)."""
    corners = _outline(semi, 0.0)
    around = float(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).sum())
    return float((np.sqrt(around**2 + 4 * np.pi * np.pi * semi.prod()) - around) / (2 * np.pi))


@cache
def _reach(semi: tuple[float, float], share: float) -> float:
    """How far from the ellipse the nearest ``share`` of the background goes."""
    if share <= 0:
        return 0.0
    axes = np.array(semi)
    grid = (np.indices((56, 56))[::-1].reshape(2, -1).T + 0.5) * (_SIDE / 56)
    outside = grid[(((grid - _CENTRE) / axes) ** 2).sum(axis=1) > 1]
    away = np.linalg.norm(outside[:, None] - _outline(axes, 0.0)[None], axis=2).min(axis=1)
    return float(np.quantile(away, min(share, 1.0)))


def _shade(path: str, drop: float, largest: float, look: Look) -> Markup:
    strength = _STRONGEST * max(drop, 0.0) / largest if largest > 0 else 0.0
    shape = Markup('<path d="{}" fill="{}" fill-rule="evenodd" fill-opacity="{}"/>')
    return shape.format(path, look.colour, f"{strength:.2f}")


def _line(path: str, colour: str, dashes: str, width: float) -> Markup:
    dash = Markup(' stroke-dasharray="{}"').format(dashes) if dashes else Markup("")
    line = Markup('<path d="{}" fill="none" stroke="{}" stroke-width="{}"{}/>')
    return line.format(path, colour, f"{width:g}", dash)


@cache
def _scenery() -> Markup:
    """A place: a window, a shelf and a plant."""
    lines = (
        "M12 14h58v74h-58z M41 14v74 M12 50h58",
        "M150 60h64 M158 60v-30h10v30 M172 60v-38h8v38 M186 60l6 -34 9 2 -5 32",
    )
    plant = (
        "M20 214h26l-4 -26h-18z M33 188c-2 -20 -14 -24 -20 -26 M33 188c0 -26 4 -34 14 -42 M33 188c4 -14 12 -18 20 -18"
    )
    frame = Markup('<rect x=".5" y=".5" width="223" height="223" fill="none" stroke="{}"/>').format(GREY)
    return frame + Markup("").join(_line(path, GRID, "", 2) for path in (*lines, plant))


def _features(apart: float) -> Markup:
    """Head, shoulders, eyes, nose and mouth, in distances between the eyes around the middle of the face."""
    head = "M-1.15 -.58a1.15 1.2 0 0 1 2.3 0c0 1.3 -.6 2 -1.15 2s-1.15 -.7 -1.15 -2z"
    neck = "M-.5 1.25v.5q-1.4 .1 -1.9 .9M.5 1.25v.5q1.4 .1 1.9 .9"
    eyes = "M-.7 -.58q.2 -.2 .4 0q-.2 .16 -.4 0M.3 -.58q.2 -.2 .4 0q-.2 .16 -.4 0"
    nose, mouth = "M0 -.42l-.14 .5q.14 .12 .28 0", "M-.38 .57q.38 .25 .76 0"
    group = Markup('<g transform="translate({} {}) scale({})" fill="none" stroke="{}" stroke-width="{}">{}</g>')
    paths = Markup("").join(Markup('<path d="{}"/>').format(path) for path in (head, neck, eyes, nose, mouth))
    return group.format(f"{_CENTRE[0]:g}", f"{_CENTRE[1]:g}", f"{apart:.1f}", AXIS, f"{1.4 / apart:.3f}", paths)


def _once(seen: float) -> str:
    if seen >= 1:
        return "only once all of the background is seen, or never"
    return f"once {percent(seen)} of the background is seen" if seen > 0 else "with no background in sight"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
