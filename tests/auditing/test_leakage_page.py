"""If these fail, the page shows another number of an attack than its file, or marks the wrong one."""

import pytest

from tests.auditing.charted import by_look, charts_of, outline, quantity, words
from tests.auditing.made import controls, erased, in_context, point, raw, result_of
from unface.auditing.leakage import page
from unface.page.charts import GREY, INK, Look
from unface.result.audit import Curve, SpaceResult

INKED = Look("raw", INK, (1, 0), "circle")


def with_curves(space: SpaceResult, *curves: Curve) -> SpaceResult:
    return space.model_copy(update={"curves": list(curves)})


def test_worst_cases_stand_by_space_and_k_with_the_pairs_they_are_shares_of() -> None:
    refused = point(None, k=1, resolution="refused", worst=False, needed=1234)
    other = point(0.2, 0.1, 0.3, k=1, far=1e-3, resolution="coarse")
    found = result_of(
        raw(refused, other, point(), point(0.01, 0, 0.02, probe="cosine", worst=False)),
        erased("isp", point(0.004, 0.003, 0.0051)),
        erased("random", point(0.03, 0.02, 0.04), control=True),
    )
    first, second = page._worst_tables(found)
    assert first.caption == "Worst-case TAR at FAR 1e-4"
    assert words(first) == [
        ["space", "k = 1", "k = 4, of 100,000 pairs"],
        [
            "raw | as they came",
            "not resolved | 1,234 calibrate identities needed",
            "8.4 % [7.1, 9.9] | 840 × chance, lda",
        ],
        ["isp | 4 of 8 dimensions removed", "not measured", "0.40 % [0.30, 0.51] | 40 × chance, lda"],
        ["random | control, 4 of 8 dimensions removed", "not measured", "3.0 % [2.0, 4.0] | 300 × chance, lda"],
    ]
    assert second.caption == "Worst-case TAR at FAR 1e-3"
    assert words(second)[:2] == [
        ["space", "k = 1, of 100,000 pairs", "k = 4"],
        ["raw | as they came", "~20.0 % [10.0, 30.0] | 200 × chance, lda", "not measured"],
    ]


def test_every_probe_has_its_counts_and_the_worst_case_is_emphasised() -> None:
    worst, weak = point(achieved=1.23e-4), point(0.01, 0, 0.02, probe="cosine", worst=False, effective_n=1234.4)
    refused = point(None, far=1e-6, resolution="refused", worst=False)
    ((name, table),) = page._probe_tables(result_of(raw(worst, weak, refused)))
    assert (name, table.caption) == ("raw", "Every probe on raw")
    assert words(table) == [
        ["probe", "k", "FAR", "TAR", "linked pairs", "FAR achieved", "chance", "times chance", "effective n"],
        [
            "*lda* | worst case",
            "4",
            "1e-4",
            "*8.4 % [7.1, 9.9]*",
            "8,400 of 100,000",
            "1.2e-4 | 123 of 1,000,000",
            "0.010 %",
            "840 ×",
            "200",
        ],
        [
            "cosine",
            "4",
            "1e-4",
            "1.0 % [0.0, 2.0]",
            "1,000 of 100,000",
            "1e-4 | 100 of 1,000,000",
            "0.010 %",
            "100 ×",
            "1,234",
        ],
        ["lda", "4", "1e-6", "not resolved", "–", "–", "–", "–", "–"],
    ]


@pytest.mark.parametrize(("passed", "outcome"), [(True, "at chance"), (False, "*above chance*")])
def test_a_control_above_chance_is_emphasised(passed: bool, outcome: str) -> None:
    table = page._control_table(result_of(raw(point()), checks=controls(passed=passed)))
    assert table.caption == "Identities shuffled among images"
    assert words(table) == [
        ["probe", "k", "FAR", "TAR", "chance", "outcome"],
        ["ridge", "1", "0.01", "25.0 % [20.0, 31.0] | 25,000 of 100,000", "1.1 %", outcome],
    ]


def test_the_shoot_is_taken_out_of_worst_cases_alone() -> None:
    adjusted = in_context(0.04, 0.03, 0.06, overlap=0.8)
    unsuspected = adjusted.model_copy(update={"suspects": None})
    found = result_of(raw(point(context_adjusted=adjusted), point(k=1), point(k=8, context_adjusted=unsuspected)))
    table = page._context_table(found)
    assert table is not None
    assert table.caption == "Worst case with mated pairs reweighted to the surroundings of strangers"
    assert words(table) == [
        ["space", "k", "FAR", "TAR", "TAR, surroundings alike", "accepted pairs that share them", "overlap"],
        ["raw", "4", "1e-4", "8.4 % [7.1, 9.9]", "4.0 % [3.0, 6.0]", "50.0 %", "80.0 %"],
        ["raw", "8", "1e-4", "8.4 % [7.1, 9.9]", "4.0 % [3.0, 6.0]", "no pair accepted", "80.0 %"],
    ]
    assert page._context_table(result_of(raw(point()))) is None


