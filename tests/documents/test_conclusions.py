"""If these fail, an audit concludes something that its numbers do not say, or keeps from its reader what voids them."""

import tomllib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import pytest

from tests.kit.documents import concluded
from tests.kit.golden import declare, golden
from tests.kit.results import (
    INVALID,
    NOTE,
    WARNING,
    AuditResult,
    Change,
    Controls,
    FitOverlap,
    Point,
    album,
    albums,
    audited,
    cell,
    change,
    controls,
    erased,
    erased_source,
    every_part,
    exposures,
    face_gate,
    fit_overlap,
    given,
    in_context,
    inversion,
    kept,
    point,
    raw,
    refused,
    same_rate,
    searched,
    searches,
    share,
    translated,
    translated_at,
    with_parts,
)
from unface.report.opening import audit_opening
from unface.result.file import Finding

declare("audit/conclusions.txt")
Found = Sequence[tuple[str, str]]
PLAIN = point(), point(0.01, 0, 0.02, probe="cosine", worst=False)
RANDOM, PCA = (erased(name, point(0.03, 0.02, 0.04), control=True) for name in ("random", "pca"))


class Case(NamedTuple):
    """An audit, the findings it leads to, and numbers that its verdict has to quote, and must not."""

    audit: AuditResult
    findings: Found = ()
    quoted: Sequence[str] = ()
    unquoted: Sequence[str] = ()


def checked(checks: Controls, *points: Point) -> AuditResult:
    return audited(raw(*(points or PLAIN)), checks=checks)


def erasing(*changes: Change, **erasure: object) -> AuditResult:
    """isp beside both controls."""
    isp = erased("isp", point(0.02, 0.01, 0.03), changes=changes, **erasure)  # type: ignore[arg-type]
    return audited(raw(*PLAIN), isp, RANDOM, PCA)


def ready(overlap: FitOverlap | None) -> AuditResult:
    """A projection that somebody else fitted."""
    return audited(raw(*PLAIN), erased("ready", point(0.02, 0.01, 0.03), fit_identities=None, overlap=overlap))


def at_two_ks(*, eraser_worse_at: int = 4) -> AuditResult:
    """The control's own worst case is at another k than the headline's: 21.0 % at k = 1."""
    at_1, at_4 = (0.13, 0.06) if eraser_worse_at == 1 else (0.05, 0.06)
    changes = [
        change(-0.28, -0.29, -0.27, against="raw"),
        change(-0.19, -0.2, 0.01, against="random"),
        change(-0.1, -0.2, 0.02, against="random", k=1),
        change(-0.02, -0.05, 0.03, against="pca"),
    ]
    isp = (point(0.11, 0.1, 0.12, k=1, calibrate_tar=at_1), point(0.12, 0.11, 0.13, calibrate_tar=at_4))
    random = (point(0.21, 0.2, 0.22, k=1, calibrate_tar=0.5), point(0.31, 0.3, 0.32, calibrate_tar=0.3))
    pca = (point(0.13, 0.12, 0.14, k=1, calibrate_tar=0.1), point(0.14, 0.13, 0.15, calibrate_tar=0.2))
    return audited(
        raw(point(0.3, 0.28, 0.32, k=1, calibrate_tar=0.3), point(0.4, 0.38, 0.42, calibrate_tar=0.4)),
        erased("isp", *isp, changes=changes, utility=[kept(0.9, 0.88, 0.92)]),
        erased("random", *random, control=True),
        erased("pca", *pca, control=True),
    )


