"""If these fail, the page says something else than audit.json, or what is missing in it looks clean."""

import re
from itertools import pairwise

import pytest

from tests.page.read_page import Element, Page
from tests.report.drawn import full, invalid, raw_only
from tests.report.made import RANKS, full_audit, rank_sweep, raw_audit, with_parts
from unface.auditing.erasure.page import comparisons
from unface.auditing.sweeps import SweepPoint
from unface.auditing.sweeps.page import Frontier, frontier
from unface.page.charts import looks
from unface.page.tables import bounded
from unface.report.html import key_figures, render_report
from unface.result.audit import AuditResult, Change, ContextAdjusted
from unface.result.numbers import Rate


def section(page: Page, name: str) -> str:
    return page.one("section", id=name).words


def ids(page: Page) -> list[str]:
    return [one.attributes["id"] for one in page.all("section")]


def test_the_verdict_is_said_whole_before_any_number_of_a_table() -> None:
    assert full_audit().verdict in section(full(), "verdict")
    body = full().words
    assert body.index(full_audit().verdict) < body.index("Worst-case TAR at FAR")
    assert ids(full())[0] == "verdict"


def test_sections_come_in_the_order_a_reader_needs_them() -> None:
    first = "verdict findings leakage compared frontier utility"
    details = "erasers transfer maps swaps curves controls limits method repeat"
    assert " ".join(ids(full())) == f"{first} {details}"


def test_every_tar_of_every_space_is_on_the_page_with_its_interval_and_its_counts() -> None:
    body = full().words
    for space in full_audit().spaces:
        for point in space.points:
            assert point.tar is not None
            assert bounded(point.tar) in body
            assert f"{point.tar.numerator:,} of {point.tar.denominator:,}" in body


def test_key_figures_are_those_of_the_verdict_with_interval_and_denominator() -> None:
    figures = full().one("dl", **{"class": "figures"}).words
    counted = "6,270 of 95,000 photo pairs of one person matched"
    assert f"Raw vectors, worst case 6.6 % [6.2, 7.1] 660 × chance; {counted}" in figures
    assert "After isp, worst case 2.6 % [2.4, 2.8] 260 × chance; 2,470 of 95,000 photo pairs" in figures
    assert "Usefulness kept after isp 87.0 % [85.8, 88.2] knn on objects.parquet, 5,000 queries" in figures


def test_findings_say_how_grave_they_are() -> None:
    said = section(full(), "findings")
    for finding in full_audit().findings:
        assert f"{finding.severity} {finding.about}: {finding.text}" in said


def test_worst_cases_are_marked_among_all_probes_and_nowhere_else() -> None:
    marked = [row for row in full().all("tr") if "worst case" in row.words and row.inside("details")]
    assert len(marked) == sum(point.worst for space in full_audit().spaces for point in space.points)
    assert all(row.words.startswith("lda") for row in marked)


def test_the_readout_starts_at_the_rank_the_eraser_had() -> None:
    readout = full().one("table", **{"class": "numeric readout"}).words
    assert "With 192 dimensions removed" in readout
    assert "isp 2.6 % [2.4, 2.8] 260 × 87.0 % [85.8, 88.2] 93.5 % [92.3, 94.7]" in readout
    slider = full().one("input").attributes
    assert (slider["min"], slider["max"], slider["value"]) == ("0", str(len(RANKS) - 1), "2")


def test_transfer_is_two_by_two_and_cosines_stand_beside_chance() -> None:
    said = section(full(), "transfer")
    assert "fitted on strangers.parquet 3.1 % [2.9, 3.3]" in said
    assert "40 of 192 cosines lie above 0.968" in said


def test_what_was_not_measured_is_listed_and_is_no_section() -> None:
    page, said = raw_only(), section(raw_only(), "limits")
    for missing in raw_audit().not_measured:
        assert missing in said
    assert raw_audit().not_measured
    for missing in ("what an eraser leaves", "usefulness kept", "attribute swaps", "maps before and after"):
        assert missing in said
    assert not {"compared", "frontier", "erasers", "transfer", "maps", "swaps", "utility"} & set(ids(page))
    assert "After an eraser not measured" in section(page, "verdict")
    absent = "same-shoot pairs apart from identity; several pictures per person on each side; search with one picture; "
    absent += "who is exposed; templates of a face recogniser; faces made from vectors; face-context attribution."
    assert f"without a part of this page: {absent}" in section(full(), "limits")


def test_usefulness_that_nobody_measured_is_called_so_beside_the_verdict() -> None:
    spaces = [space.model_copy(update={"utility": [], "curves": []}) for space in full_audit().spaces]
    page = Page(render_report(with_parts(full_audit().model_copy(update={"spaces": spaces}), sweeps=None, maps=None)))
    assert "Usefulness kept after isp not measured" in section(page, "verdict")
    assert "usefulness kept" in section(page, "limits")
    assert "curves over FAR" in section(page, "limits")


