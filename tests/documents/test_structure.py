"""If these fail, a page hides a number, draws one that cannot be used, or cannot be read by everybody.

Nothing here asserts a sentence: the words of every document are in its snapshot.
"""

import base64
import hashlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.documents.cases import documents
from tests.kit.documents import (
    attribution_page_with_faces,
    card,
    encoders_page,
    page,
    terminal,
    undrawn,
    write_release_page_with_faces,
)
from tests.kit.gating import gated, policy
from tests.kit.page import Element, Page
from tests.kit.results import (
    AnyResult,
    AuditResult,
    Point,
    attribution,
    audited,
    change,
    erased,
    full_audit,
    full_release,
    invalid_audit,
    map_of,
    maps,
    protection,
    raw,
    raw_audit,
    result,
    share,
    with_parts,
)
from unface.gate import Verdict, decide
from unface.result.words import in_percent, interval, percent

ALL = list(documents())
ANSWERED = [name for name in ALL if not name.startswith("attribution")]
INVALID = [name for name in ALL if "invalid" in name]
WHOLE = ["audit", "validation", "release", "inversion", "certificate", "protection"]
DRAWN = ["audit/complete", "audit/compared", "validation/failed", "release/leaks", "inversion/failed",
         "protection/failed", "attribution/two-encoders", "certificate/failed"]  # fmt: skip


@cache
def drawn(name: str) -> Page:
    """The page of a document, its charts left empty."""
    document = documents()[name]
    with undrawn():
        return Page(page(document.make(), document.decision, document.history))


@cache
def charted(name: str) -> Page:
    """The same with its charts."""
    document = documents()[name]
    return Page(page(document.make(), document.decision, document.history))


def readings(made: AnyResult) -> list[Any]:
    return [one for one in made.readings() if one.found is not None]  # type: ignore[union-attr] # all but attribution


@pytest.mark.parametrize("kind", WHOLE)
def test_every_number_that_a_result_is_compared_by_is_on_its_page_and_the_quoted_ones_on_the_terminal(
    kind: str,
) -> None:
    made = documents()["audit/complete"].make() if kind == "audit" else result(kind)  # type: ignore[arg-type]
    with undrawn():
        shown, printed = Page(page(made)).words, " ".join(terminal(made, width=400).split())
    found = [one for one in readings(made) if one.is_share]
    assert found
    for one in found:
        assert in_percent(one.found.value) in shown, one.name
        said = (in_percent(one.found.value), f" {getattr(one.found, 'numerator', None)} ")
        assert not one.headline or any(words in printed for words in said), one.name
    for one in readings(made):
        assert one.is_share or f"{one.found.value:.1f}" in shown or f"{one.found.value:.3f}" in shown, one.name


@pytest.mark.parametrize("make", [full_audit, raw_audit, documents()["audit/coarse"].make])
def test_every_rate_of_an_audit_has_its_interval_and_its_counts_on_the_page_and_its_row_on_the_terminal(
    make: Any,
) -> None:
    audit: AuditResult = make()
    with undrawn():
        shown, printed = Page(page(audit)).words, " ".join(terminal(audit, width=400).split())
    for space in audit.spaces:
        for point in space.points:
            if point.tar is None:
                assert "not resolved" in shown
                continue
            assert f"{percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}" in shown
            assert f"{point.tar.numerator:,} of {point.tar.denominator:,}" in shown
            coarse = "~" if point.resolution == "coarse" else ""
            ends = f"{coarse}{in_percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}"
            assert space is not audit.raw or ends in printed


def test_the_worst_case_is_marked_once_for_each_k_and_rate() -> None:
    audit = full_audit()
    marked = [row for row in drawn("audit/failed").all("tr") if "worst case" in row.words and row.inside("details")]
    assert len(marked) == sum(point.worst for space in audit.spaces for point in space.points)
    assert all(row.words.startswith("lda") for row in marked)
    assert terminal(raw_audit()).count("◂") == sum(point.worst for point in raw_audit().raw.points) + 1, "and its key"