def _leakage() -> dict[str, Case]:
    at_chance = point(0.012, 0.006, 0.03, far=1e-2)
    certain = point(0.5, 0.4, 0.6, far=1e-1, probe="mlp", worst=False)
    lucky = point(0.16, 0.11, 0.22, far=1e-1, probe="mlp", worst=False)
    lucky_chance = point(0.03, 0.02, 0.05, far=2e-2, chance=0.001, worst=False)
    near, same, labels = ("warning", "near-duplicates"), ("warning", "same shoot"), ("warning", "labels")
    refused_twice = [refused(probe=probe, needed=321) for probe in ("lda", "mlp")]
    coarse = [point(far=1e-5, k=k, resolution="coarse") for k in (4, 1)]
    return {
        "clear": Case(checked(controls()), (), ("8.4 % [7.1, 9.9]", "10,000", "840 times")),
        "one picture": Case(
            checked(controls(), point(0.03, 0.02, 0.05, far=1e-2, chance=0.012, k=1)),
            (),
            ("3.0 %", "2.5 times", "1 picture "),
        ),
        "all pictures": Case(checked(controls(), point(k=8)), (), ("all 8 pictures",)),
        "compared as they are": Case(checked(controls(), point(probe="cosine")), (), ("840 times",), ("picture ",)),
        "interval reaches chance": Case(
            checked(controls(), point(0.015, 0.012, 0.03, far=1e-2, chance=0.012)),
            [labels],
            ("1.2 %",),
            ("times chance",),
        ),
        "interval just above chance": Case(
            checked(controls(), point(0.015, 0.0121, 0.03, far=1e-2, chance=0.012)), (), ("1.2 times chance",)
        ),
        "coarse": Case(checked(controls(), point(resolution="coarse")), [("note", "resolution")], ("coarse",)),
        "coarse at chance": Case(
            checked(controls(), point(0.0, 0.0, 0.2, resolution="coarse")),
            [labels, ("note", "resolution")],
            ("coarse",),
        ),
        "nothing resolved": Case(checked(controls(), refused(far=1e-4)), [("note", "resolution")], (), ("%",)),
        "refused and coarse, listed once": Case(
            checked(controls(), point(), *refused_twice, *coarse), [("note", "resolution")] * 2, ("8.4 %",)
        ),
        "control failed": Case(
            checked(controls(passed=False, across=2)),
            [("invalid", "shuffled identities"), near],
            ("25.0 %", "1.1 %"),
            ("8.4 %",),
        ),
        "no probe beats chance": Case(checked(controls(), at_chance), [labels]),
        "the headline is above chance": Case(checked(controls(), point(0.03, 0.02, 0.05, far=1e-2))),
        "another number is certainly above chance": Case(checked(controls(), at_chance, certain)),
        "another number is above chance by luck": Case(checked(controls(), at_chance, lucky), [labels]),
        "a low rate was achieved by luck": Case(checked(controls(), at_chance, lucky_chance), [labels]),
        "duplicates and doubles": Case(
            checked(controls(across=1, within=3, lookalikes=2)), [near, ("warning", "identities"), ("note", near[1])]
        ),
        "few duplicates": Case(checked(controls(within=9)), [("note", near[1])]),
        "many duplicates": Case(checked(controls(within=2500)), [near]),
        "under the wrong name": Case(checked(controls(lost=2)), [("warning", "identities")]),
        "the shoot links": Case(checked(controls(), point(context_adjusted=in_context(0.04, 0.03, 0.06))), [same]),
        "the shoot may link": Case(checked(controls(), point(context_adjusted=in_context(0.07, 0.05, 0.09)))),
        "the shoot cannot be told": Case(
            checked(controls(), point(context_adjusted=in_context(0.0, 0.0, 0.03, overlap=0.2))), [same]
        ),
        "the shoot is one of a few": Case(
            checked(controls(), point(context_adjusted=in_context(0.04, 0.03, 0.06, apart=share(0.03, 0.02, 0.04)))),
            [same],
            ("groups ('shoot'): 3.0 % [2.0, 4.0]", "do: 4.0 % [3.0, 6.0]", "8.4 %"),
        ),
        "the shoot cannot be told, but is one of a few": Case(
            checked(
                controls(),
                point(context_adjusted=in_context(0.04, 0.0, 0.3, overlap=0.2, apart=share(0.03, 0.02, 0.04))),
            ),
            [same],
            ("groups ('shoot'): 3.0 % [2.0, 4.0]",),
            ("4.0 % [0.0, 30.0]",),
        ),
        "thresholds carry over": Case(checked(controls(), point(achieved=2.9e-4, chance=2.9e-4))),
        "thresholds do not carry over": Case(
            checked(controls(), point(achieved=3.1e-4, chance=3.1e-4)), [("warning", "thresholds")]
        ),
        "the paper's variant": Case(audited(raw(*PLAIN), variant="paper")),
        "every probe and a context": Case(
            checked(
                controls(),
                *(
                    point(probe=probe, context_adjusted=in_context(0.08, 0.07, 0.09))
                    for probe in ("cosine", "ridge", "lda")
                ),
                point(probe="plda"),
            )
        ),
    }


