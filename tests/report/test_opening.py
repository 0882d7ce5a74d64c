"""If these fail, the first screen of a page hides the verdict, or draws another number than the result has."""

import tomllib
from io import StringIO

import pytest
from rich.console import Console

from tests.auditing.made import point
from tests.gate import test_inversion as inversions
from tests.gate import test_release as releases
from tests.gate.made import WARNING, audited, erased, gated, raw
from tests.gate.test_protection import protection
from tests.page.read_page import Page
from tests.report.made import full_audit, invalid_audit, raw_audit
from tests.report.made_validation import share, validation
from unface.gate import decide, make_policy
from unface.report.html import key_figures, render_report
from unface.report.inversion import render_inversion
from unface.report.opening import (
    Grid,
    Opening,
    audit_opening,
    encoders_opening,
    inversion_opening,
    protection_opening,
)
from unface.report.release import render_release
from unface.report.table import print_audit
from unface.report.validation import advice, render_validation
from unface.result.audit import ContextAdjusted, ErasedSource
from unface.result.readings import Readable
from unface.result.validation import Hardening

PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.05}
FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}
UNKNOWN: dict[str, object] = {"far": 1e-6, "tar_max": 0.05}


@pytest.mark.parametrize(
    ("rule", "state", "title", "text"),
    [
        (PASSES, "passed", "✓ Passed", "1 rule held"),
        (FAILS, "failed", "✗ Failed", "1 of 1 rule failed."),
        (UNKNOWN, "inconclusive", "? Inconclusive", "1 of 1 rule could not be evaluated"),
        (
            None,
            "warned",
            "! No policy set (would fail the suggested one)",
            "No limit is set, so this result neither passes nor fails.",
        ),
    ],
    ids=["passed", "failed", "inconclusive", "no policy"],
)
def test_the_page_opens_with_the_verdict_in_words_and_colour(
    rule: dict[str, object] | None, state: str, title: str, text: str
) -> None:
    decision = None if rule is None else gated(full_audit(), rule)
    page = Page(render_report(full_audit(), decision=decision))
    banner = page.one("div", **{"class": f"decision {state}"})
    assert banner.words.startswith(f"{title} {text}")
    assert page.words.index(title) < page.words.index("Raw vectors, worst case"), "before the tiles"
    assert ("A policy to begin with" in banner.words) == (rule is None)
    assert f".decision.{state} {{ --state: var(" in page.source


def test_the_numbers_of_an_invalid_audit_are_never_drawn() -> None:
    page = Page(render_report(invalid_audit()))
    assert page.one("div", **{"class": "decision inconclusive"}).words.startswith("? Inconclusive These numbers cannot")
    assert not page.all("rect", **{"class": "hit"})
    assert "% of the time" not in page.words
    assert audit_opening(invalid_audit(), None).suggestion == ""


def test_two_sentences_say_what_was_tested_and_how_bad_it_is() -> None:
    opening = audit_opening(full_audit(), None)
    assert opening.tested.startswith("Tested: made-encoder vectors of 9,600 photos of 480 people (faces.parquet). Can")
    often = "Given two photos of the same stranger, an attacker matches them 6.6 % of the time, at one false match in "
    assert opening.how_bad == often + "10,000. After erasure: 2.6 %."
    assert audit_opening(raw_audit(), None).how_bad == often + "10,000."


def test_the_picture_fills_as_many_squares_of_a_hundred_as_the_result_says() -> None:
    page = Page(render_report(full_audit()))
    drawn = page.all("svg", **{"class": "hundred"})
    hits = [sum(one in rect.within for rect in page.all("rect", **{"class": "hit"})) for one in drawn]
    misses = [sum(one in rect.within for rect in page.all("rect", **{"class": "miss"})) for one in drawn]
    assert (hits, misses) == ([7, 3], [93, 97])
    head = full_audit().headline
    assert head is not None
    assert head.raw.tar is not None
    assert hits[0] == round(100 * head.raw.tar.value)
    what = "photo pairs of one person are matched, at one false match in 10,000"
    assert [one.attributes["aria-label"] for one in drawn] == [
        f"Before erasure: about 7 of 100 (6.6 %) {what}",
        f"After erasure: about 3 of 100 (2.6 %) {what}",
    ]


@pytest.mark.parametrize(
    ("share", "filled", "caption"),
    [
        (0.0, 0, "0 of 100"),
        (0.0031, 0, "fewer than 1 of 100"),
        (0.165, 16, "about 16 of 100"),
        (0.29, 29, "29 of 100"),
        (0.999, 100, "about 100 of 100"),
        (1.0, 100, "100 of 100"),
    ],
)
def test_a_share_that_squares_round_is_not_called_exact_or_zero(share: float, filled: int, caption: str) -> None:
    grid = Grid("Before", share, "pairs")
    assert (grid.filled, grid.caption) == (filled, caption)


