"""Pages taken apart: their tables in plain words, and their charts as they were before they became SVG."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import altair as alt
import pytest
from markupsafe import Markup

from unface.page.charts import Look
from unface.page.tables import Table
from unface.result.parts import Section

Layer = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """Each layer with its mark, its rows and its channels."""

    layers: list[Layer]
    label: str
    height: int | None = None


def charts_of(monkeypatch: pytest.MonkeyPatch, part: str) -> list[Chart]:
    """Every chart that the page of a part draws from now on, in order."""
    page, drawn = import_module(f"unface.auditing.{part}.page"), list[Chart]()

    def draw(layers: list[alt.Chart], label: str, *, height: int | None = None) -> Markup:
        drawn.append(Chart([_plain(one.to_dict(validate=False)) for one in layers], label, height))
        return Markup("<svg></svg>")

    monkeypatch.setattr(page, "draw", draw)
    return drawn


def tables_of(monkeypatch: pytest.MonkeyPatch, module: str) -> list[Table]:
    """Every table that a module makes from now on."""
    holder, made = import_module(module), list[Table]()
    real = holder.table

    def table(*arguments: Any) -> Table:
        made.append(real(*arguments))
        return made[-1]

    monkeypatch.setattr(holder, "table", table)
    return made


def _plain(layer: Layer) -> Layer:
    (rows,) = layer["datasets"].values()
    return {"mark": layer["mark"], "rows": rows, **layer["encoding"]}


def outline(found: list[Section | str]) -> list[tuple[str, str, int] | str]:
    """Sections by anchor, title and order; what is said to be missing as it is."""
    return [(one.anchor, one.title, one.order) if isinstance(one, Section) else one for one in found]


def words(table: Table | None) -> list[list[str]]:
    """Headings, then cells: what is small follows a bar, what is strong stands in stars."""
    assert table is not None
    rows = [[f"*{cell.text}*" if cell.strong else cell.text for cell in row] for row in table.rows]
    small = [[f" | {cell.small}" if cell.small else "" for cell in row] for row in table.rows]
    cells = [[a + b for a, b in zip(one, two, strict=True)] for one, two in zip(rows, small, strict=True)]
    return [list(table.columns), *cells]


def quantity(field: str, title: str | None = None, **more: Any) -> Layer:
    """A channel of numbers."""
    return {"field": field, "type": "quantitative", **({} if title is None else {"title": title}), **more}


def by_look(looks: list[Look], *range_: Any) -> Layer:
    """A channel that tells spaces apart; its key stands in the page."""
    names = [look.name for look in looks]
    return {"field": "look", "type": "nominal", "legend": None, "scale": {"domain": names, "range": list(range_)}}