def test_a_rate_that_was_refused_is_not_resolved_and_says_what_it_would_need() -> None:
    refused = [point for point in raw_audit().raw.points if point.resolution == "refused"]
    assert refused
    assert f"not resolved {refused[0].identities_needed:,} calibrate identities needed" in section(
        raw_only(), "leakage"
    )


def test_a_worst_case_with_the_shoot_taken_out_stands_below_the_others() -> None:
    worst = full_audit().headline
    assert worst is not None
    shoot = ContextAdjusted(
        context="shoot",
        value=0.031,
        low=0.028,
        high=0.034,
        level=0.95,
        unknown=0.0,
        overlap=0.8,
        effective_pairs=900.0,
        suspects=Rate.counted(3, 10),
        without_suspects=[],
    )
    adjusted = worst.raw.model_copy(update={"context_adjusted": shoot})
    raw = raw_audit().raw.model_copy(update={"points": [adjusted]})
    page = Page(render_report(raw_audit().model_copy(update={"spaces": [raw]})))
    assert "raw 4 1e-4 6.6 % [6.2, 7.1] 3.1 % [2.8, 3.4] 30.0 % 80.0 %" in section(page, "leakage")
    assert "same-shoot pairs apart from identity" not in section(page, "limits")


def test_an_invalid_audit_looks_invalid_and_shows_no_figure_to_quote() -> None:
    page = invalid()
    assert page.one("title").words.startswith("INVALID")
    assert page.one("body").attributes["class"] == "invalid"
    assert "No number on this page can be trusted" in page.one("p", role="alert").words
    assert page.one("h2", id="h-verdict").words == "Invalid"
    assert page.all("dl", **{"class": "figures"}) == []
    assert "Key figures are withheld" in section(page, "verdict")
    assert "Identities shuffled: 2 of 3 at chance" in section(page, "controls")
    assert full().all("p", role="alert") == []


