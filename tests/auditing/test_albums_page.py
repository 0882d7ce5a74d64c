"""If these fail, what albums show is said of another size, space or rate."""

import pytest

from tests.auditing.charted import by_look, charts_of, quantity, words
from tests.auditing.made import erased, point, rate, raw, result_of, share
from unface.auditing import Albums
from unface.auditing.albums import AlbumChange, AlbumControl, AlbumPoint, AlbumResults, page
from unface.page.charts import GREY, INK, Look
from unface.result.audit import AuditResult
from unface.result.parts import Option


def album(tar: float | None, size: tuple[int, int], space: str = "raw", **others: object) -> AlbumPoint:
    """At FAR 1e-4, by LDA, which is the worst case."""
    plain: dict[str, object] = {
        "space": space,
        "probe": "lda",
        "first": size[0],
        "second": size[1],
        "far": 1e-4,
        "resolution": "resolved" if tar is not None else "refused",
        "worst": tar is not None,
        "tar": None if tar is None else share(tar, tar - 0.01, tar + 0.01),
        "achieved_far": None if tar is None else rate(2e-4),
        "chance": None if tar is None else 1e-4,
        "times_chance": None if tar is None else tar / 1e-4,
        "threshold": 0.5,
        "calibrate_tar": tar,
    }
    return AlbumPoint.model_validate({**plain, **others})


FOUND = AlbumResults(
    k=4,
    images=6,
    deals=2,
    points=[
        album(0.2, (2, 2)),
        album(0.1, (2, 2), probe="cosine", worst=False),
        album(0.05, (1, 1)),
        album(0.4, (2, 3), resolution="coarse"),
        album(0.02, (1, 1), "isp"),
        album(None, (2, 2), "isp", identities_needed=1_500),
        album(0.04, (1, 1), "random"),
        album(0.3, (2, 3), far=1e-3),
    ],
    changes=[
        AlbumChange(
            space="isp", against="raw", first=2, second=3, far=1e-3, value=-0.1, low=-0.12, high=0.02, level=0.95
        )
    ],
    shuffled_identities=[
        AlbumControl(probe="lda", first=2, second=2, far=1e-2, tar=share(0.01, 0, 0.02), chance=0.01, passed=True),
        AlbumControl(probe="lda", first=2, second=3, far=1e-2, tar=share(0.2, 0.1, 0.3), chance=0.01, passed=False),
    ],
)


def audited(found: AlbumResults | None = FOUND) -> AuditResult:
    spaces = (raw(point(), point(far=1e-3)), erased("isp", point()), erased("random", point(), control=True))
    return result_of(*spaces).model_copy(update={"parts": {} if found is None else {"albums": found}})


def test_worst_cases_stand_by_size_in_rising_order() -> None:
    table = page._worst(audited(), FOUND, 1e-4)
    assert table.caption == "Worst-case TAR of albums at FAR 1e-4"
    assert words(table) == [
        ["space", "1 against 1", "2 against 2", "2 against 3"],
        [
            "raw",
            "5.0 % [4.0, 6.0] | 500 × chance, lda",
            "20.0 % [19.0, 21.0] | 2,000 × chance, lda",
            "~40.0 % [39.0, 41.0] | 4,000 × chance, lda",
        ],
        [
            "isp",
            "2.0 % [1.0, 3.0] | 200 × chance, lda",
            "not resolved | 1,500 calibrate identities needed",
            "not measured",
        ],
        ["random | control", "4.0 % [3.0, 5.0] | 400 × chance, lda", "not measured", "not measured"],
    ]
    assert words(page._worst(audited(), FOUND, 1e-3))[1][1:] == [
        "not measured",
        "not measured",
        "30.0 % [29.0, 31.0] | 3,000 × chance, lda",
    ]
    assert page._cell(album(None, (2, 2))).small == ""


