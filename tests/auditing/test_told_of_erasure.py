"""If these fail, the terminal or a finding says something else of a space than the audit measured."""

import pytest
from rich.table import Table

from tests.auditing.made import change, erased, in_context, kept, point, raw, result_of
from tests.report.made import given
from unface.auditing.erasure import ErasurePart
from unface.auditing.leakage import Leakage
from unface.result.audit import AuditResult, Change, ErasedSource, FitOverlap, GateUse, SpaceResult
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.result.parts import Option


def remade(space: SpaceResult, **erasure: object) -> SpaceResult:
    assert space.erasure is not None
    return space.model_copy(update={"erasure": space.erasure.model_copy(update=erasure)})


def findings(*spaces: SpaceResult, **update: object) -> list[tuple[str, str, str]]:
    result = result_of(raw(point()), *spaces).model_copy(update=update)
    return [(one.severity, one.about, one.text) for one in ErasurePart.findings(result)]


def cells(table: Table) -> list[list[str]]:
    """Row by row."""
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


OVERLAP = FitOverlap(people=1, compared=1_000, matches=7, chance=0.005, overlap=False)


def test_a_projection_says_whom_it_was_fitted_on() -> None:
    ready = remade(erased("ready", point()), fit_identities=None, overlap=OVERLAP)
    assert findings(ready) == [
        (
            "note",
            "ready",
            "fitted on 1 person, who are not found among the calibrate and test identities (7 of 1,000 match its "
            "record, 5.0 would by chance)",
        )
    ]
    seen = OVERLAP.model_copy(update={"overlap": True, "matches": 505})
    ((severity, about, text),) = findings(remade(ready, overlap=seen))
    assert (severity, about) == ("invalid", "ready")
    assert text == (
        f"about {seen.estimate:,} of the 1,000 calibrate and test identities are people this projection was fitted on "
        "(505 of 1,000 match its record, 5.0 would by chance), so its results are too good; audit other people, or fit "
        "a new projection by `unface fit --from` an audit of this set"
    )
    unknown = "this projection does not record who it was fitted on; if those people are in this set, the results are "
    assert findings(remade(ready, overlap=None)) == [("warning", "ready", f"{unknown}optimistic")]
    source = ErasedSource(kind="isp", rank=4, gated=False, projection_sha256="c" * 64, overlap=OVERLAP)
    assert [(severity, about) for severity, about, _ in findings(erased_by=source)] == [("note", source.name)]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (change(0.02, 0.01, 0.03, against="raw"), "raises TAR: +2.0 [+1.0, +3.0] points of TAR"),
        (
            change(-0.01, -0.02, 0.0, against="raw"),
            "has no measurable effect on TAR: −1.0 [−2.0, +0.0] points of TAR",
        ),
        (
            change(0.02, 0.01, 0.03),
            "leaves more than a random subspace of equal rank (+2.0 [+1.0, +3.0] points of TAR)",
        ),
        (
            change(0.0, -0.01, 0.01),
            "no measurable difference from a random subspace of equal rank (+0.0 [−1.0, +1.0] points of TAR): removing "
            "random dimensions works as well",
        ),
        (
            change(0.01, 0.0, 0.02, against="pca"),
            "no measurable difference from label-free PCA of equal rank (+1.0 [+0.0, +2.0] points of TAR): identity "
            "labels gave no measurable benefit over PCA",
        ),
        (change(-0.02, -0.03, -0.01), None),
        (change(0.02, 0.01, 0.03, against="leace"), None),
    ],
)
def test_an_eraser_that_is_no_better_than_a_control_is_named(at: Change, said: str | None) -> None:
    isp = erased("isp", point(), changes=[at])
    others = (erased("random", point(), control=True), erased("pca", point(), control=True), erased("leace", point()))
    assert findings(isp, *others) == ([] if said is None else [("warning", "isp", said)])


def test_vectors_of_which_nothing_is_left_ranks_that_are_capped_and_spectra_that_end_are_named() -> None:
    text = "nothing is left of 1 vector after erasure; what becomes zero matches nobody"
    assert findings(remade(erased("isp", point()), degenerate=1)) == [("warning", "isp", text)]
    capped = "rank is capped at 4 because only 5 people were available to fit on; add people to remove more"
    assert findings(remade(erased("isp", point()), fit_identities=5)) == [("note", "isp", capped)]
    assert findings(remade(erased("isp", point()), fit_identities=6)) == []
    assert findings(remade(erased("keeper", point()), fit_identities=5, kept=4, spectrum=[1, 0.001])) == []
    ends = (
        "only 2 of the 4 removed directions reach 1 % of the largest singular value: the vectors span few dimensions, "
        "and what is left may be a tiny remainder that attackers still read at unit length; ask for a lower rank"
    )
    assert findings(remade(erased("isp", point()), spectrum=[5, 0.05, 0.04, 0.01, 0])) == [("warning", "isp", ends)]
    assert findings(remade(erased("isp", point()), spectrum=[5, 4, 3, 0.05, 0.001])) == []
    control = remade(erased("pca", point(), control=True), fit_identities=5, spectrum=[5, 0.001])
    assert findings(control) == []