def test_the_picture_is_of_the_eraser_that_the_policy_is_about() -> None:
    both = audited(
        raw(),
        erased("isp", point(0.04, 0.03, 0.05, calibrate_tar=0.04)),
        erased("leace", point(0.02, 0.01, 0.03, calibrate_tar=0.02)),
    )
    assert [grid.filled for grid in audit_opening(both, None).grids] == [30, 2]
    decision = gated(both, {"far": 1e-4, "tar_max": 0.5, "space": "isp"})
    assert [grid.filled for grid in audit_opening(both, decision).grids] == [30, 4]


RESULTS: list[Readable] = [
    full_audit(),
    raw_audit(),
    validation(0.6),
    releases.result(releases.view(listed=40)),
    inversions.result(inversions.cell("bob", 62), inversions.cell("bob", 20, "isp")),
]


def rendered(result: Readable, **rule: object) -> Page:
    """Of a result of any kind; with a rule, decided."""
    draw = {"audit": render_report, "validation": render_validation, "release": render_release}
    make = draw.get(result.schema_.removeprefix("unface.").partition("/")[0], render_inversion)
    decision = decide(result, make_policy({"require": [rule]}, lambda _, key: key)) if rule else None
    return Page(make(result, decision=decision))  # type: ignore[operator]


@pytest.mark.parametrize("result", RESULTS, ids=["audit", "raw", "validation", "release", "inversion"])
def test_the_suggested_policy_is_one_that_the_gate_can_decide(result: Readable) -> None:
    page = rendered(result)
    suggested = page.all("pre")[0]
    assert suggested.inside("details", **{"class": "suggested"})
    policy = make_policy(tomllib.loads(suggested.text), lambda _, key: key)
    assert decide(result, policy).verdict != "inconclusive"


@pytest.mark.parametrize(
    ("result", "rule", "filled"),
    [
        (RESULTS[2], {"success_max": 0.05, "far": 1e-3, "queries": 200}, None),
        (RESULTS[3], {"exposed_max": 0.01}, [4]),
        (RESULTS[4], {"inverted_max": 0.05, "far": 1e-3}, [62, 20]),
    ],
    ids=["validation", "release", "inversion"],
)
def test_other_results_open_alike(result: Readable, rule: dict[str, object], filled: list[int] | None) -> None:
    page = rendered(result, **rule)
    assert page.all("p", **{"class": "state"})[0].words in ("✗ Failed", "? Inconclusive")
    drawn = page.all("svg", **{"class": "hundred"})
    hits = [sum(one in rect.within for rect in page.all("rect", **{"class": "hit"})) for one in drawn]
    assert hits == (filled or hits)
    assert hits
    assert "What to do next" in page.words


@pytest.mark.parametrize(
    ("left", "would"),
    [
        (0.001, "pass the suggested limit: at most 1.0 % allowed, 0.10 %"),
        (0.2, "fail the suggested limit: at most 1.0 %"),
    ],
)
def test_without_a_policy_it_says_what_the_suggested_one_would_decide(left: float, would: str) -> None:
    found = audited(raw(), erased("isp", point(left, left / 2, left * 2)))
    opening = audit_opening(found, None)
    assert f"neither passes nor fails. It would {would}" in opening.text
    assert opening.text.endswith(
        "(photo pairs of one person matched, after erasure by isp, at one false match in 10,000)."
    )
    assert opening.state == ("warned" if would.startswith("fail") else "none"), "a failure does not look harmless"
    assert "would" not in audit_opening(found, gated(found, FAILS)).text


def test_encoders_side_by_side_open_with_the_gravest_verdict_and_the_worst_first() -> None:
    weak = audited(raw(point(0.1, 0.09, 0.11)), erased("isp", point(0.001, 0.0, 0.002)))
    strong = audited(raw(point(0.9, 0.88, 0.92)), erased("isp", point(0.2, 0.18, 0.22)))
    audits = {"weak": weak, "strong": strong}
    none = encoders_opening(audits, {})
    assert (none.state, [grid.title for grid in none.grids]) == (
        "warned",
        ["strong, before", "strong, after", "weak, before", "weak, after"],
    )
    assert none.how_bad.startswith("strong reveals the most. Given two photos of the same stranger")
    assert none.how_bad.endswith("Other encoders, before erasure: weak 10.0 %.")
    decided = encoders_opening(audits, {name: gated(one, FAILS) for name, one in audits.items()})
    limit = "photo pairs of one person matched, after erasure by isp, at one false match in 10,000, at most 1.0 %"
    assert (decided.state, decided.text) == ("failed", f"1 of 2 encoders passed. Limit: {limit}.")
    assert [rule.rule.partition(":")[0] for rule in decided.rules] == ["weak", "strong"]
    assert decided.steps[0].startswith("strong: Do not release the vectors erased by isp: measured 20.0 %")
    both = encoders_opening(audits, {name: gated(one, {**FAILS, "tar_max": 0.0001}) for name, one in audits.items()})
    assert both.steps[0] == "Do not release vectors of weak or strong: each fails the policy."


