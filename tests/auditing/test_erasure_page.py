"""If these fail, the page says something else of an eraser than what was measured of it."""

import pytest

from tests.auditing.charted import charts_of, outline, quantity, words
from tests.auditing.made import change, erased, point, raw, result_of
from unface.auditing.erasure import page
from unface.page.charts import GREY, Look
from unface.result.audit import GateUse, SpaceResult
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Certificate, Estimate, Rate
from unface.result.parts import Section

CERTIFICATE = Certificate(
    identities=70,
    images=1_400,
    energy_left=Estimate(0.24, 0.22, 0.26, 0.95),
    fisher_before=Estimate(3.1, 2.8, 3.4, 0.95),
    fisher_left=Estimate(0.8, 0.7, 0.9, 0.95),
    covers="linear access",
)


def remade(space: SpaceResult, **erasure: object) -> SpaceResult:
    assert space.erasure is not None
    return space.model_copy(update={"erasure": space.erasure.model_copy(update=erasure)})


def test_every_eraser_says_its_rank_its_people_and_its_certificate() -> None:
    isp = remade(erased("mine", point()), method="isp", certificate=CERTIFICATE, degenerate=1_234)
    random = erased("random", point(), control=True)
    ready = remade(erased("ready", point()), fit_identities=None, fitted_on="unknown", rank_rule="of the file")
    table = page._eraser_table(result_of(raw(point()), isp, random, ready))
    assert table is not None
    assert table.caption.startswith("Erasers and controls; certificates are measured on test identities")
    none = ["no certificate", "no certificate", "0"]
    assert words(table) == [
        ["eraser", "rank", "fitted on", "identity energy left", "largest Fisher ratio", "vectors left empty"],
        [
            "mine | isp",
            "4 of 8 | given",
            "30 identities | faces.parquet",
            "24.0 % [22.0, 26.0] | 70 identities, 1,400 images",
            "0.80 [0.70, 0.90] | 3.10 [2.80, 3.40] before",
            "1,234",
        ],
        ["random | control", "4 of 8 | given", "30 identities | faces.parquet", *none],
        ["ready | ready", "4 of 8 | of the file", "not said | unknown", *none],
    ]


def test_paired_changes_say_which_way_they_go() -> None:
    changes = [change(-0.02, -0.03, -0.01), change(0.02, 0.01, 0.03, against="raw", k=1), change(0, -0.01, 0.01)]
    table = page._change_table(result_of(raw(point()), erased("isp", point(), changes=changes)))
    assert table is not None
    assert table.caption == "Paired changes: the same pairs and the same draws of identities on both sides"
    assert words(table) == [
        ["difference", "k", "FAR", "worst-case TAR, percentage points", "distinguishable"],
        ["isp − random | lda − ridge", "4", "1e-4", "−2.0 [−3.0, −1.0]", "less"],
        ["isp − raw | lda − ridge", "1", "1e-4", "+2.0 [+1.0, +3.0]", "more"],
        ["isp − random | lda − ridge", "4", "1e-4", "+0.0 [−1.0, +1.0]", "no"],
    ]
    touching = [change(-0.02, -0.03, 0), change(0.02, 0, 0.03)]
    table = page._change_table(result_of(raw(point()), erased("isp", point(), changes=touching)))
    assert [row[-1] for row in words(table)[1:]] == ["no", "no"]
    assert page._change_table(result_of(raw(point()), erased("isp", point()))) is None


def test_sections_of_erasers_name_what_they_lack() -> None:
    lacking = ["whether an eraser beats controls of equal rank", "a certificate of what is left to linear access"]
    compared, removed = ("compared", "Erasers against controls", 1), ("erasers", "What was removed", 2)
    assert outline(page.sections(result_of(raw(point())))) == ["what an eraser leaves", *lacking]
    assert outline(page.sections(result_of(raw(point()), erased("isp", point())))) == [compared, removed, *lacking]
    isp = remade(erased("isp", point(), changes=[change(-0.02, -0.03, -0.01)]), certificate=CERTIFICATE)
    assert outline(page.sections(result_of(raw(point()), isp))) == [compared, removed]
    again = remade(erased("leace", point()), certificate=CERTIFICATE)
    assert page._covered(result_of(raw(point()), isp, again)) == ["linear access"]