@pytest.mark.parametrize(("missed", "warned"), [(2, False), (3, True)])
def test_a_gate_that_misses_more_here_than_its_bound_is_a_warning(missed: int, warned: bool) -> None:
    counted = Rate.counted
    certificate = GateCertificate(0.001, counted(0, 4_000), 0.0008, counted(0, 400), 0.0075, counted(1, 1_000))
    use = GateUse(certificate=certificate, missed_here=counted(missed, 1_000))
    isp = remade(erased("isp", point()), gate=use)
    said, *warnings = findings(isp, isp.model_copy(update={"name": "leace"}), gate_source=given("things.npz", 100))
    assert said[:2] == ("note", "face gate")
    assert said[2].startswith("misses 0 of 4,000 held-out faces")
    assert said[2].endswith(f"; of 1,000 pictures of test identities it misses {missed}")
    text = "0.30 % of the pictures of test identities pass the gate unerased, more than its bound of 0.080 %: these "
    expected = [("warning", "face gate", f"{text}faces differ from those it was fitted on")]
    assert warnings == (expected if warned else [])


def test_the_terminal_shows_every_space_at_every_rate_and_whether_it_changed() -> None:
    changes = [
        change(-0.08, -0.09, -0.07, against="raw"),
        change(0.01, -0.01, 0.02, against="raw", far=1e-3),
        change(0.01, 0.005, 0.02, against="random"),
    ]
    isp = erased("isp", point(0.004, 0.003, 0.005), point(0.2, 0.1, 0.3, far=1e-3), changes=changes)
    control = erased("random", point(0.03, 0.02, 0.04), control=True)
    result = result_of(raw(point(), point(0.3, 0.2, 0.4, far=1e-3, resolution="coarse")), isp, control)
    (table,) = ErasurePart.terminal(result)
    assert table.title == "worst case at k = 4 (? no clear change from raw)"
    assert [(str(column.header), column.justify, column.no_wrap, column.overflow) for column in table.columns] == [
        ("space", "left", False, "fold"),
        ("removed", "right", True, "ellipsis"),
        ("TAR %", "left", True, "ellipsis"),
        ("× chance", "right", True, "ellipsis"),
        ("from raw", "right", True, "ellipsis"),
    ]
    assert cells(table) == [
        ["FAR 1e-4", "", "", "", ""],
        ["raw", "–", "8.4 [7.1, 9.9]", "840", ""],
        ["isp", "4 of 8", "0.40 [0.30, 0.50]", "40", "−8.0  "],
        ["random (control)", "4 of 8", "3.0 [2.0, 4.0]", "300", ""],
        ["", "", "", "", ""],
        ["FAR 1e-3", "", "", "", ""],
        ["raw", "–", "~30.0 [20.0, 40.0]", "300", ""],
        ["isp", "4 of 8", "20.0 [10.0, 30.0]", "200", "+1.0 ?"],
        ["random (control)", "4 of 8", "not resolved", "–", ""],
    ]
    assert [row.style for row in table.rows] == ["dim", "", "", "dim", None, "dim", "", "", "dim"]
    alone = result_of(raw(point()))
    assert list(ErasurePart.terminal(alone)) == []
    assert ErasurePart.not_measured(alone) == ["what an eraser leaves: this is the space as it is"]
    assert ErasurePart.not_measured(result) == []


def test_every_probe_stands_on_the_terminal_two_rates_side_by_side() -> None:
    points = (
        point(k=1),
        point(0.01, 0, 0.02, k=1, probe="cosine", worst=False),
        point(None, k=1, far=1e-5, resolution="refused", worst=False),
        point(0.2, 0.1, 0.3, k=1, far=1e-3),
    )
    result = result_of(raw(*points))
    first, second = Leakage.terminal(result)
    assert (first.title, second.title) == (None, None)
    heads = [[str(column.header) for column in table.columns] for table in (first, second)]
    assert heads == [
        ["probe", "TAR % at FAR 1e-4", "× chance", "TAR % at FAR 1e-5", "× chance"],
        ["probe", "TAR % at FAR 1e-3", "× chance"],
    ]
    assert [(column.justify, column.no_wrap) for column in first.columns[:3]] == [
        ("left", False),
        ("left", True),
        ("right", True),
    ]
    assert cells(first) == [
        ["k = 1", "of 100,000 pairs", "", "", ""],
        ["lda", "8.4 [7.1, 9.9] ◂", "840", "not resolved", "–"],
        ["cosine", "1.0 [0.0, 2.0]", "100", "–", "–"],
        ["", "", "", "", ""],
    ]
    assert cells(second)[1] == ["lda", "20.0 [10.0, 30.0] ◂", "200"]
    assert [row.style for row in first.rows] == ["dim", None, None, None]
    with_eraser = result_of(raw(*points), erased("isp", point(k=1)))
    assert [table.title for table in Leakage.terminal(with_eraser)] == ["raw space, probe by probe", None]


