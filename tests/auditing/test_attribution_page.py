"""If these fail, faces and surroundings are drawn or told by other numbers than were measured."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tests.auditing.charted import by_look, charts_of, quantity, words
from tests.report.made_attribution import averaged, encoder
from unface.auditing.attribution import page
from unface.auditing.attribution.words import (
    attribution_line,
    attribution_tables,
    left_out_table,
    left_out_words,
    quality_table,
)
from unface.page.charts import AXIS, GREY, GRID, INK, Look, looks_of
from unface.result.attribution import Crossover, EncoderAttribution

BLUE = "#1c5d99"
LOOKS = looks_of(["raw", "isp"])
SHOWN = [Look("raw", INK, (1, 0), "circle"), Look("isp", BLUE, (1, 0), "circle")]


def crossing(value: float | None, low: float | None, high: float | None) -> EncoderAttribution:
    """The raw space alone, with this crossover."""
    one = encoder()
    raw = one.spaces[0]
    assert raw.cpi is not None
    crossover = Crossover(value=value, low=low, high=high, crossing=0.125)
    return one.model_copy(
        update={"spaces": [raw.model_copy(update={"cpi": raw.cpi.model_copy(update={"crossover": crossover})})]}
    )


def test_curves_run_over_blur_and_background_with_one_half_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts_of(monkeypatch, "attribution")
    blurred, revealed = page._curve_figures(encoder(), LOOKS)
    assert blurred.title == "Place preferred as faces are blurred"
    assert revealed.title == "Place preferred as background is revealed"
    assert blurred.looks == revealed.looks == tuple(SHOWN)
    assert drawn[0].label == f"{blurred.title}: raw from 10.0 % to 35.0 %; isp from 75.0 % to 100.0 %"
    assert drawn[1].label == f"{revealed.title}: raw from 0.0 % to 100.0 %; isp from 0.0 % to 100.0 %"
    y = quantity(
        "share",
        "place preferred to person",
        scale={"domain": [0, 1], "nice": False},
        axis={"format": "~%", "tickCount": 5},
    )
    axes: list[tuple[str, list[float], list[int], list[int]]] = [
        ("blur of all faces, σ in pixels", [0, 1, 2, 4, 6, 8], [8, 12, 16, 20, 24, 28], [60, 64, 68, 72, 76, 80]),
        ("share of the background seen, B", [0, 0.25, 0.5, 0.75, 1], [0, 20, 40, 60, 80], [0, 20, 40, 60, 80]),
    ]
    colour, dashes = by_look(SHOWN, INK, BLUE), by_look(SHOWN, [1, 0], [1, 0])
    for chart, figure, (title, places, raw, isp) in zip(drawn, (blurred, revealed), axes, strict=True):
        x = quantity(
            "x",
            title,
            scale={"domain": [places[0], places[-1]], "nice": False},
            axis={"values": places, "format": ".2~f", "labelOverlap": False},
        )
        rows = [
            {
                "look": name,
                "x": place,
                "share": count / 80,
                "low": pytest.approx(max(count / 80 - 0.05, 0)),
                "high": pytest.approx(min(count / 80 + 0.05, 1)),
            }
            for name, of in (("raw", raw), ("isp", isp))
            for place, count in zip(places, of, strict=True)
        ]
        half, bars, lines = chart.layers
        assert half == {
            "mark": {"type": "line", "color": GREY, "strokeWidth": 1, "opacity": 0.8},
            "rows": [{"x": places[0], "share": 0.5}, {"x": places[-1], "share": 0.5}],
            "x": x,
            "y": y,
        }
        bar = {"type": "rule", "strokeWidth": 1, "opacity": 0.6}
        ends = {"y": quantity("low"), "y2": {"field": "high"}}
        assert bars == {"mark": bar, "rows": rows, "x": x, **ends, "color": colour}
        line = {"type": "line", "strokeWidth": 1.8}
        assert lines == {"mark": line, "rows": rows, "x": x, "y": y, "color": colour, "strokeDash": dashes}
        assert figure.table is not None
        assert figure.table.caption == f"{figure.title}, made"
        assert words(figure.table)[0] == [title, "raw", "isp"]
    assert words(blurred.table)[3] == ["2", "20.0 % [15.0, 25.0] | 16 of 80", "85.0 % [80.0, 90.0] | 68 of 80"]
    assert page._curve_figures(encoder(swapped=False), LOOKS) == []


def test_similarities_are_listed_by_space_and_share_of_background() -> None:
    table = page._similarity_table(encoder())
    assert table is not None
    assert table.caption == "Similarities as background is revealed, made"
    head, *rows = words(table)
    assert head == ["space", "B", "cosine to another face in its place", "cosine to its face elsewhere"]
    assert rows[1] == ["raw", "0.25", "0.250", "0.600"]
    assert [row[0] for row in rows] == ["raw"] * 5 + ["isp"] * 5
    assert page._similarity_table(encoder(swapped=False)) is None
    assert (page._cosine(-0.1234), page._number(-0.126)) == ("−0.123", "−0.13")


def paths(svg: str, **attributes: str) -> list[NDArray[np.float64]]:
    """Outlines, (n, 2) each, of the paths with these attributes."""
    found = []
    for tag in re.findall(r'<path d="M[^>]*?Z"[^>]*>', svg):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if all(given.get(name.replace("_", "-")) == value for name, value in attributes.items()):
            first = given["d"].split("Z")[0]
            found.append(np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", first), float))
    return found


def inside(outline: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(224, 224): the pixels of the canvas within."""
    canvas = Image.new("1", (224, 224))
    ImageDraw.Draw(canvas).polygon([(x - 0.5, y - 0.5) for x, y in outline], fill=1)
    return np.asarray(canvas)