def _erasure() -> dict[str, Case]:
    worse, note = ("warning", "isp"), ("note", "isp")
    isp = erased("isp", point(0.02, 0.01, 0.03, calibrate_tar=0.01))
    mine = erased("mine", point(0.01, 0.005, 0.02, calibrate_tar=0.02))
    two_gates = [
        erased(name, point(0.02, 0.01, 0.03), gate=face_gate((2, 800), asked=0.0013)) for name in ("isp", "leace")
    ]
    missed_gates = [
        erased(name, point(0.02, 0.01, 0.03), gate=face_gate((3, 800), asked=0.0013)) for name in ("isp", "leace")
    ]
    things = {"gate_source": given("things.npz", 100)}
    other_rank = erased("pca", point(0.04, 0.03, 0.05), control=True, rank=5)
    useful = [kept(0.9, 0.8, 1.0, measure=measure) for measure in ("copy recall@1", "linear", "knn")]
    among = [kept(0.75, 0.7, 0.81, measure="neighbour overlap@10")]
    return {
        "fitted on others": Case(ready(fit_overlap()), [("note", "ready")], ("2.0 %",)),
        "fitted on the tested": Case(ready(fit_overlap(505, overlap=True)), [("invalid", "ready")], (), ("2.0 %",)),
        "fitted on nobody knows whom": Case(ready(None), [("warning", "ready")]),
        "erased before": Case(
            audited(raw(*PLAIN)).model_copy(update={"erased_by": erased_source(fit_overlap())}),
            [("note", "erased by isp 4")],
        ),
        "raises": Case(erasing(change(0.02, 0.01, 0.03, against="raw")), [worse]),
        "does nothing": Case(erasing(change(-0.01, -0.02, 0.0, against="raw")), [worse]),
        "leaves more than a random subspace": Case(erasing(change(0.02, 0.01, 0.03)), [worse]),
        "no better than a random subspace": Case(erasing(change(0.0, -0.01, 0.01)), [worse]),
        "no better than label-free PCA": Case(erasing(change(0.01, 0.0, 0.02, against="pca")), [worse]),
        "beats a random subspace": Case(erasing(change(-0.02, -0.03, -0.01)), (), ("2.0 %", "3.0 %")),
        "thresholds that accept more before": Case(
            erasing(change(-0.02, -0.03, -0.01, against="raw", same_rate=same_rate(0.0234, 0.0567))),
            [("note", "thresholds")],
        ),
        "thresholds that accept none before": Case(
            erasing(change(-0.02, -0.03, -0.01, against="raw", same_rate=same_rate(0.0234, 0.0567, against=0.0))),
            [("note", "thresholds")],
        ),
        "thresholds of a control that accept more": Case(
            erasing(change(-0.02, -0.03, -0.01, same_rate=same_rate(0.0234, 0.0567)))
        ),
        "pairs of different shoots after erasure": Case(
            audited(
                raw(point(0.3, 0.2, 0.4, context_adjusted=in_context(0.2, 0.1, 0.3, apart=share(0.19, 0.1, 0.3)))),
                erased(
                    "isp",
                    point(
                        0.235, 0.2, 0.3, context_adjusted=in_context(0.024, 0.01, 0.04, apart=share(0.02, 0.01, 0.03))
                    ),
                ),
            ),
            (),
            ("19.0 % [10.0, 30.0] → 2.0 % [1.0, 3.0]", "20.0 % [10.0, 30.0] → 2.4 % [1.0, 4.0]"),
        ),
        "worse than another eraser": Case(erasing(change(0.02, 0.01, 0.03, against="leace"))),
        "worse at another k and rate alone": Case(
            erasing(change(-0.2, -0.3, -0.1), change(0.5, 0.4, 0.6, k=1), change(0.5, 0.4, 0.6, far=1e-3))
        ),
        "nothing is left of a vector": Case(erasing(degenerate=1), [worse]),
        "rank is capped": Case(erasing(fit_identities=5), [note]),
        "rank is not capped": Case(erasing(fit_identities=6)),
        "a keeper is not capped": Case(erasing(fit_identities=5, kept=4, spectrum=[1, 0.001])),
        "the spectrum ends": Case(erasing(spectrum=[5, 0.05, 0.04, 0.01, 0]), [worse]),
        "the spectrum goes on": Case(erasing(spectrum=[5, 4, 3, 0.05, 0.001])),
        "a gate within its bound": Case(audited(raw(*PLAIN), *two_gates).model_copy(update=things), GATE_HOLDS),
        "a gate beyond its bound": Case(audited(raw(*PLAIN), *missed_gates).model_copy(update=things), GATE_MISSES),
        "best on calibrate": Case(
            audited(raw(*PLAIN), mine, isp), (), ("2.0 % [1.0, 3.0]", "2 erasers"), ("After mine",)
        ),
        "best on calibrate, the other way round": Case(
            audited(raw(*PLAIN), isp, mine), (), ("2.0 % [1.0, 3.0]",), ("After mine",)
        ),
        "not measured at the headline": Case(
            audited(raw(*PLAIN), erased("isp", point(0.02, 0.01, 0.03, far=1e-3))), (), ("8.4 %",), ("2.0 %",)
        ),
        "controls of another rank": Case(audited(raw(*PLAIN), isp, RANDOM, other_rank), (), ("3.0 %",), ("4.0 %",)),
        "what is kept of a task": Case(
            audited(raw(*PLAIN), erased("isp", isp.points[0], utility=useful)), (), ("80.0 % → 72.0 %", "k-NN")
        ),
        "what is kept of neighbours": Case(
            audited(raw(*PLAIN), erased("isp", isp.points[0], utility=among)), (), ("75.0 % [70.0, 81.0]",)
        ),
        "quoted at the k of the headline": Case(
            at_two_ks(), [worse] * 2, ("12.0 % [11.0, 13.0]", "1,200 times", "31.0 %", "14.0 %"), ("21.0 %",)
        ),
        "leaks more at another k": Case(
            at_two_ks(eraser_worse_at=1), [worse] * 2, ("12.0 % [11.0, 13.0]", "11.0 % with 1 picture"), ("21.0 %",)
        ),
    }