def test_every_probe_and_every_difference_of_albums_is_listed() -> None:
    probes, changes = page._probes(FOUND), page._changes(FOUND)
    assert probes.caption == "Every probe"
    head, first, second, *_ = words(probes)
    assert head == ["space and probe", "pictures per side", "FAR", "TAR", "linked albums", "strangers accepted"]
    counted = ["2 against 2", "1e-4"]
    assert first == [
        "*raw* | lda",
        *counted,
        "20.0 % [19.0, 21.0] | 2,000 × chance, lda",
        "20,000 of 100,000",
        "200 of 1,000,000",
    ]
    assert second[0] == "raw | cosine"
    refused = ["isp | lda", *counted, "not resolved | 1,500 calibrate identities needed", "–", "–"]
    assert words(probes)[6] == refused
    assert changes is not None
    assert changes.caption == "Differences of worst cases on the same albums, paired"
    assert words(changes) == [
        ["spaces", "pictures per side", "FAR", "points of TAR"],
        ["isp | less raw", "2 against 3", "1e-3", "−10.0 [−12.0, +2.0]"],
    ]
    assert page._changes(FOUND.model_copy(update={"changes": []})) is None


def test_a_chart_draws_the_spaces_that_have_more_than_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts_of(monkeypatch, "albums")
    figure = page._figure(audited(), FOUND)
    (chart,) = drawn
    ink = Look("raw", INK, (1, 0), "circle")
    assert figure is not None
    assert (figure.title, figure.looks) == ("At FAR 1e-4", (ink,))
    assert (
        chart.label == "Worst-case TAR over pictures per side. raw from 5.0 % at 1 against 1 to 40.0 % at 2 against 3"
    )
    rows = [
        {"look": "raw", "x": at, "tar": tar, "low": pytest.approx(tar - 0.01), "high": pytest.approx(tar + 0.01)}
        for at, tar in ((1, 0.05), (2, 0.2), (2.5, 0.4))
    ]
    x = quantity("x", "pictures per side", scale={"type": "log", "base": 2, "nice": False})
    y = quantity("tar", "worst-case TAR", axis={"format": "~%"}, scale={"zero": True})
    colour, bar = by_look([ink], INK), {"type": "rule", "strokeWidth": 1, "opacity": 0.6}
    line, dot = {"type": "line", "strokeWidth": 1.5}, {"type": "point", "filled": True, "size": 46, "opacity": 1}
    assert chart.layers == [
        {"mark": bar, "rows": rows, "x": x, "y": quantity("low"), "y2": {"field": "high"}, "color": colour},
        {"mark": line, "rows": rows, "x": x, "y": y, "color": colour, "strokeDash": by_look([ink], [1, 0])},
        {"mark": dot, "rows": rows, "x": x, "y": y, "color": colour, "shape": by_look([ink], "circle")},
    ]
    two = FOUND.model_copy(update={"points": [album(0.1, (1, 1)), album(0.2, (2, 2))]})
    assert page._figure(audited(), two) is not None
    assert [row["x"] for row in drawn[-1].layers[0]["rows"]] == [1, 2]
    single = FOUND.model_copy(update={"points": [one for one in FOUND.points if one.second == 1]})
    assert page._figure(audited(), single) is None


def test_the_section_counts_the_controls_that_stayed_at_chance() -> None:
    section = page.section(audited(), FOUND)
    assert (section.anchor, section.title, section.order) == ("albums", "With several pictures per side", 1)
    assert "identities shuffled: 1 of 2 at chance" in section.body
    assert "Each of 2 deals cuts the 6 pictures" in section.body
    assert Albums.page(audited(None)) == ["several pictures per person on each side"]
    for caption in ("at FAR 1e-4", "at FAR 1e-3", "Every probe", "Differences of worst cases"):
        assert caption in section.body
    assert "<svg" in section.body
    assert GREY not in section.body.split("<svg")[1], "a control of one size is not drawn"