def test_worst_cases_stand_under_their_own_k_and_rate() -> None:
    audit, shown = full_audit(), drawn("audit/failed")
    tables = [one for one in shown.all("table") if one.inside("section", id="leakage") and not one.inside("details")]
    assert len(tables) == len(audit.protocol.far)
    for table, far in zip(tables, audit.protocol.far, strict=True):
        rows = [row for row in shown.all("tr") if table in row.within and row.inside("tbody")]
        for row, space in zip(rows, audit.spaces, strict=True):
            cells = [one.words for one in shown.all("td") if row in one.within]
            for cell, k in zip(cells, audit.protocol.k, strict=True):
                worst = space.worst_at(k, far)
                assert worst is not None
                assert cell.startswith(point_words(worst).replace(" [", " % ["))


@pytest.mark.parametrize("name", ANSWERED)
def test_a_page_opens_with_its_verdict_in_words_and_colour(name: str) -> None:
    document, shown = documents()[name], drawn(name)
    banners = [one for one in shown.all("div") if "decision" in one.attributes.get("class", "").split()]
    (banner,) = banners
    assert banner.attributes["class"] == f"decision {document.state}"
    assert document.state == "none" or f".decision.{document.state} {{ --state: var(" in shown.source
    if document.decision is not None:
        assert str(document.decision.verdict) == document.state
        assert all(str(rule.measured or "–") in shown.words for rule in document.decision.rules if rule.measured)
    numbers = shown.all("table", "dl")
    assert not numbers or shown.elements.index(banner) < shown.elements.index(numbers[0])


@pytest.mark.parametrize("name", [name for name in ANSWERED if documents()[name].rule is None])
def test_a_suggested_policy_is_one_that_the_gate_takes_and_that_opens_the_page_as_it_says(name: str) -> None:
    made, shown = documents()[name].make(), drawn(name)
    suggested = [one for one in shown.all("pre") if one.inside("details", **{"class": "suggested"})]
    if name in ("audit/invalid-no-policy", "audit/empty", "certificate/no-encoder"):
        assert suggested == []
        return
    decision = gated(made, *tomllib.loads(suggested[0].text)["require"])  # type: ignore[arg-type] # Readable
    warned = documents()[name].state == "warned"
    assert (decision.verdict is not Verdict.PASSED) is warned


@pytest.mark.parametrize("name", ANSWERED)
def test_as_many_squares_are_filled_as_the_share_says_and_none_of_an_invalid_result(name: str) -> None:
    shown = drawn(name)
    for square in shown.all("svg", **{"class": "hundred"}):
        hits, misses = (
            sum(square in one.within for one in shown.all("rect", **{"class": kind})) for kind in ("hit", "miss")
        )
        said = re.search(r"([\d.]+) %\)", square.attributes["aria-label"])
        assert said is not None
        assert hits == round(float(said[1])) or abs(float(said[1]) - hits) <= 0.5
        assert hits + misses == 100
    if name in INVALID:
        assert shown.all("svg", **{"class": "hundred"}) == []


def test_the_squares_are_of_the_space_that_the_policy_is_about() -> None:
    def filled(name: str) -> list[str]:
        return [one.attributes["aria-label"] for one in drawn(name).all("svg", **{"class": "hundred"})]

    assert "(4.0 %)" in filled("audit/two-erasers")[1], "isp, which the rule names"
    assert "(4.1 %)" in filled("audit/two-erasers-no-policy")[1], "leace, which left least on calibrate"


def test_a_number_to_compare_with_is_not_drawn_as_a_harm() -> None:
    shown = drawn("validation/failed")
    aside = [one for one in shown.all("svg", **{"class": "hundred"}) if one.inside("figure", **{"class": "aside"})]
    assert len(aside) == 1
    assert percent(0.9) in aside[0].attributes["aria-label"], "the ceiling: a real second photo"


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_result_looks_invalid_and_quotes_no_number(name: str) -> None:
    made, shown = documents()[name].make(), drawn(name)
    opening = shown.one("section", id="verdict").words
    assert shown.all("dl", **{"class": "figures"}) == []
    for one in readings(made):
        if one.headline:
            assert in_percent(one.found.value) not in opening, one.name
    if isinstance(made, AuditResult):
        assert shown.one("title").words.startswith("INVALID")
        assert shown.one("body").attributes["class"] == "invalid"
        assert shown.all("p", role="alert")
        assert "invalid" in terminal(made).splitlines()[0]