EVERY: Found = [
    *(("warning", about) for about in ("same shoot", "face gate", "isp", "groups", "inversion", "near-duplicates")),
    *(("note", about) for about in ("near-duplicates", "face gate", "isp", "albums", "translate", "inversion")),
    ("note", "resolution"),
]
GATE_HOLDS: Found = [("note", "face gate")]
GATE_MISSES: Found = [("warning", "face gate"), ("note", "face gate")]


def _parts() -> dict[str, Case]:
    made = audited(raw(*PLAIN, point(far=1e-3)), erased("isp", point()), erased("random", point(), control=True))
    stuck = inversion(cell("alsuv", 62), cell("alsuv", 4, "isp", converged=False))
    # What an inversion says of its attack is said of each space here, and controls have a table of their own.
    own = [Finding(severity="warning", about=about, text="odd") for about in ("controls", "not converged")]
    warned = inversion(cell("alsuv", 62)).model_copy(update={"findings": [WARNING, NOTE, *own]})
    larger = [album(0.2, (2, 2)), album(0.03, (2, 2), "isp")]
    elsewhere = [album(0.3, (2, 2), far=1e-3), album(0.9, (2, 2), far=1e-1)]
    weak, strong = (translated(translated_at(1e-3, tar)) for tar in (0.0130, 0.0131))
    return {
        "albums": Case(with_parts(made, albums=albums()), [("note", "albums")], ("40.0 % [39.0, 41.0]", "coarse")),
        "albums, a control failed": Case(
            with_parts(made, albums=albums(failed=True)), [("invalid", "albums"), ("note", "albums")], (), ("40.0 %",)
        ),
        "people with many pictures are linked less": Case(
            audited(raw(point(0.3, 0.28, 0.32, over_people=0.41)), erased("isp", point(0.02, over_people=0.021))),
            (),
            ("30.0 % [28.0, 32.0]", "instead of pairs: 41.0 %"),
            ("2.1 %",),
        ),
        "albums after erasure": Case(
            with_parts(made, albums=albums(*larger)), (), ("20.0 % [19.0, 21.0]", "3.0 % [2.0, 4.0]")
        ),
        "albums at another rate": Case(
            with_parts(made, albums=albums(*elsewhere)), (), ("30.0 %", "FAR 1e-3"), ("90.0 %",)
        ),
        "albums of one": Case(with_parts(made, albums=albums(album(0.05, (1, 1)))), (), (), ("5.0 %",)),
        "a map to templates": Case(with_parts(made, translate=translated()), [("note", "translate")]),
        "a map to templates of the same picture": Case(
            with_parts(made, translate=translated(translated_at(1e-2, None), encoder=None)), [("note", "translate")]
        ),
        "a map that hardly beats chance": Case(with_parts(made, translate=weak)),
        "a map that beats chance": Case(with_parts(made, translate=strong), [("note", "translate")]),
        "inverted": Case(with_parts(made, inversion=stuck), [("warning", "inversion"), ("note", "inversion")]),
        "inverted, with a warning": Case(
            with_parts(made, inversion=warned), [("warning", "inversion"), ("note", "inversion")]
        ),
        "groups differ": Case(with_parts(made, exposure=exposures()), [("warning", "groups")]),
        "groups may differ": Case(with_parts(made, exposure=exposures(few=3, low=0.0))),
        "no groups": Case(with_parts(made, exposure=exposures(None))),
        "searched without an open set": Case(with_parts(made, search=searches(searched(opened=None)))),
        "searched": Case(with_parts(made, search=searches())),
        "every part": Case(every_part(), EVERY),
    }