def test_a_number_to_compare_with_is_not_drawn_as_a_harm() -> None:
    page = rendered(validation(0.6))
    harmless = [one for one in page.all("svg", **{"class": "hundred"}) if one.inside("figure", **{"class": "aside"})]
    assert [one.attributes["aria-label"].partition(":")[0] for one in harmless] == ["For comparison"]


def test_what_to_do_next_follows_from_the_verdict_and_the_findings() -> None:
    left = audited(raw(), erased(), findings=[WARNING])
    failed = audit_opening(left, gated(left, {"far": 1e-4, "tar_max": 0.001})).steps
    assert failed[0] == "Do not release the vectors erased by isp: measured 0.80 % [0.60, 0.90], limit at most 0.10 %."
    assert "Do not call the erased vectors anonymous." in failed[1]
    assert failed[2] == f"Look into the warning about {WARNING.about}: {WARNING.text}."
    passed = audit_opening(left, gated(left, {"far": 1e-4, "tar_max": 0.01})).steps
    assert passed[0].startswith("Keep this result with the release")
    assert not any("anonymous" in step for step in passed)
    assert audit_opening(left, None).steps[0].startswith("Set a limit")
    unknown = audit_opening(left, gated(left, UNKNOWN)).steps
    assert (
        unknown[0]
        == "Do not release the vectors erased by isp yet: FAR 1e-6 was not measured in isp; the audit has 1e-4."
    )
    assert any("--eraser isp" in step for step in audit_opening(audited(raw()), None).steps)
    assert all(len(steps) <= 3 for steps in (failed, passed, unknown))


def test_a_failure_that_more_people_could_turn_is_told_from_a_clear_one() -> None:
    left = audited(raw(), erased())
    clear, wide = (audit_opening(left, gated(left, {"far": 1e-4, "tar_max": limit})) for limit in (0.001, 0.0085))
    assert (clear.title, wide.title) == ("Failed", "Failed: not shown to be within the limit")
    assert wide.steps[0].endswith(
        "[0.60, 0.90], limit at most 0.85 %. The interval includes the limit: measure more people to decide."
    )
    assert not any("includes the limit" in step for step in clear.steps)


def test_a_set_that_only_lacks_usefulness_is_not_said_to_leak() -> None:
    def opened(*rules: dict[str, object], hits: int = 0) -> Opening:
        policy = make_policy({"require": list(rules)}, lambda table, key: f"{table} {key}")
        return protection_opening(protection(hits=hits), decide(protection(hits=hits), policy), [])

    risky: dict[str, object] = {"risk_max": 1e-6, "k": 2}
    assert opened({"utility_min": 0.85}).title == "Failed on usefulness"
    assert opened({"utility_min": 0.85}, risky, hits=1).title == "Failed"
    assert not any("originals" in step for step in opened({"utility_min": 0.85}).steps), "the originals reach 90 %"
    held: dict[str, object] = {"risk_max": 0.999, "k": 2}
    short = opened({"utility_min": 0.95}, held)
    assert (short.title, short.text) == ("Failed on usefulness", "1 of 2 rules failed.")
    assert any("the originals miss the limit too (90.0 %)" in step for step in short.steps)


def test_a_rule_is_said_in_plain_words_and_its_terms_are_explained_in_the_footnote() -> None:
    page = Page(render_report(full_audit(), decision=gated(full_audit(), FAILS)))
    words = page.one("div", **{"class": "decision failed"}).words
    plain = "photo pairs of one person matched, after erasure by isp, at one false match in 10,000"
    assert f"Failed: {plain}: measured 2.6 % [2.4, 2.8], limit at most 1.0 % Rule: TAR in isp at FAR 1e-4" in words
    assert "In brackets: the 95 % interval;" in words
    terms = page.one("small", **{"class": "terms"}).words
    assert "TAR: share of photo pairs of one person that the attacker matches." in terms
    assert "FAR: share of pairs of different people" in terms