@pytest.mark.parametrize("axes", ["semi", "full"])
def test_the_drawn_ellipse_and_ring_cover_what_they_did_on_average(axes: str) -> None:
    one = encoder().model_copy(update={"axes": axes})
    raw = page.face_figures(one, LOOKS)[0]
    (ellipse,) = paths(raw.svg, stroke=AXIS, stroke_width="1.2")
    (ring,) = paths(raw.svg, stroke=AXIS, stroke_dasharray="5 3")
    width, height = np.ptp(ellipse, axis=0)
    assert height / width == pytest.approx(1.3 * 1.15 / 1.2, rel=0.01)
    assert ellipse.mean(axis=0) == pytest.approx([112, 112], abs=0.1)
    assert inside(ellipse).mean() == pytest.approx(0.26, abs=0.01)
    assert inside(ring).mean() == pytest.approx(0.52, abs=0.01)
    background = ~inside(ellipse)
    dotted = paths(raw.svg, stroke=GREY, stroke_dasharray="1 4")
    seen = [(inside(outline) & background).sum() / background.sum() for outline in dotted]
    assert seen == pytest.approx([0.25, 0.5, 0.75], abs=0.02)
    (bold,) = paths(raw.svg, stroke=INK, stroke_width="2.5")
    assert (inside(bold) & background).sum() / background.sum() == pytest.approx(0.62, abs=0.02)


def test_a_ring_around_a_circle_is_as_wide_as_geometry_says() -> None:
    """π (r + t)² is twice π r² where t = (√2 − 1) r."""
    assert page._ring_width(np.array([50.0, 50.0])) == pytest.approx(50 * (2**0.5 - 1), rel=1e-3)
    assert page._reach((50.0, 50.0), 0) == page._reach((50.0, 50.0), -1) == 0
    assert page._reach((50.0, 50.0), 1) == page._reach((50.0, 50.0), 2) == pytest.approx(110 * 2**0.5 - 50, abs=0.1)
    np.testing.assert_allclose(np.linalg.norm(page._outline(np.array([30.0, 30.0]), 10.0) - 112, axis=1), 40)