@cache
def cases() -> dict[str, Case]:
    return {**_leakage(), **_erasure(), **_parts()}


@pytest.mark.parametrize("name", list(cases()))
def test_an_audit_finds_what_its_numbers_say_and_quotes_those_of_its_headline(name: str) -> None:
    case = cases()[name]
    found = concluded(case.audit)
    assert [(one.severity, one.about) for one in found.findings] == list(case.findings)
    assert found.valid is not any(severity == "invalid" for severity, _ in case.findings)
    for words in case.quoted:
        assert words in found.verdict
    for words in case.unquoted:
        assert words not in found.verdict


def test_findings_verdicts_and_what_was_not_measured_read_as_they_did() -> None:
    usual: list[str] = []  # what the first one lacks, most others lack too
    said = []
    for name, case in cases().items():
        found = concluded(case.audit)
        said += [f"# {name}", found.verdict, *(f"{one.severity} {one.about}: {one.text}" for one in found.findings)]
        said += [*(f"not measured: {one}" for one in found.not_measured if one not in usual), ""]
        usual = usual or found.not_measured
    golden("\n".join(said), "audit/conclusions.txt")


def test_an_eraser_that_is_worse_is_not_told_like_one_that_makes_no_difference() -> None:
    def said(against: str, low: float) -> str:
        (finding,) = concluded(erasing(change(0.02, low, 0.03, against=against))).findings
        return finding.text.replace("+", "").split("(" if against != "raw" else ":")[0]

    for against in ("raw", "random", "pca"):
        worse, same, touching = (said(against, low) for low in (0.01, -0.01, 0.0))
        assert worse != same == touching


def test_a_warning_does_not_change_the_verdict_and_a_failed_check_does() -> None:
    plain = concluded(audited(raw(*PLAIN)))
    assert concluded(audited(raw(*PLAIN), findings=[WARNING])).verdict == plain.verdict
    assert INVALID.text in concluded(audited(raw(*PLAIN), findings=[INVALID])).verdict