def test_the_footnote_says_what_erasure_is_and_why_this_eraser_is_drawn() -> None:
    both = audited(
        raw(),
        erased("isp", point(0.04, 0.03, 0.05, calibrate_tar=0.04)),
        erased("leace", point(0.041, 0.03, 0.05, calibrate_tar=0.02)),
    )
    assert (
        "Shown is leace, one of 2 erasers: it left least on the people set aside" in audit_opening(both, None).footnote
    )
    decision = gated(both, {"far": 1e-4, "tar_max": 0.5, "space": "isp"})
    assert "Shown is isp, one of 2 erasers: the policy is about it." in audit_opening(both, decision).footnote
    assert "erasers" not in audit_opening(audited(raw(), erased()), None).footnote
    assert "Erasure" not in audit_opening(audited(raw()), None).footnote


def test_the_tar_adjusted_for_context_is_on_the_terminal_and_in_the_tile() -> None:
    adjusted = ContextAdjusted(
        context="shoot",
        value=0.21,
        low=0.18,
        high=0.24,
        level=0.95,
        unknown=0.0,
        overlap=0.9,
        effective_pairs=100.0,
        suspects=None,
        without_suspects=[],
    )
    found = audited(raw(point(0.3, 0.28, 0.32, context_adjusted=adjusted)))
    text = StringIO()
    print_audit(found, Console(file=text, width=80, color_system=None))
    assert "TAR adjusted for 'shoot', k = 4, FAR 1e-4: raw 21.0 % [18.0, 24.0]." in text.getvalue()
    assert "adjusted for 'shoot': 21.0 % [18.0, 24.0]" in key_figures(found)[0].counted
    assert "adjusted" not in key_figures(audited(raw()))[0].counted


def test_a_suggested_policy_that_cannot_be_evaluated_or_fails_by_its_interval_alone_says_so() -> None:
    wide = audited(raw(), erased("isp", point(0.005, 0.001, 0.025)))
    assert audit_opening(wide, None).text.endswith(
        "The interval reaches beyond the limit; more people would narrow it."
    )
    few = audited(raw(), erased("isp", point(0.005, 0.001, 0.03)))  # nobody of 100 people would reach to 2.95 %
    assert audit_opening(few, None).title == "No policy set (too little data for the suggested one)"
    assert "at least 299 are needed" in audit_opening(few, None).text
    coarse = inversions.result(inversions.cell("bob", 62), resolution="coarse")
    assert inversion_opening(coarse, None).title == "No policy set (too little data for the suggested one)"


@pytest.mark.parametrize(("worst", "blamed"), [(0.6, True), (0.0, False)])
def test_rounding_is_blamed_only_where_the_attack_succeeds(worst: float, blamed: bool) -> None:
    rounded = Hardening(
        measure="scores rounded to 0.1",
        applies_to="answers of this run",
        far=1e-2,
        other=share(worst),
        queries_to_half=None,
        largest=100,
    )
    result = validation(worst).model_copy(update={"hardening": [rounded]})
    assert any(step.startswith("Do not rely on rounding") for step in advice(result)) is blamed


def test_fewer_questions_than_the_budget_are_the_first_thing_to_mend() -> None:
    result = validation(0.0)
    assert not advice(result)[0].startswith("Ask more questions")
    few = result.model_copy(update={"asked": result.asked.model_copy(update={"budget": 500})})
    assert advice(few)[0].startswith(
        "Ask more questions before you rely on this: 100 of 500 about a person were asked."
    )


def test_vectors_of_an_unknown_encoder_are_said_to_be_erased() -> None:
    result = full_audit()
    source = result.source.model_copy(update={"encoder": "unknown encoder after isp 24"})
    page = render_report(result.model_copy(update={"source": source}))
    assert "Tested: vectors erased by isp 24, of " in page
    assert "encoder unknown encoder" not in page


def test_a_page_of_erased_vectors_says_so_and_does_not_advise_to_erase_them_again() -> None:
    by = ErasedSource(kind="isp", rank=12, gated=False, projection_sha256=None, overlap=None)
    opening = audit_opening(raw_audit().model_copy(update={"erased_by": by}), None)
    assert "vectors erased by isp 12, of " in opening.tested
    assert [grid.title for grid in opening.grids] == ["After erasure"]
    assert not any("--eraser isp" in step for step in opening.steps)
    assert any(step.endswith("To remove more, fit a higher --rank on the raw vectors.") for step in opening.steps)
    assert any("--eraser isp" in step for step in audit_opening(raw_audit(), None).steps)