@pytest.mark.parametrize(
    "made",
    [*(documents()[name].make() for name in INVALID), protection(invalid=True)],
    ids=[*INVALID, "protection"],
)
def test_the_card_of_an_invalid_result_says_so_and_shows_no_number(made: AnyResult) -> None:
    html = card(made)
    assert "Invalid" in html
    assert "<svg" not in html
    for one in readings(made):
        assert in_percent(one.found.value) not in html, one.name


def test_a_valid_result_does_not_look_invalid() -> None:
    shown = drawn("audit/complete")
    assert shown.all("p", role="alert") == []
    assert "INVALID" not in shown.words
    assert "invalid" not in terminal(full_audit()).splitlines()[0]


@pytest.mark.parametrize("name", ALL)
def test_headings_never_skip_a_level_and_every_section_is_named_by_its_own(name: str) -> None:
    levels = [int(one.tag[1]) for one in drawn(name).all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    headings = {one.attributes.get("id") for one in drawn(name).all("h2")}
    assert all(one.attributes["aria-labelledby"] in headings for one in drawn(name).all("section"))


@pytest.mark.parametrize("name", ALL)
def test_tables_are_whole_and_their_headings_say_what_they_head(name: str) -> None:
    for table in drawn(name).all("table"):
        inside = [one for one in drawn(name).elements if table in one.within]
        columns = [one for one in inside if one.tag == "th" and one.attributes.get("scope") == "col"]
        for row in [one for one in inside if one.tag == "tr" and one.inside("tbody")]:
            cells = [one for one in inside if one.tag in ("td", "th") and row in one.within]
            assert len(cells) == len(columns)
            assert cells[0].attributes.get("scope") == "row"
    assert all("scope" in one.attributes for one in drawn(name).all("th"))


@pytest.mark.parametrize("name", DRAWN)
def test_every_chart_can_be_read_without_seeing_it(name: str) -> None:
    shown = charted(name)
    for chart in shown.all("svg", **{"class": "chart"}):
        assert chart.attributes["role"] == "img"
        assert re.search(r"\d", chart.attributes["aria-label"])
        figure = next(one for one in reversed(chart.within) if one.tag == "figure")
        assert _numbers_beside(shown, figure) or chart.inside("section", id="maps"), figure.words


def _numbers_beside(shown: Page, figure: Element) -> bool:
    """In the figure itself, in its section, or for a sweep in the table of every rank."""
    sections = [one for one in figure.within if one.tag == "section"]
    return any(figure in table.within or set(sections) & set(table.within) for table in shown.all("table"))


@pytest.mark.parametrize("name", DRAWN)
def test_a_page_loads_nothing_leads_nowhere_else_and_is_the_same_bytes_each_time(name: str) -> None:
    shown, document = charted(name), documents()[name]
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", shown.source)
    assert shown.all("link", "img", "iframe", "object", "embed", "base", "form") == []
    assert not [one for one in shown.elements if "src" in one.attributes]
    targets = [one.attributes["id"] for one in shown.elements if "id" in one.attributes]
    assert len(targets) == len(set(targets))
    assert {one.attributes["href"] for one in shown.all("a")} <= {f"#{target}" for target in targets}
    assert page(document.make(), document.decision, document.history) == shown.source


@pytest.mark.parametrize("name", DRAWN)
def test_the_policy_of_a_page_lets_only_its_own_script_run(name: str) -> None:
    shown = drawn(name)
    content = shown.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    scripts = [one for one in shown.all("script") if "type" not in one.attributes]
    digests = [base64.b64encode(hashlib.sha256(one.text.encode()).digest()).decode() for one in scripts]
    assert all(f"'sha256-{digest}'" in content for digest in digests)
    assert content.startswith("default-src 'none'; ")
    assert "unsafe-inline" not in content.replace("style-src 'unsafe-inline'", "")


def test_what_was_not_measured_is_listed_and_is_no_section() -> None:
    shown = drawn("audit/passed")
    said = shown.one("section", id="limits").words
    assert raw_audit().not_measured
    assert all(missing in said for missing in raw_audit().not_measured)
    there = {one.attributes["id"] for one in shown.all("section")}
    assert not {"compared", "frontier", "erasers", "transfer", "maps", "swaps", "utility"} & there
    assert {"compared", "frontier", "erasers", "transfer", "maps", "swaps", "utility"} <= {
        one.attributes["id"] for one in drawn("audit/complete").all("section")
    }


@pytest.mark.parametrize("name", ALL)
def test_every_finding_is_on_the_page_and_the_terminal_with_its_severity(name: str) -> None:
    made = documents()[name].make()
    shown, printed = drawn(name).words, terminal(made, width=400)
    marks = {"invalid": "✗", "warning": "!", "note": "·"}
    for finding in getattr(made, "findings", []):
        assert f"{finding.severity} {finding.about}: {finding.text}" in shown
        assert f"{marks[finding.severity]} {finding.about}: {finding.text}" in printed


def test_the_trend_runs_over_the_results_of_the_history_that_can_be_used() -> None:
    document = documents()["validation/failed"]
    with undrawn() as charts:
        shown = Page(page(document.make(), None, document.history))
    assert shown.all("section", id="trend")
    values = [readings(one())[0].found.value for one in document.past]
    assert any([row["y"] for row in chart.rows()] == pytest.approx(values) for chart in charts)
    with undrawn():
        assert Page(page(document.make())).all("section", id="trend") == []
        assert Page(page(document.make(), None, document.history[:1])).all("section", id="trend") == []


def test_the_readout_of_a_sweep_starts_at_the_rank_that_the_eraser_had() -> None:
    slider = drawn("audit/complete").one("input").attributes
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "3", "2")
    readout = drawn("audit/complete").one("table", **{"class": "numeric readout"}).words
    assert "192" in readout
    assert percent(0.026) in readout