def test_the_drawn_face_is_told_in_words_and_stands_in_the_middle() -> None:
    raw, isp = page.face_figures(encoder(), LOOKS)
    label = (
        "raw: blurring the face takes 0.40 from similarity, as much background 0.10; place counts for more than the "
    )
    label += "face once 62.0 % of the background is seen"
    assert (raw.title, raw.note) == ("made, raw", f"{label}.")
    assert raw.svg.startswith(
        '<svg class="chart" width="224" height="224" viewBox="0 0 224 224" role="img" aria-label="Drawn face, '
        f'{label}">'
    )
    assert raw.svg.endswith("</svg>")
    assert isp.title == "made, isp"
    assert [one.split('"')[0] for one in isp.svg.split('fill="')[1:] if one.startswith("#")] == [BLUE, BLUE]
    apart = (0.26 * 224**2 / (np.pi * 1.2 * 1.3 * 1.15)) ** 0.5
    transform = f'<g transform="translate(112 112) scale({apart:.1f})" fill="none" stroke="{AXIS}"'
    assert f'{transform} stroke-width="{1.4 / apart:.3f}">' in raw.svg
    assert raw.svg.count(f'stroke="{GRID}" stroke-width="2"/>') == 3
    assert f'<rect x=".5" y=".5" width="223" height="223" fill="none" stroke="{GREY}"/>' in raw.svg
    drawing = [d for d in re.findall(r'<path d="([^"]*)"', raw.svg) if not d.endswith("Z")]
    assert len(drawing) == 3 + 5
    assert all(re.fullmatch(r"M[Mhvzlcqsa\d .-]+", d) for d in drawing), "absolute starts, relative strokes"
    alone = page.face_figures(encoder(swapped=False), LOOKS)[0]
    assert alone.note == "raw: blurring the face takes 0.40 from similarity, as much background 0.10."
    assert paths(alone.svg, stroke_width="2.5") == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (0.0, "with no background in sight"),
        (0.005, "once 0.50 % of the background is seen"),
        (0.5, "once 50.0 % of the background is seen"),
        (1.0, "only once all of the background is seen, or never"),
    ],
)
def test_how_much_background_it_takes_is_said(seen: float, said: str) -> None:
    assert page._once(seen) == said


def test_a_drop_below_zero_is_not_shaded_and_nothing_is_where_nothing_drops() -> None:
    def shade(drop: float, largest: float) -> str:
        return page._shade("M0 0 Z", drop, largest, SHOWN[1])

    assert shade(0.4, 0.4) == f'<path d="M0 0 Z" fill="{BLUE}" fill-rule="evenodd" fill-opacity="0.50"/>'
    for drop, largest in ((-0.2, 0.4), (0.0, 0.0), (0.5, -0.1)):
        assert 'fill-opacity="0.00"' in shade(drop, largest)
    assert 'fill-opacity="0.25"' in shade(0.4, 0.8)


def test_spaces_of_an_audit_keep_its_looks_and_others_get_their_own() -> None:
    grey = {name: replace(look, colour="#abcdef") for name, look in LOOKS.items()}
    own, given = page.section([encoder()]), page.section([encoder()], grey)
    assert BLUE in own.body
    assert "#abcdef" not in own.body
    assert "#abcdef" in given.body
    assert BLUE not in given.body
    assert (own.anchor, own.title, own.order) == ("attribution", "Face or surroundings", 2)
    for part in ("<h3>made</h3>", "Face against surroundings", "What this rests on", "Left out, by reason"):
        assert part in own.body