def test_readings_are_the_headline_and_one_of_each_k_and_rate() -> None:
    refused = [point(None, far=1e-5, resolution="refused", worst=False, probe=probe) for probe in ("lda", "ridge")]
    control = erased("random", point(), control=True)
    result = result_of(raw(point(k=1), point(0.01, 0, 0.02, worst=False), *refused), erased("isp", point(k=1)), control)
    found = [
        (one.what, one.where, one.at, one.found and one.found.value, one.headline, one.listed)
        for one in Leakage.readings(result)
    ]
    assert found == [
        ("TAR", "vectors", "worst k, FAR 1e-4", 0.084, True, "raw"),
        ("TAR", "vectors", "k = 1, FAR 1e-4", 0.084, False, ""),
        ("TAR", "vectors", "k = 4, FAR 1e-5", None, False, ""),
        ("TAR", "isp", "worst k, FAR 1e-4", 0.084, True, "isp"),
        ("TAR", "isp", "k = 1, FAR 1e-4", 0.084, False, ""),
    ]


def test_probes_and_shoots_that_are_missing_are_named() -> None:
    shoots = (
        "same-shoot pairs: bare vectors cannot separate the same person elsewhere from the same photo shoot; name a "
        "--group column of shoots, or a --context column"
    )
    assert Leakage.not_measured(result_of(raw(point()))) == [shoots, "probes left out: cosine, ridge, plda"]
    adjusted = [point(probe=probe, context_adjusted=in_context(0.1, 0, 0.2)) for probe in ("cosine", "ridge", "lda")]
    whole = (*adjusted, point(probe="plda"))
    assert Leakage.not_measured(result_of(raw(*whole))) == []
    assert Leakage.not_measured(result_of(raw(*whole), variant="paper")) == ["probes left out: mlp"]
    attacker = result_of(raw(point())).model_copy(update={"attacker_source": given("theirs.npz", 100)})
    again = Option("--attacker-data", ("theirs.npz",), keyword="attacker_data", value="'theirs.npz'")
    assert Leakage.repeat(attacker) == [again]
    assert Leakage.repeat(result_of(raw(point()))) == []


def options(*spaces: SpaceResult, **update: object) -> list[Option]:
    result: AuditResult = result_of(raw(point()), *spaces).model_copy(update=update)
    return ErasurePart.repeat(result)


def test_what_was_fitted_can_be_asked_for_again() -> None:
    none = Option("--eraser", ("none",), keyword="eraser", value="[]")
    assert options() == [none]
    assert options(remade(erased("ready", point()), fit_identities=None)) == [none]
    both = Option("--eraser", ("isp,leace",), keyword="eraser", value="['isp', 'leace']")
    rank = Option("--rank", ("4",), keyword="rank", value="4")
    isp, leace, control = erased("isp", point()), erased("leace", point()), erased("pca", point(), control=True)
    assert options(isp, leace, control) == [both, rank]
    assert options(isp, remade(leace, rank=3)) == [both]
    keeper = remade(erased("keeper", point(), utility=[kept(0.9, 0.8, 1)]), mu=0.3, kept=5, rank=3)
    named = Option("--eraser", ("keeper",), keyword="eraser", value="['keeper']")
    mu = Option("--mu", ("0.3",), keyword="mu", value="0.3")
    assert options(keeper) == [named, Option("--rank", ("3",), keyword="rank", value="3"), mu]
    assert options(isp, keeper)[1:] == [mu, Option("--keep", ("5",), keyword="keep", value="5")]
    counted = Rate.counted
    certificate = GateCertificate(0.01, counted(0, 400), 0.008, counted(0, 40), 0.0075, counted(1, 1_000))
    gated = remade(isp, gate=GateUse(certificate=certificate, missed_here=counted(0, 10)))
    sets = {"copy_source": given("c", 1), "gate_source": given("g", 1), "fit_source": given("f", 1)}
    assert options(gated, **sets)[2:] == [
        Option("--copies", ("c",), keyword="copies", value="'c'"),
        Option("--gate", ("g",), keyword="gate", value="'g'"),
        Option("--miss", ("0.01",), keyword="miss", value="0.01"),
        Option("--fit-on", ("f",), keyword="fit_on", value="'f'"),
    ]