def test_findings_say_which_control_failed_and_which_sizes_are_coarse_or_refused() -> None:
    failed, rough = Albums.findings(audited())
    assert (failed.severity, failed.about) == ("invalid", "albums")
    assert failed.text == (
        "with identities shuffled lda still links 20.0 % of albums (2 against 3) where chance is 1.0 %; album numbers "
        "here cannot be trusted"
    )
    assert (rough.severity, rough.about) == ("note", "albums")
    assert rough.text == (
        "albums are fewer than pictures, so rates are coarser: FAR 1e-4 is coarse for 2 against 3; FAR 1e-4 is refused "
        "for 2 against 2"
    )
    passed = FOUND.model_copy(update={"shuffled_identities": [], "points": FOUND.points[:3]})
    assert Albums.findings(audited(passed)) == Albums.findings(audited(None)) == []


def test_the_verdict_is_of_the_largest_albums_at_the_headlines_rate_or_the_nearest() -> None:
    assert Albums.verdict(audited()) == ("With 2 or 3 pictures per person on each side: 40.0 % [39.0, 41.0] (coarse).")
    pairs = [album(0.2, (2, 2)), album(0.03, (2, 2), "isp")]
    both = FOUND.model_copy(update={"points": pairs})
    assert Albums.verdict(audited(both)) == (
        "With 2 pictures per person on each side: 20.0 % [19.0, 21.0], after ISP 3.0 % [2.0, 4.0]."
    )
    other = FOUND.model_copy(update={"points": [album(0.3, (2, 2), far=1e-3), album(0.9, (2, 2), far=1e-1)]})
    assert Albums.verdict(audited(other)) == (
        "With 2 pictures per person on each side at FAR 1e-3: 30.0 % [29.0, 31.0]."
    )
    single = FOUND.model_copy(update={"points": [album(0.05, (1, 1))]})
    assert Albums.verdict(audited(single)) == Albums.verdict(audited(None)) == ""


def test_readings_and_options_are_those_of_larger_albums() -> None:
    readings = [(one.what, one.where, one.at, one.found and one.found.value) for one in Albums.readings(audited())]
    assert readings == [
        ("album TAR", "vectors", "2 v 2, FAR 1e-4", 0.2),
        ("album TAR", "vectors", "2 v 3, FAR 1e-4", 0.4),
        ("album TAR", "vectors", "2 v 3, FAR 1e-3", 0.3),
    ]
    erased_too = FOUND.model_copy(update={"points": [album(0.1, (2, 2), "random"), album(0.1, (2, 2), "isp")]})
    assert [one.where for one in Albums.readings(audited(erased_too))] == ["isp"]
    (option,) = Albums.repeat(audited())
    assert option == Option("--album", ("2,1,half",), value="unface.auditing.Albums([2, 1, 'half'])")
    assert Albums.repeat(audited(None)) == [Option("--album", ("none",))]
    assert Albums.readings(audited(None)) == []


def test_the_terminal_has_the_headlines_rate_and_leaves_middle_sizes_out() -> None:
    many = [album(size / 10, (size, size)) for size in (1, 2, 3, 4)]
    (table,) = Albums.terminal(audited(FOUND.model_copy(update={"points": [*many, album(0.02, (1, 1), "random")]})))
    assert table.title == "albums, pictures per side: worst-case TAR % at FAR 1e-4"
    assert [str(column.header) for column in table.columns] == ["space", "1 against 1", "2 against 2", "4 against 4"]
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    assert columns == [
        ["raw", "isp", "random (control)"],
        ["10.0 [9.0, 11.0]", "not resolved", "2.0 [1.0, 3.0]"],
        ["20.0 [19.0, 21.0]", "not resolved", "not resolved"],
        ["40.0 [39.0, 41.0]", "not resolved", "not resolved"],
    ]
    (three,) = Albums.terminal(audited())
    assert next(str(cell) for cell in three.columns[3].cells) == "~40.0 [39.0, 41.0]"
    assert list(Albums.terminal(audited(None))) == []