def test_sections_name_what_they_lack() -> None:
    assert outline(page.sections(result_of(raw(point())))) == [
        ("leakage", "What the vectors reveal", 1),
        "curves over FAR",
        ("controls", "Controls on the audit itself", 3),
        "same-shoot pairs apart from identity",
    ]
    curve = Curve(probe="lda", k=4, far=[1e-2, 1], tar=[0.5, 1], eer=0.2)
    whole = with_curves(raw(point(context_adjusted=in_context(0.04, 0.03, 0.06))), curve)
    assert outline(page.sections(result_of(whole))) == [
        ("leakage", "What the vectors reveal", 1),
        ("curves", "Over all rates", 3),
        ("controls", "Controls on the audit itself", 3),
    ]


def test_a_chart_draws_the_worst_case_at_the_lowest_rate_above_the_line_of_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = charts_of(monkeypatch, "leakage")
    points = (point(far=1e-2, probe="ridge"), point(far=1e-4), point(far=1e-4, probe="cosine", worst=False))
    shown = Curve(probe="lda", k=4, far=[0, 1e-4, 1e-3, 1e-2, 0.5], tar=[0.001, 0.004, 0.02, 0.2, 0.9], eer=0.15)
    others = [
        shown.model_copy(update={"probe": probe, "k": k}) for probe, k in (("ridge", 4), ("cosine", 4), ("lda", 1))
    ]
    isp = with_curves(erased("isp", point()), Curve(probe="lda", k=4, far=[1e-3, 0.5], tar=[0, 0.5], eer=0.5))
    (figure,) = page._curve_figures(result_of(with_curves(raw(*points), *others, shown), isp))
    (chart,) = drawn
    blue = Look("isp", "#1c5d99", (1, 0), "circle")
    assert (figure.title, figure.looks) == ("k = 4", (INKED, blue))
    assert chart.label == (
        "TAR over FAR at k = 4, both logarithmic, above the line of chance where TAR equals FAR: raw reaches 2.0 % at "
        "FAR 1e-3; isp reaches 0.0 % at FAR 1e-3"
    )
    far = quantity(
        "far",
        "false-accept rate (FAR)",
        scale={"type": "log", "domain": [1e-4, 0.5], "nice": False},
        axis={
            "values": pytest.approx([1e-4, 1e-3, 1e-2, 1e-1]),
            "format": "~e",
            "tickCount": 10,
            "labelOverlap": False,
        },
    )
    tar = quantity(
        "tar",
        "true-accept rate (TAR)",
        scale={"type": "log", "domain": [0.004, 1], "nice": False},
        axis={"values": pytest.approx([1e-2, 1e-1, 1]), "format": "~%"},
    )
    diagonal, curves = chart.layers
    assert diagonal == {
        "mark": {"type": "line", "color": GREY, "strokeWidth": 1, "opacity": 0.8},
        "rows": [{"far": 0.004, "tar": 0.004}, {"far": 0.5, "tar": 0.5}],
        "x": far,
        "y": tar,
    }
    assert curves == {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "rows": [
            {"look": "raw", "far": 1e-4, "tar": 0.004},
            {"look": "raw", "far": 1e-3, "tar": 0.02},
            {"look": "raw", "far": 1e-2, "tar": 0.2},
            {"look": "raw", "far": 0.5, "tar": 0.9},
            {"look": "isp", "far": 0.5, "tar": 0.5},
        ],
        "x": far,
        "y": tar,
        "color": by_look([INKED, blue], INK, "#1c5d99"),
        "strokeDash": by_look([INKED, blue], [1, 0], [1, 0]),
    }
    assert figure.table is not None
    assert figure.table.caption == "TAR at k = 4"
    assert words(figure.table) == [
        ["FAR on test identities", "raw (lda)", "isp (lda)"],
        ["0.1", "20.0 %", "0.0 %"],
        ["0.01", "20.0 %", "0.0 %"],
        ["1e-3", "2.0 %", "0.0 %"],
        ["1e-4", "0.40 %", "0.0 %"],
        ["equal error rate", "15.0 %", "50.0 %"],
    ]


def test_a_chart_of_few_decades_has_marks_between_them_and_no_line_of_chance_outside_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = charts_of(monkeypatch, "leakage")
    high = Curve(probe="lda", k=4, far=[1e-3, 0.1], tar=[0.4, 0.9], eer=0.1)
    assert len(page._curve_figures(result_of(with_curves(raw(point()), high)))) == 1
    (only,) = drawn[0].layers
    assert only["y"]["scale"]["domain"] == [0.1, 1]
    assert only["y"]["axis"]["values"] == pytest.approx([0.1, 0.2, 0.5, 1])
    assert only["mark"]["strokeWidth"] == 1.8