def test_a_spectrum_falls_from_one_and_its_rank_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts_of(monkeypatch, "erasure")
    isp = remade(erased("isp", point()), spectrum=[8.0, 6.0, 4.0, 2.0, 1.0], rank=3)
    flat = remade(erased("random", point(), control=True), spectrum=[1.0, 1.0])
    one = remade(erased("one", point()), spectrum=[2.0])
    keeper = remade(erased("keeper", point()), spectrum=[3.0, 1.0], kept=2)
    (figure,) = page._spectrum_figures(result_of(raw(point()), isp, flat, one, keeper))
    (chart,) = drawn
    note = "Rank 3 of 8: the last direction removed has 50.0 % of the first one's value."
    assert (figure.title, figure.note) == ("Spectrum of isp", note)
    assert chart.label == f"Spectrum of isp, falling. {note}"
    blue = "#1c5d99"
    assert figure.looks == (Look("isp", blue, (1, 0), "circle"), Look("rank 3", GREY, (6, 3), "circle"))
    x = quantity("x", "direction", axis={"grid": False, "format": "d"})
    assert chart.layers == [
        {"mark": {"type": "rule", "color": GREY, "strokeDash": [6, 3]}, "rows": [{"x": 3}], "x": x},
        {
            "mark": {"type": "line", "color": blue, "strokeWidth": 1.8},
            "rows": [{"x": n + 1, "y": y} for n, y in enumerate((1, 0.75, 0.5, 0.25, 0.125))],
            "x": x,
            "y": quantity("y", "singular value, first = 1", scale={"domain": [0, 1]}),
        },
    ]
    assert figure.table is not None
    assert figure.table.caption == "Singular values of isp"
    assert words(figure.table) == [
        ["direction", "singular value"],
        ["1", "8"],
        ["2", "6"],
        ["3", "4"],
        ["4", "2"],
        ["5", "1"],
    ]


def test_a_rank_beyond_the_spectrum_is_measured_by_its_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    charts_of(monkeypatch, "erasure")
    (figure,) = page._spectrum_figures(result_of(raw(point()), remade(erased("isp", point()), spectrum=[4.0, 1.0])))
    assert figure.note.startswith("Rank 4 of 8: the last direction removed has 25.0 % of")


def gated() -> SpaceResult:
    counted = Rate.counted
    certificate = GateCertificate(0.001, counted(1, 4_000), 0.0012, counted(1, 200), 0.024, counted(30, 1_000))
    return remade(erased("isp", point()), gate=GateUse(certificate=certificate, missed_here=counted(2, 800)))


def test_a_face_gate_stands_once_under_the_first_space_behind_it() -> None:
    same = gated().model_copy(update={"name": "pca"})
    table = page._gate_table(result_of(raw(point()), gated(), same))
    assert table is not None
    assert table.caption.startswith("Face gate: what it does not take for a face is released as it is")
    assert words(table) == [
        ["gate of", "faces missed", "people with a missed picture", "missed in this audit", "gate set taken for faces"],
        [
            "isp | at most 0.10 % was asked for",
            "0.025 % (1 of 4,000) | at most 0.12 % if pictures are independent",
            "0.50 % (1 of 200) | at most 2.4 %",
            "0.25 % (2 of 800) | of test identities",
            "3.0 % (30 of 1,000) | erased like faces",
        ],
    ]
    assert page._gate_table(result_of(raw(point()), erased("isp", point()))) is None


def test_the_section_of_a_gate_names_the_set_that_is_no_faces() -> None:
    found = result_of(raw(point()), gated())
    (section,) = (one for one in page.sections(found) if isinstance(one, Section) and one.anchor == "gate")
    assert (section.title, section.order, section.sources) == ("Face gate", 2, ())
    named = found.model_copy(update={"gate_source": found.source})
    (section,) = (one for one in page.sections(named) if isinstance(one, Section) and one.anchor == "gate")
    assert section.sources == (("Gate set", found.source),)
    assert "0.025 % (1 of 4,000)" in section.body
    (row,) = words(page._eraser_table(named))[1:]
    assert row[0] == "isp | isp, faces only"
