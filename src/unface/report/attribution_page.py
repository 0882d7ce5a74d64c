"""attribution.html, and the same panel in report.html: drawn from the file alone, and over a face that is nobody's."""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from markupsafe import Markup

from unface.auditing.schema import AttributionResult, EncoderAttribution
from unface.report.attribution import attribution_table, left_out_table, quality_table
from unface.report.attribution_figures import curve_figures, similarity_table
from unface.report.cells import Table
from unface.report.draw import Figure
from unface.report.drawn_face import face_figures
from unface.report.looks import Look, looks_of
from unface.report.templates import environment, page_file, policy, write_page


class Shown(Protocol):
    """A picture to be put into the page, and what was done to it."""

    @property
    def caption(self) -> str: ...

    @property
    def jpeg(self) -> bytes: ...


@dataclass(frozen=True)
class Drawn:
    """The figures of one encoder."""

    encoder: str
    faces: list[Figure]
    curves: list[Figure]
    similarities: Table | None


@dataclass(frozen=True)
class Panel:
    """All that the templates place."""

    table: Table
    quality: Table
    left_out: Table | None
    drawn: list[Drawn]


def panel(encoders: Sequence[EncoderAttribution], looks: Mapping[str, Look] | None = None) -> Panel:
    """``looks`` are those of a page that draws the same spaces elsewhere."""
    drawn = []
    for one in encoders:
        used = looks or looks_of([space.name for space in one.spaces])
        drawn.append(Drawn(one.encoder, face_figures(one, used), curve_figures(one, used), similarity_table(one)))
    return Panel(attribution_table(encoders), quality_table(encoders), left_out_table(encoders), drawn)


def render_attribution(result: AttributionResult, faces: Sequence[Sequence[Shown]] = ()) -> str:
    """The page; the same bytes for the same file, and no picture of anybody unless ``faces`` are given."""
    page = environment().get_template("attribution.html.jinja")
    return page.render(
        result=result,
        attribution=panel(result.encoders),
        faces=[[(one.caption, base64.b64encode(one.jpeg).decode()) for one in row] for row in faces],
        style=Markup(page_file("report.css")),
        policy=policy(""),
    )


def write_attribution(
    result: AttributionResult, path: str | os.PathLike[str], *, faces: Sequence[Sequence[Shown]] = ()
) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    return write_page(render_attribution(result, faces), path)
