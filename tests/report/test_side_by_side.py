"""If these fail, encoders set beside each other show other numbers than their audits hold, or hide some."""

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from tests.page.read_page import Page
from tests.report.made import full_audit, invalid_audit, raw_audit
from unface.page.tables import point_tar
from unface.report.side_by_side import Audits, comparison, side_by_side_table, worst_cases, write_side_by_side
from unface.result.audit import AuditResult, SpaceResult
from unface.result.numbers import Interval, Share
from unface.result.words import percent

LONG = "an-encoder-s14"
BOTH: Audits = {"sface": full_audit(), LONG: full_audit()}


def printed(audits: Audits, width: int = 80) -> str:
    page = StringIO()
    Console(file=page, width=width, color_system=None).print(side_by_side_table(audits))
    return page.getvalue()


def row(audits: Audits, name: str) -> list[str]:
    """The words of the last line that starts with a space's name."""
    return next(line.split() for line in reversed(printed(audits).splitlines()) if line.split()[:1] == [name])


def with_utility_on(place: str) -> AuditResult:
    first, *others = full_audit().spaces
    moved = [
        space.model_copy(update={"utility": [replace(kept, on=place) for kept in space.utility]}) for space in others
    ]
    return full_audit().model_copy(update={"spaces": [first, *moved]})


def test_worst_cases_and_what_is_kept_are_those_of_the_audit_at_the_k_of_its_headline() -> None:
    found = full_audit()
    for space in found.spaces:
        worst = {point.far: point for point in space.points if point.worst and point.k == 4}
        said = [point_tar(worst[far]).replace(" %", "").split() for far in found.protocol.far]
        removed = [] if space.erasure is None else ["192/512"]
        kept = [percent(one.retained.value).removesuffix(" %") for one in space.utility]
        assert row(BOTH, space.name) == [space.name, *removed, *(word for cell in said for word in cell), *kept]


def test_every_number_fits_a_terminal_of_eighty_columns_and_each_encoder_is_named_once() -> None:
    page = printed(BOTH)
    assert "…" not in page
    assert [line.split() for line in page.splitlines() if "[" in line][3:5] == [row(BOTH, "pca"), row(BOTH, "raw")]
    assert (page.count("sface"), page.count(LONG)) == (1, 1)


def test_sets_are_named_below_with_the_measures_on_each() -> None:
    assert printed({"sface": raw_audit()}).count("kept") == 0
    assert printed(BOTH).rstrip().endswith("\nkept, % of raw: knn, copy recall@1 on objects.parquet")
    said = "kept, % of raw: knn, copy recall@1 on objects.parquet; knn, copy recall@1 on elsewhere"
    assert said in " ".join(printed({"sface": full_audit(), LONG: with_utility_on("elsewhere")}).split())


def test_a_measure_on_a_set_that_another_encoder_lacks_stays_empty_there() -> None:
    found = comparison({"sface": full_audit(), LONG: with_utility_on("elsewhere")})
    measures = [kept.measure for kept in full_audit().spaces[1].utility]
    named = [f"{measure} on elsewhere kept" for measure in measures]
    assert list(found.columns[-len(named) :]) == named
    for cells in found.rows:
        texts = [cell.text for cell in cells[-len(named) :]]
        assert all(texts) == (cells[0].text == LONG and cells[1].text != "raw")
        assert any(texts) == all(texts)


def test_what_cannot_be_trusted_or_told_has_no_number() -> None:
    assert row({"sface": invalid_audit()}, "raw") == ["raw", "invalid", "invalid"]
    refused = raw_audit().raw.model_copy(
        update={"points": [p.model_copy(update={"worst": p.worst and p.far > 1e-4}) for p in raw_audit().raw.points]}
    )
    assert row({"sface": raw_audit().model_copy(update={"spaces": [refused]})}, "raw")[-2:] == ["not", "resolved"]


def test_the_page_has_every_verdict_a_link_to_each_report_and_all_columns(tmp_path: Path) -> None:
    links = {"sface": "sface/report.html", LONG: "other/report.html"}
    page = Page(write_side_by_side(BOTH, links, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [one.attributes["href"] for one in page.all("a") if one.attributes.get("class") != "skip"] == [
        *links.values()
    ]
    assert [one.words for one in page.all("p", **{"class": "each"})] == [full_audit().verdict] * 2
    headings = [one.words for one in page.elements if one.tag == "th" and one.inside("thead")]
    assert headings == list(comparison(BOTH).columns)


def test_charts_draw_every_space_of_each_valid_audit_to_one_scale() -> None:
    half = full_audit().model_copy(update={"spaces": [_halved(space) for space in full_audit().spaces]})
    full, less = worst_cases({"sface": full_audit(), LONG: half, "broken": invalid_audit()})
    assert [full.title, less.title] == ["sface", LONG]
    axes = [re.findall(r"[\d.]+%", figure.svg) for figure in (full, less)]
    assert axes[0] == axes[1] != []
    for space in full_audit().spaces:
        (worst,) = (point for point in space.points if point.worst and (point.k, point.far) == (4, 1e-4))
        assert f"{space.name} {point_tar(worst)}" in full.svg
    marks = [
        sorted({float(x) for x in re.findall(r"<path transform=.translate\(([\d.]+),", f.svg)}) for f in (full, less)
    ]
    assert len(marks[0]) == len(marks[1]) == 4
    assert max(marks[1]) < max(marks[0])
    for look in full.looks[2:]:  # controls are of one grey: only dashes, as in the key, tell their lines apart
        assert f'stroke-dasharray="{look.dash[0]},{look.dash[1]}"' in full.svg
    assert full.note == "k = 4, FAR 1e-4; lines are 95 % intervals"


def _halved(space: SpaceResult) -> SpaceResult:
    points = []
    for point in space.points:
        tar = point.tar
        half = tar and Share.counted(
            tar.numerator // 2, tar.denominator, Interval(tar.low / 2, tar.high / 2, 0.95), 120, 900.0
        )
        points.append(point.model_copy(update={"tar": half}))
    return space.model_copy(update={"points": points})