@dataclass(frozen=True)
class Shown:
    """A picture of a face, and what it shows."""

    caption: str
    jpeg: bytes


def test_no_photograph_is_on_a_page_unless_asked_for_and_then_for_the_owner_alone(tmp_path: Path) -> None:
    for name in ("release/leaks", "attribution/two-encoders"):
        assert "data:image" not in drawn(name).source
        assert drawn(name).all("img") == []
    pictures = [[Shown("canvas", b"\xff\xd8"), Shown("face blurred", b"\xff\xd8")]]
    shown = Page(attribution_page_with_faces(attribution(), pictures))
    assert [one.attributes["src"] for one in shown.all("img")] == ["data:image/jpeg;base64,/9g="] * 2
    assert shown.all("p", role="alert")
    file = write_release_page_with_faces(full_release(), tmp_path / "faces.html", [("s1.png", b"one", b"two")])
    assert file.read_text(encoding="utf-8").count("data:image/jpeg;base64,") == 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_large_audit_stays_under_two_megabytes_and_says_which_people_are_not_on_a_map() -> None:
    one, drawn_map = full_audit().spaces[1], map_of("raw", 1.0)
    many = [one.model_copy(update={"name": f"isp-{number}", "points": one.points * 5}) for number in range(8)]
    crowd = {
        "x": drawn_map.x * 20,
        "y": drawn_map.y * 20,
        "identity": [number // 16 for number in range(len(drawn_map.x) * 20)],
    }
    large = with_parts(full_audit(), maps=maps(*[drawn_map.model_copy(update=crowd)] * 2))
    html = page(large.model_copy(update={"spaces": [*full_audit().spaces, *many]}))
    assert len(html.encode()) < 2_000_000
    assert re.search(r"\d+ more not drawn", html)


def test_encoders_side_by_side_have_the_numbers_of_their_audits_and_none_of_an_invalid_one() -> None:
    audits = {"sface": full_audit(), "an-encoder-s14": full_audit(), "broken": invalid_audit()}
    with undrawn() as charts:
        shown = Page(encoders_page(audits))
    printed = terminal(audits).splitlines()
    assert "…" not in "".join(printed)
    links = [one.attributes["href"] for one in shown.all("a") if not one.attributes["href"].startswith("#")]
    assert links == [f"{name}/report.html" for name in audits]
    for space in full_audit().spaces:
        rows = [line for line in printed if line.split()[:1] == [space.name]]
        for far in full_audit().protocol.far:
            (worst,) = (point for point in space.points if point.worst and (point.k, point.far) == (4, far))
            assert point_words(worst).replace(" [", " % [") in shown.words
            assert all(point_words(worst) in row for row in rows[:2])
    last = next(line.split() for line in reversed(printed) if line.split()[:1] == ["raw"])
    assert last == ["raw", "invalid", "invalid"]
    assert len(charts) == 2, "the invalid audit is not drawn"
    assert charts[0].layers[0]["channels"]["x"]["scale"] == charts[1].layers[0]["channels"]["x"]["scale"]


def point_words(point: Point) -> str:
    assert point.tar is not None
    return f"{in_percent(point.tar.value)} {interval(point.tar.low, point.tar.high)}"


@pytest.mark.parametrize("make", [full_audit, raw_audit], ids=["erased", "raw"])
def test_no_number_or_interval_of_a_table_is_split_at_80_columns(make: Callable[[], AuditResult]) -> None:
    """The widest there can be: all of them close to 100 %, coarse, and worst; times chance near a million."""

    def widest(point: Point) -> Point:
        tar = point.tar and share(0.9991, 0.9983, 0.9997)
        return point.model_copy(update={"tar": tar, "resolution": "coarse", "worst": True, "times_chance": 999_100.0})

    found = make()
    spaces = [one.model_copy(update={"points": [widest(point) for point in one.points]}) for one in found.spaces]
    for shown in (found, found.model_copy(update={"spaces": spaces})):
        narrow, broad = (terminal(shown, width=width).splitlines() for width in (80, 200))
        tables = [line for line in broad if re.search(r"\d \[[\d.]+, [\d.]+\]( ◂)?  ", line)]
        assert len(tables) > 4
        assert {line.rstrip() for line in tables} <= {line.rstrip() for line in narrow}


def test_no_line_ends_inside_a_number_on_paper_or_in_a_terminal_of_any_width() -> None:
    decision = documents()["audit/failed"].decision
    assert decision is not None
    whole = [str(rule.measured) for rule in decision.rules]
    assert whole
    for width in range(40, 100, 3):
        text = terminal(full_audit(), decision, width=width)
        head = text[: text.index("faces.parquet")].replace("│", " ")
        assert "6.6 % [6.2, 7.1]" in head
        assert not re.search(r"(FAR|k =)\s*\n", head)
    held = [one.words for one in drawn("audit/complete").all("span", **{"class": "one"})]
    assert {"6.6 %", "FAR 1e-4", "k = 4", "--rank", "2.6 % [2.4, 2.8]"} <= set(held)
    assert not any(one.inside("pre") for one in drawn("audit/complete").all("span", **{"class": "one"}))


@pytest.mark.parametrize(
    ("ends", "marked"), [((-0.01, -0.03, 0.01), True), ((-0.01, -0.03, -0.001), False), ((0.01, 0.001, 0.03), False)]
)
def test_a_change_whose_interval_holds_zero_is_marked(ends: tuple[float, float, float], marked: bool) -> None:
    made = audited(raw(), erased("isp", changes=[change(*ends, against="raw")]))
    (row,) = (line for line in terminal(made).splitlines() if line.startswith("isp ") and "4 of 8" in line)
    assert row.rstrip().endswith("?") is marked


@pytest.mark.parametrize(
    ("ends", "won"),
    [
        ((-0.02, -0.03, -0.01), True),
        ((-0.003, -0.01, 0.004), False),
        ((-0.005, -0.01, 0), False),
        ((0.02, 0.01, 0.03), False),
    ],
)
def test_an_eraser_beats_a_control_only_if_the_whole_interval_does(ends: tuple[float, float, float], won: bool) -> None:
    made = audited(raw(), erased("isp", changes=[change(*ends)]), erased("random", control=True))
    with undrawn():
        marked = Page(page(made)).all("li", **{"class": "won"})
    assert len(marked) == won


def test_two_erasers_are_put_against_each_other_once() -> None:
    both = (
        erased("isp", changes=[change(-0.02, -0.03, -0.01, against="leace")]),
        erased("leace", changes=[change(0.02, 0.01, 0.03, against="isp")]),
    )
    with undrawn():
        shown = Page(page(audited(raw(), *both)))
    said = [one.words for one in shown.all("li") if one.inside("ul", **{"class": "compared"})]
    assert sum("−2.0 [−3.0, −1.0]" in one or "+2.0 [+1.0, +3.0]" in one for one in said) == 1


def test_policies_of_two_limits_are_judged_as_one() -> None:
    both = decide(full_audit(), policy({"far": 1e-4, "tar_max": 0.5}, {"far": 1e-4, "tar_max": 0.01}))
    with undrawn():
        assert Page(page(full_audit(), both)).all("div", **{"class": "decision failed"})