def test_measures_stand_in_two_tables_with_what_they_were_counted_on() -> None:
    first, second = attribution_tables([encoder()])
    assert (first.caption, second.caption) == ("Face against surroundings", "How much background it takes")
    assert words(first)[:2] == [
        ["encoder, space", "FII", "CPI(0)", "CPI(8)", "ΔCPI, points"],
        [
            "made | raw",
            "+0.300 [+0.280, +0.320] | 90 pairs of 30 people",
            "10.0 % [5.0, 15.0] | 8 of 80 triplets",
            "35.0 % [30.0, 40.0] | 28 of 80 triplets",
            "+25.0 [+23.0, +27.0] | 80 triplets",
        ],
    ]
    assert words(second) == [
        ["encoder, space", "σ*", "B*", "B* = 0", "B* = 1", "nearer to donor"],
        *[
            [
                f"made | {space}",
                "never | 0.0 % of draws cross ½",
                "0.75 [0.73, 0.77] | 0.62 [0.60, 0.64] between grid points",
                "0.0 % [0.0, 5.0] | 0 of 80 triplets",
                "25.0 % [20.0, 30.0] | 20 of 80 triplets",
                "95.0 % [90.0, 100.0] | 76 of 80 triplets",
            ]
            for space in ("raw", "isp, 16 dimensions removed")
        ],
    ]
    blind = encoder(swapped=False)
    unseen = blind.model_copy(update={"spaces": [blind.spaces[0].model_copy(update={"fii": None})]})
    assert words(attribution_tables([unseen])[0])[1] == ["made | raw", *["not measured"] * 4]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((3.26, 2.0, 4.0), "3.3 [2.0, 4.0] | 12.5 % of draws cross ½"),
        ((3.26, None, 4.0), "3.3 | 12.5 % of draws cross ½"),
        ((3.26, 2.0, None), "3.3 | 12.5 % of draws cross ½"),
    ],
)
def test_a_crossover_has_an_interval_only_where_both_ends_are_known(
    ends: tuple[float | None, float | None, float | None], said: str
) -> None:
    assert words(attribution_tables([crossing(*ends)])[1])[1][1] == said


def test_what_the_numbers_rest_on_and_what_was_left_out_is_counted() -> None:
    table = quality_table([encoder(), encoder("other", swapped=False)])
    assert table.caption == "What this rests on"
    counted = ["100 of 120 | 34 people", "90", "80 of 86", "0.260 ± 0.030 | semi axes; 0.33 is wanted"]
    spread = ["1.0 % | at most 2.0 %"] * 2
    how = "224 pixels; faces by yunet, swaps by landmarks"
    assert words(table) == [
        ["encoder", "pictures used", "pairs", "swaps", "face's share", "padding", "ring's area off", "monotone"],
        [f"made | {how}", *counted, *spread, "90.0 % rising | 80.0 % flat, in the raw space"],
        [f"other | {how}", *counted, *spread, "not measured"],
    ]
    quality = encoder().quality
    nothing = quality.model_copy(update={"left_out": []})
    whole = encoder("whole").model_copy(update={"quality": nothing})
    left = left_out_table([encoder(), whole])
    assert left is not None
    assert left.caption == "Left out, by reason"
    assert words(left) == [
        ["reason", "made", "whole"],
        ["no face | picture", "12", "0"],
        ["face at the border | picture", "8", "0"],
        ["the donor looks away | swap", "6", "0"],
    ]
    assert left_out_table([whole]) is None
    assert left_out_words(quality) == "pictures: 12 (no face), 8 (face at the border); swaps: 6 (the donor looks away)"
    assert left_out_words(nothing) == "nothing"


def test_one_line_says_every_space() -> None:
    assert attribution_line(encoder()) == (
        "Face-context attribution, 90 pairs: raw: FII +0.300 [+0.280, +0.320], CPI(0) 10.0 %, B* 0.75; isp: FII +0.050 "
        "[+0.030, +0.070], CPI(0) 75.0 %, B* 0.75."
    )
    one = encoder()
    raw = one.spaces[0]
    assert raw.fii is not None
    lower = raw.model_copy(update={"fii": raw.fii.model_copy(update={"index": averaged(-0.2, 90)})})
    assert "FII −0.200 [−0.220, −0.180]" in attribution_line(one.model_copy(update={"spaces": [lower]}))
