"""If these fail, charts cannot be read: by their axes, in the dark, or because two spaces look alike."""

import re
from importlib.resources import files

import altair as alt
import pytest

from tests.report.made import full_audit, rank_sweep
from unface.page.charts import AXIS, ERASERS, GREY, GRID, INK, data, draw, looks


def test_axes_say_small_shares_in_full() -> None:
    axis = alt.X("x:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=[1e-4, 1e-2], format="~%"))
    svg = draw([data([{"x": 1e-4}, {"x": 1e-2}]).mark_point().encode(x=axis)], "two shares")
    assert ">0.01%<" in svg
    assert not re.search(r"[ (,]\d+\.\d\d", svg)


def test_spaces_differ_in_look_and_a_method_looks_like_the_space_it_made() -> None:
    full = full_audit()
    renamed = [space.model_copy(update={"name": f"{space.name}@192"}) for space in full.spaces[1:]]
    swept = {point.method: point.control for point in rank_sweep().points}
    found = looks(full.model_copy(update={"spaces": [full.raw, *renamed]}), swept)
    assert len({(look.colour, look.dash) for look in looks(full).values()}) == 4
    assert (found["pca"].colour, found["pca"].dash) == (found["pca@192"].colour, found["pca@192"].dash)


def style(part: str) -> str:
    text = files("unface.page").joinpath("report.css").read_text(encoding="utf-8")
    light, dark = text.split("@media (prefers-color-scheme: dark)", 1)
    return {"light": light, "dark": dark.split("* {")[0], "charts": dark.split("@media screen")[1]}[part]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "raised"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "bad", "warn"])
def test_text_can_be_read_on_its_paper(scheme: str, paper: str, ink: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", style(scheme)))
    assert contrast(colours[ink], colours[paper]) >= 4.5
    assert contrast(colours["bad"], colours["bad-paper"]) >= 4.5


@pytest.mark.parametrize("colour", [INK, GREY, AXIS, GRID, *ERASERS])
def test_every_colour_of_the_charts_has_one_for_dark_paper(colour: str) -> None:
    for paint in ("fill", "stroke"):
        found = re.search(rf'\[{paint}="{colour}"\] {{ {paint}: (#[0-9a-f]{{6}}); }}', style("charts"))
        assert found
        if colour != GRID:
            assert contrast(found[1], "#16181b") >= 4.5


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