def test_headings_never_skip_a_level_and_every_section_is_named_by_its_own() -> None:
    levels = [int(one.tag[1]) for one in full().all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    headings = {one.attributes.get("id") for one in full().all("h2")}
    assert all(one.attributes["aria-labelledby"] in headings for one in full().all("section"))


def test_tables_are_whole_and_their_headings_say_what_they_head() -> None:
    for table in full().all("table"):
        inside = [one for one in full().elements if table in one.within]
        columns = [one for one in inside if one.tag == "th" and one.attributes.get("scope") == "col"]
        rows = [one for one in inside if one.tag == "tr" and one.inside("tbody")]
        assert rows
        for row in rows:
            cells = [one for one in inside if one.tag in ("td", "th") and row in one.within]
            assert len(cells) == len(columns)
            assert cells[0].attributes.get("scope") == "row"
    assert all("scope" in one.attributes for one in full().all("th"))
    assert all(one.inside("div", **{"class": "scroll"}) for one in full().all("table"))


def test_every_chart_can_be_read_without_seeing_it() -> None:
    charts = full().all("svg", **{"class": "chart"})
    assert len(charts) == 3 + 3 + 1 + 2 + 1 + 2
    for chart in charts:
        assert chart.attributes["role"] == "img"
        assert re.search(r"\d", chart.attributes["aria-label"])
        figure = next(one for one in reversed(chart.within) if one.tag == "figure")
        assert numbers_beside(figure) or chart.inside("section", id="maps"), figure.words


def numbers_beside(figure: Element) -> bool:
    """In the figure itself, or for a sweep in the table of every rank."""
    return any(figure in table.within or figure.inside("div", **{"data-sweep": ""}) for table in full().all("table"))


def test_the_curves_are_marked_at_every_decade() -> None:
    text = {one.words for one in full().all("text") if one.inside("section", id="curves")}
    assert {"0.1%", "1%", "10%", "100%", "1e-4"} <= text


def test_curves_that_never_fall_below_a_tenth_have_marks_between_the_decades() -> None:
    audit = raw_audit()
    high = [curve.model_copy(update={"tar": [tar**0.02 for tar in curve.tar]}) for curve in audit.raw.curves]
    assert min(high[0].tar) > 0.5
    page = Page(render_report(audit.model_copy(update={"spaces": [audit.raw.model_copy(update={"curves": high})]})))
    text = {one.words for one in page.all("text") if one.inside("section", id="curves")}
    assert {"10%", "20%", "50%", "100%"} <= text


def test_the_same_audit_is_the_same_page() -> None:
    assert render_report(raw_audit()) == raw_only().source


def test_a_space_that_leaks_more_at_another_k_says_so_beside_the_figure() -> None:
    full = full_audit()
    isp = full.spaces[1]
    points = [p.model_copy(update={"calibrate_tar": 0.5}) if (p.k, p.worst) == (16, True) else p for p in isp.points]
    spaces = [full.raw, isp.model_copy(update={"points": points}), *full.spaces[2:]]
    figure = key_figures(full.model_copy(update={"spaces": spaces}))[1]
    assert figure.value == "2.6 %"
    assert "2.5 % at k = 16, where this space leaks most" in figure.counted
    assert "leaks most" not in key_figures(full)[1].counted


def changed(low: float, high: float, against: str = "pca") -> AuditResult:
    """isp against one control, with this interval."""
    full = full_audit()
    change = Change(
        against=against,
        k=4,
        far=1e-4,
        probe="lda",
        against_probe="lda",
        value=(low + high) / 2,
        low=low,
        high=high,
        level=0.95,
    )
    spaces = [s.model_copy(update={"changes": [change] if s.name == "isp" else []}) for s in full.spaces]
    return full.model_copy(update={"spaces": spaces})


def said(result: AuditResult) -> str:
    return " ".join(one.text for one in comparisons(result))


@pytest.mark.parametrize(
    ("low", "high", "sentence", "won"),
    [
        (-0.03, -0.01, "isp beats label-free PCA of the same rank: −2.0 [−3.0, −1.0] percentage points", True),
        (
            -0.01,
            0.004,
            "isp shows no measurable difference from label-free PCA of the same rank: −0.3 [−1.0, +0.4]",
            False,
        ),
        (-0.01, 0.0, "isp shows no measurable difference from label-free PCA of the same rank", False),
        (0.01, 0.03, "isp leaves more than label-free PCA of the same rank: +2.0 [+1.0, +3.0]", False),
    ],
)
def test_an_eraser_beats_a_control_only_if_the_whole_interval_does(
    low: float, high: float, sentence: str, won: bool
) -> None:
    first = comparisons(changed(low, high))[0]
    assert first.text.startswith(sentence)
    assert first.won is won


def test_the_raw_vectors_are_not_beaten_but_leak_more() -> None:
    assert said(changed(-0.05, -0.03, "raw")).startswith("isp leaves less than the raw vectors: −4.0 [−5.0, −3.0]")


def test_two_erasers_are_put_against_each_other_once() -> None:
    full = full_audit()
    raw, isp, random, pca = full.spaces
    at = isp.changes[0]
    first = isp.model_copy(update={"changes": [at.model_copy(update={"against": "other"})]})
    second = isp.model_copy(update={"name": "other", "changes": [at.model_copy(update={"against": "isp"})]})
    text = said(full.model_copy(update={"spaces": [raw, first, second, random, pca]}))
    assert text.count("percentage points") == 1
    assert text.startswith("isp ")


def test_a_control_that_was_not_compared_is_named() -> None:
    text = said(changed(-0.03, -0.01, "pca"))
    assert "isp was not compared with a random subspace of the same rank." in text
    assert "isp was not compared with the raw vectors." in text
    assert "not compared" not in said(full_audit())


def test_an_eraser_without_controls_is_said_to_prove_nothing() -> None:
    alone = full_audit().model_copy(update={"spaces": full_audit().spaces[:2]})
    assert "isp was not put against a control of equal rank" in said(alone)


def test_controls_of_another_rank_are_not_called_equal() -> None:
    result = changed(-0.03, -0.01)
    pca = result.spaces[-1]
    assert pca.erasure is not None
    other = pca.model_copy(update={"erasure": pca.erasure.model_copy(update={"rank": 100})})
    assert "beats label-free PCA of rank 100" in said(
        result.model_copy(update={"spaces": [*result.spaces[:-1], other]})
    )


def drawn(points: list[SweepPoint]) -> Frontier:
    """A sweep over ranks of these points."""
    styles = looks(full_audit(), {point.method: point.control for point in points})
    return frontier(full_audit(), rank_sweep().model_copy(update={"points": points}), styles)


def test_raw_stands_beside_every_rank_and_methods_missing_at_one_are_not_measured() -> None:
    shown = drawn([point for point in rank_sweep().points if (point.method, point.rank) != ("pca", 256)])
    assert shown.ranks == [64, 128, 192, 256]
    assert shown.methods == ["raw", "isp", "random", "pca"]
    assert {rank[0][0] for rank in shown.cells} == {"6.6 % [6.2, 7.1]"}
    assert shown.cells[3][3] == ["not measured"] * 4
    assert shown.said[3] == "rank 256: raw 6.6 %, isp 1.8 %, random 4.8 %"


def test_a_sweep_without_usefulness_is_drawn_over_rank_alone() -> None:
    shown = drawn([point.model_copy(update={"utility": []}) for point in rank_sweep().points])
    assert [figure.title for figure in shown.figures] == ["Over dimensions removed"]
    assert shown.columns == ["worst-case TAR", "times chance"]