@pytest.mark.parametrize(
    ("points", "best"),
    [
        ([point(0.9, far=1e-2), point(0.05, far=1e-3, k=1), point(0.04, far=1e-3)], 1),
        ([point(0.05, far=1e-3), point(0.8, far=1e-3, probe="mlp", worst=False)], 0),
        ([point(0.05, far=1e-3), point(0.7, far=1e-4, resolution="coarse"), refused(far=1e-5)], 0),
        ([point(0.2, far=1e-3, resolution="coarse"), point(0.1, far=1e-4, resolution="coarse")], 0),
        ([point(0.04, k=1, calibrate_tar=0.06), point(0.09, k=4, calibrate_tar=0.05)], 0),
    ],
    ids=["lowest resolved rate, worst k", "worst probe", "resolved before coarse", "coarse", "chosen on calibrate"],
)
def test_the_headline_is_the_lowest_resolved_rate_at_the_k_where_it_is_worst(points: list[Point], best: int) -> None:
    for order in (points, points[::-1]):
        head = audited(raw(*order)).headline
        assert head is not None
        assert head.raw is points[best]
    assert audited(raw(refused())).headline is None


def test_readings_are_the_headline_one_of_each_k_and_rate_and_those_of_the_parts() -> None:
    twice = [refused(far=1e-5, probe=probe) for probe in ("lda", "ridge")]
    made = audited(
        raw(point(k=1), point(0.01, 0, 0.02, worst=False), *twice),
        erased("isp", point(k=1), utility=[kept(0.9, 0.8, 1)]),
        erased("random", point(), control=True),
    )
    made = with_parts(made, albums=albums(album(0.2, (2, 2)), album(0.1, (1, 1)), album(0.1, (2, 2), "random")))
    made = with_parts(made, translate=translated(translated_at(1e-2, 0.8), translated_at(1e-3, None)))
    found = [
        (one.what, one.where, one.at, one.found and one.found.value, one.better, one.headline, one.listed)
        for one in made.readings()
    ]
    assert found == [
        ("TAR", "vectors", "worst k, FAR 1e-4", 0.084, "lower", True, "raw"),
        ("TAR", "vectors", "k = 1, FAR 1e-4", 0.084, "lower", False, ""),
        ("TAR", "vectors", "k = 4, FAR 1e-5", None, "lower", False, ""),
        ("TAR", "isp", "worst k, FAR 1e-4", 0.084, "lower", True, "isp"),
        ("TAR", "isp", "k = 1, FAR 1e-4", 0.084, "lower", False, ""),
        ("album TAR", "vectors", "2 v 2, FAR 1e-4", 0.2, "lower", False, ""),
        ("template recovered", "vectors", "FAR 0.01", 0.8, "lower", False, ""),
        ("template recovered", "vectors", "FAR 1e-3", 0.9, "lower", False, ""),
        ("template recovered", "isp", "FAR 1e-3", 0.1, "lower", False, ""),
        ("knn", "isp", "objects.parquet", pytest.approx(0.72), "higher", False, ""),
    ]


def test_what_is_left_of_one_shoot_decides_neither_the_suggested_policy_nor_what_to_do() -> None:
    """All pairs: 23.5 % after erasure; pairs from different shoots 0.6 %, weighted as strangers share them 0.7 %."""
    after = in_context(0.007, 0.005, 0.009, apart=share(0.006, 0.004, 0.008))
    before = in_context(0.18, 0.15, 0.21, apart=share(0.17, 0.14, 0.2))
    isp = erased("isp", point(0.235, 0.2, 0.27, context_adjusted=after), changes=[change(-0.065, -0.09, -0.04)])
    opening = audit_opening(audited(raw(point(0.3, 0.28, 0.32, context_adjusted=before)), isp), None)
    assert opening.title == "No policy set (would pass the suggested one)"
    rules = tomllib.loads(opening.suggestion)["require"]
    assert [rule.get("different_groups", False) for rule in rules] == [True, False]
    assert [rule.get("context_adjusted", False) for rule in rules] == [False, True]
    assert "17.0 %, after erasure 0.60 %" in opening.how_bad
    assert not any("Remove more" in step for step in opening.steps)
