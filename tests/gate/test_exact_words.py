"""If these fail, a rule, a comparison or a CI file says something else than what was decided."""

import hashlib
import json
import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.auditing.made import change, in_context, kept, point
from tests.gate import test_certificate, test_inversion, test_protection, test_release
from tests.gate.made import INVALID, WARNING, audited, erased, gated, one, raw
from tests.gate.test_too_few import of, ruled
from tests.report.made_validation import share, validation
from unface.errors import UnfaceError
from unface.gate import (
    Asked,
    GateResult,
    Verdict,
    compare,
    decide,
    diff_markdown,
    gate_markdown,
    junit_xml,
    make_policy,
    policy_for,
    print_decision,
    print_diff,
    print_gate,
    require_asked,
    sarif,
    write_markdown,
)
from unface.gate.judge import RuleResult, maker
from unface.gate.policy import Policy
from unface.gate.rules import Measurement, amount
from unface.result.numbers import Interval, Share
from unface.result.readings import Readable
from unface.result.release import ExactCopies

FAILS: dict[str, object] = {"far": 1e-4, "tar_max": 0.01}
PASSES: dict[str, object] = {"far": 1e-4, "tar_max": 0.5}
NONE = of(0, 1000)


def policy(*rules: dict[str, object]) -> Policy:
    return make_policy({"require": list(rules)}, lambda table, key: f"{table}: {key}")


def told(result: Readable, **rule: object) -> tuple[Verdict, str]:
    found = ruled(result, **rule)
    return found.verdict, found.reason


def colours(print_it: object, *given: object, width: int = 200) -> str:
    """With escape codes, as a terminal shows them."""
    text = StringIO()
    print_it(*given, Console(file=text, width=width, force_terminal=True, color_system="standard"))  # type: ignore[operator]
    return text.getvalue()


def test_what_a_file_cannot_answer_is_said_with_what_it_has() -> None:
    unknown = Verdict.INCONCLUSIVE
    asked = validation()
    limit: dict[str, object] = {"success_max": 0.05, "far": 1e-2, "queries": 100}
    assert told(asked, **limit, attack="mine") == (
        unknown,
        "attack 'mine' was not run; the validation has scores, best-of-n",
    )
    assert told(asked, **limit | {"queries": 1, "far": 1e-4}) == (
        unknown,
        "success after 1 question at FAR 1e-4 was not measured; it was after 10, 100 questions at FAR 0.01, 1e-3",
    )
    assert told(asked, **limit, pictures="same") == (
        unknown,
        "there are no other pictures of the enrolled people; enrol people with several",
    )
    inverted = test_inversion.result(test_inversion.cell("alsuv", 0), test_inversion.cell("bob", 0, "isp"))
    vectors: dict[str, object] = {"inverted_max": 0.05, "far": 1e-3}
    assert told(inverted, **vectors, attack="bob") == (
        unknown,
        "bob attack on raw was not run; the inversion has alsuv on raw, bob on isp",
    )
    assert told(inverted, **vectors | {"far": 1e-5}) == (unknown, "FAR 1e-5 was not measured; there is 1e-3")
    (cell, _) = inverted.cells
    alone = cell.model_copy(update={"at": [cell.at[0].model_copy(update={"other": None})]})
    assert told(test_inversion.result(alone), **vectors) == (
        unknown,
        "there are no other pictures of the people; give people with several, or pictures = 'same'",
    )
    stuck = test_inversion.result(test_inversion.cell("alsuv", 0, converged=False))
    assert told(stuck, **vectors) == (
        unknown,
        "no attack converged, so that failing to invert says nothing; give them more steps",
    )
    mixed = test_inversion.result(test_inversion.cell("a", 1, converged=False), test_inversion.cell("b", 0))
    assert told(mixed, **vectors) == (Verdict.PASSED, "a: the upper end, 4.0 %, is within the limit")
    coarse = test_inversion.result(cell, resolution="coarse")
    assert told(coarse, **vectors) == (
        unknown,
        "too few people set the judges' thresholds for FAR 1e-3 (it is coarse); "
        "give more people, or set coarse = 'allow'",
    )
    made = test_release.result(test_release.view(links=False), test_release.view("eyes"))
    assert told(made, copies_max=0.5, far=1e-4) == (
        unknown,
        "face does not link real people, so nothing follows from it",
    )
    assert told(made, exposed_max=0.5, view="nose") == (
        unknown,
        "view 'nose' was not measured; the release has face, eyes",
    )
    assert told(made, copies_max=0.5, far=1e-2, view="eyes") == (
        unknown,
        "FAR 0.01 was not measured; the release has 1e-4, 1e-5",
    )
    assert told(made, copies_max=0.5, far=1e-5, view="eyes") == (
        unknown,
        "FAR 1e-5 is coarse; give more real people, or set coarse = 'allow'",
    )
    assert told(made, risk_max=0.5, k=3) == (
        unknown,
        "this retrieval risk was not measured; the release has K = 2 (other)",
    )
    assert told(test_release.result(holds=False), exposed_max=0.5) == (
        unknown,
        "training and holdout pictures differ by more than their people; give another holdout",
    )
    assert told(test_release.result(test_release.view(least=1)), exposed_max=0.003)[0] is Verdict.PASSED
    assert told(test_certificate.certificate(encoder=False), recognised_max=0.05) == (
        unknown,
        "no recogniser looked at reconstructions; certify with --pictures and --encoder",
    )
    assert told(test_certificate.certificate(0.02, originals=0.03), recognised_max=0.05) == (
        unknown,
        "sface does not link originals of these people either; give other pictures",
    )
    kept_set = test_protection.protection()
    assert told(kept_set, utility_min=0.5, pairs="agedb_30") == (
        unknown,
        "verification on agedb_30 was not measured; there is lfw",
    )
    assert told(kept_set, risk_max=0.5, k=7) == (
        unknown,
        "this retrieval risk was not measured; the audit has K = 1 (other), K = 1 (same), K = 2 (other), K = 2 (same)",
    )
    bare = kept_set.model_copy(
        update={"methods": [kept_set.methods[0].model_copy(update={"attackers": [], "utility": []})]}
    )
    assert told(bare, risk_max=0.5, k=2) == (unknown, "no attacker was tried; audit with --encoder")
    assert told(bare, utility_min=0.5) == (unknown, "verification was not measured; there is none")
    assert told(test_protection.protection(invalid=True), utility_min=0.5) == (
        unknown,
        "the numbers cannot be used; the findings say why",
    )


def test_a_file_of_another_command_names_itself_and_that_command() -> None:
    made: dict[str, Readable] = {
        "an audit": audited(raw()),
        "a validation": validation(),
        "a release": test_release.result(),
        "an inversion": test_inversion.result(test_inversion.cell("alsuv", 0)),
        "a certificate": test_certificate.certificate(),
        "a protection": test_protection.protection(),
    }
    rules: dict[str, dict[str, object]] = {
        "unface audit": FAILS,
        "unface validate": {"success_max": 0.05, "far": 1e-2, "queries": 100},
        "unface release": {"exposed_max": 0.05},
        "unface invert": {"inverted_max": 0.05, "far": 1e-3},
        "unface protect frequency certify": {"recognised_max": 0.05},
        "unface protect facemae audit": {"utility_min": 0.05},
    }
    for (what, result), home in zip(made.items(), rules, strict=True):
        for command, rule in rules.items():
            assert maker(policy(rule).require[0]) == command
            said = f"this file is {what}; the rule is about what '{command}' wrote"
            if what != "an audit":
                assert (ruled(result, **rule).reason == said) is (command != home)
    for key, by in (
        ("success_max", "validate"),
        ("inverted_max", "invert"),
        ("recognised_max", "protect"),
        ("utility_min", "protect"),
    ):
        rule = next(rule for rule in rules.values() if key in rule)
        assert one(audited(raw()), **rule).reason == f"this file is an audit; {key} is about what 'unface {by}' wrote"
    others: list[dict[str, object]] = [
        {"exposed_max": 0.05},
        {"copies_max": 0.1, "far": 1e-3},
        {"risk_max": 0.1, "k": 1},
    ]
    for rule in others:
        assert one(audited(raw()), **rule).reason == (
            "this file is an audit; the rule is about what 'unface release' wrote"
        )


def test_an_invalid_file_answers_no_rule_and_forbidden_warnings_are_named() -> None:
    strict = {"findings": "no-warnings"}
    result = gated(audited(raw(), findings=[INVALID, WARNING]), PASSES, **strict)
    assert {rule.reason for rule in result.rules} == {"the audit is invalid: shuffled people are still linked"}
    assert [rule.verdict for rule in result.rules] == [Verdict.INCONCLUSIVE] * 2
    assert one(audited(raw()).model_copy(update={"valid": False}), **PASSES).reason == "the audit is invalid"
    assert one(audited(raw(), variant="paper"), **PASSES).reason == (
        "the paper variant's intervals are spreads over seeds, which under-cover; audit without it"
    )
    warned = gated(audited(raw(), findings=[WARNING, WARNING]), PASSES, **strict)
    assert warned.warnings == 2
    assert warned.rules[1] == RuleResult(
        "warnings of the audit", "warnings of the audit", "none", Verdict.FAILED,
        "near-duplicates: 3 pairs under different identities", None, None,
    )  # fmt: skip
    clean = gated(audited(raw()), PASSES, **strict).rules[1]
    assert (clean.verdict, clean.reason) == (Verdict.PASSED, "the audit has no warnings")
    inverted = test_inversion.result(test_inversion.cell("a", 0)).model_copy(update={"findings": [INVALID]})
    cases: list[tuple[Readable, dict[str, object], str]] = [
        (validation(findings=(INVALID,)), {"success_max": 0.9, "far": 1e-2, "queries": 100}, "validation"),
        (inverted, {"inverted_max": 0.5, "far": 1e-3}, "inversion"),
    ]
    for broken, rule, name in cases:
        why = f"the {name} is invalid: shuffled people are still linked"
        assert told(broken, **rule) == (Verdict.INCONCLUSIVE, why)
        strictly = make_policy({"gate": strict, "require": [rule]}, lambda table, key: f"{table}: {key}")
        assert decide(broken, strictly).rules[1].reason == why


def test_a_rule_that_names_no_space_is_about_the_one_eraser_or_asks_which() -> None:
    assert one(audited(raw(), erased()), **FAILS).space == "isp"
    assert one(audited(raw()), **FAILS).space == "raw"
    two = audited(raw(), erased("isp"), erased("leace"))
    with pytest.raises(UnfaceError) as caught:
        gated(two, {**FAILS, "space": "raw"}, FAILS)
    assert str(caught.value) == (
        "rule 2 names no space and the audit has 2 erasers (isp, leace); name the released one with space = 'isp' or "
        "--space isp"
    )
    gone = one(two, **FAILS, space="pca")
    assert (gone.reason, gone.space) == ("space 'pca' was not measured; the audit has raw, isp, leace", "pca")


@pytest.mark.parametrize(
    ("rule", "words", "limit", "meaning"),
    [
        (
            {"far": 1e-4, "tar_max": 0.01, "times_chance_max": 10, "k": 4, "probe": "lda", "context_adjusted": True},
            "context-adjusted TAR in isp at FAR 1e-4, k = 4, lda",
            "at most 1.0 % and 10 times chance",
            "photo pairs of one person matched, after erasure by isp, at one false match in 10,000, adjusted for "
            "context",
        ),
        (
            {"far": 1e-3, "times_chance_max": 2.5, "space": "raw"},
            "TAR in raw at FAR 1e-3, every k, worst probe",
            "at most 2.5 times chance",
            "photo pairs of one person matched, before erasure, at one false match in 1,000",
        ),
        (
            {"far": 1e-4, "beats": "raw", "k": 2},
            "TAR in isp less TAR in raw at FAR 1e-4, k = 2",
            "below 0",
            "fewer photo pairs of one person matched after erasure by isp than before erasure, at one false match in "
            "10,000",
        ),
        (
            {"utility": "knn", "retained_min": 0.9, "on": "objects"},
            "knn kept in isp on objects",
            "at least 90.0 %",
            "usefulness left after erasure by isp (knn on objects)",
        ),
        (
            {"utility": "knn", "retained_min": 0.9, "space": "erased by isp 4"},
            "knn kept in erased by isp 4",
            "at least 90.0 %",
            "usefulness left after erasure by isp 4 (knn)",
        ),
    ],
)
def test_each_rule_of_an_audit_is_told_in_words_of_its_own(
    rule: dict[str, object], words: str, limit: str, meaning: str
) -> None:
    found = one(audited(raw(), erased()), **rule)
    assert (found.rule, found.limit, found.meaning) == (words, limit, meaning)


def test_improvement_and_usefulness_say_what_decided() -> None:
    def against(value: float, low: float, high: float) -> tuple[Verdict, str, float | None]:
        space = erased(changes=[change(value, low, high), change(0.5, 0.4, 0.6, against="pca")])
        found = one(audited(raw(), space), beats="random", far=1e-4)
        return found.verdict, found.reason, None if found.measured is None else found.measured.high

    failed = Verdict.FAILED
    assert against(-0.03, -0.04, -0.02) == (
        Verdict.PASSED, "lda at k = 4: the upper end, −2.0 points against random, is below 0", -0.02,
    )  # fmt: skip
    reached = "lda at k = 4: TAR is lower than in random, but its interval reaches +{} points"
    assert against(-0.03, -0.04, 0.0) == (failed, reached.format("0.0"), 0.0)
    assert against(-0.03, -0.04, 0.015) == (failed, reached.format("1.5"), 0.015)
    assert against(0.0, -0.04, -0.01) == (failed, "lda at k = 4: TAR is not lower than in random", 0.0)
    space = erased(changes=[change(0.5, 0.4, 0.6, against="pca"), change(0.5, 0.4, 0.6, against="pca", k=1)])
    assert one(audited(raw(), space), beats="random", far=1e-4).reason == (
        "isp was not compared with random at FAR 1e-4, k = 4; the audit compares it with pca at FAR 1e-4"
    )

    def useful(value: float, low: float) -> tuple[Verdict, str]:
        space = erased(utility=[kept(value, low, 0.99)])
        found = one(audited(raw(), space), utility="knn", retained_min=0.9)
        return found.verdict, found.reason

    on = "on objects.parquet: "
    assert useful(0.95, 0.9) == (Verdict.PASSED, f"{on}the lower end, 90.0 %, is within the limit")
    assert useful(0.9, 0.89) == (
        failed,
        f"{on}the value is within the limit, but its interval reaches 89.0 %, below 90.0 %",
    )
    assert useful(0.89, 0.91) == (failed, f"{on}89.0 % is less than 90.0 %")
    both = erased(utility=[kept(0.9, 0.8, 0.99), kept(0.9, 0.8, 0.99, measure="neighbour overlap@10")])
    assert one(audited(raw(), both), utility="linear", retained_min=0.9, on="x").reason == (
        "linear on x was not measured in isp; the audit has knn on objects.parquet"
    )
    assert one(audited(raw(), both), utility="neighbour overlap@10", retained_min=0.9).reason == (
        "neighbour overlap@10 is measured among the audited pictures, which is no usefulness; audit with --utility "
        "and name a measure such as knn"
    )


def test_context_that_cannot_be_separated_from_identity_decides_nothing() -> None:
    def adjusted(overlap: float, value: float | None = 0.005) -> tuple[Verdict, str]:
        context = in_context(0.005, 0.003, 0.008, overlap=overlap).model_copy(update={"value": value})
        found = one(audited(raw(point(context_adjusted=context))), **FAILS, context_adjusted=True)
        return found.verdict, found.reason

    assert adjusted(0.5) == (Verdict.PASSED, "lda at k = 4: the upper end, 0.80 %, is within the limit")
    for overlap, value, shown in ((0.499, 0.005, "49.9"), (0.9, None, "90.0")):
        assert adjusted(overlap, value) == (
            Verdict.INCONCLUSIVE,
            f"'shoot' separates mated from impostor pairs almost completely (overlap {shown} %), so it cannot be "
            "separated from identity at k = 4",
        )


def test_exact_copies_fail_by_people_or_by_faces() -> None:
    made = test_release.result(exact=ExactCopies(faces=30, people=20))
    by_people = ruled(made, exposed_max=0.019)
    said = "30 synthetic faces are an exact copy of a training picture"
    assert (by_people.reason, by_people.measured) == (said, Measurement(0.02, 0.02, 0.02, 0.95, 0.019, "share"))
    by_faces = ruled(made, copies_max=0.029, far=1e-4)
    assert by_faces.measured == Measurement(0.03, 0.03, 0.03, 0.95, 0.029, "share", far=1e-4)
    one_face = test_release.result(exact=ExactCopies(faces=1, people=1))
    assert ruled(one_face, exposed_max=0.0009).reason == "1 synthetic face is an exact copy of a training picture"
    assert "exact" not in ruled(made, risk_max=0.07, k=2).reason


def test_a_recogniser_must_know_originals_better_than_guesses_and_the_limit() -> None:
    def of_originals(low: float, guesses: float) -> Verdict:
        made = test_certificate.certificate(0.02)
        assert made.pictures is not None
        assert made.pictures.identity is not None
        ends = {"originals": Interval(low, 1.0, 0.95), "guesses": Interval(0.0, guesses, 0.95)}
        shares = {name: Share.counted(500, 1000, end, 1000) for name, end in ends.items()}
        seen = made.pictures.identity.model_copy(update={**shares, "reconstructions": NONE})
        pictures = made.pictures.model_copy(update={"identity": seen})
        return ruled(made.model_copy(update={"pictures": pictures}), recognised_max=0.05).verdict

    assert [of_originals(0.06, 0.0), of_originals(0.05, 0.0), of_originals(0.06, 0.06), of_originals(0.3, 0.2)] == [
        *(Verdict.PASSED, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, Verdict.PASSED)
    ]


def test_amounts_have_a_sign_a_unit_and_few_digits() -> None:
    assert [amount(value, "share") for value in (0.0031, -0.0031)] == ["0.31 %", "−0.31 %"]
    assert [amount(value, "difference") for value in (-0.021, 0.0, 0.021)] == [
        *("−2.1 points", "+0.0 points", "+2.1 points")
    ]
    assert [amount(value, "times chance") for value in (3.14, 1234.0, -3.0)] == [
        *("3.1 times chance", "1,234 times chance", "−3.0 times chance")
    ]
    assert str(Measurement(-0.02, -0.03, 0.01, 0.95, 0, "difference")) == "−2.0 points [−3.0, +1.0]"


def test_a_rule_that_an_audit_would_leave_open_is_refused_before_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    plain = Asked(far=[1e-3, 1e-4], k=[1, 4], erasers=1, utility=True, context=True)

    def refused(rule: dict[str, object], asked: Asked = plain) -> str:
        with pytest.raises(UnfaceError) as caught:
            require_asked(policy(FAILS, rule), path, asked)
        return str(caught.value).removeprefix(f"--policy {path}: rule ")

    require_asked(policy(FAILS, {**FAILS, "k": 4, "context_adjusted": True}), path, plain)
    assert refused({**FAILS, "far": 1e-5}) == (
        "2 asks for FAR 1e-5, and this audit measures 1e-3, 1e-4; add --far 1e-3,1e-4,1e-5"
    )
    assert refused({**FAILS, "k": 2}) == "2 asks for k = 2, and this audit measures k = 1, 4; add --k 1,4,2"
    require_asked(policy({**FAILS, "k": 2}), path, Asked([1e-4], [1, "all"], 1, False, False))
    require_asked(policy({**FAILS, "k": 2}), path, Asked([1e-4], [], 1, False, False))
    bare = Asked([1e-4], [4], 2, False, False)
    assert refused({**FAILS, "context_adjusted": True}, Asked([1e-4], [4], 1, False, False)) == (
        "2 asks for the context-adjusted TAR, which needs a column; add --group or --context"
    )
    require_asked(policy({"utility": "knn", "retained_min": 0.9}), path, plain)
    assert refused({"utility": "knn", "retained_min": 0.9}, Asked([1e-4], [4], 1, False, False)) == (
        "2 asks for knn, which needs a set to measure it on; add --utility"
    )
    assert refused({"exposed_max": 0.1}) == "2 is about what 'unface release' writes; leave it to 'unface gate'"
    assert refused(FAILS, bare) == (
        "1 names no space and there will be 2 erasers; add space = and the released one's name"
    )
    require_asked(policy({**FAILS, "space": "isp"}), path, bare)
    assert policy_for(None, "unface audit") is None
    path.write_text("[[require]]\nrisk_max = 0.1\nk = 2\n", "utf-8")
    for command in ("unface release", "unface protect facemae audit"):
        found = policy_for(path, command)
        assert found is not None
        assert len(found.require) == 1
    with pytest.raises(UnfaceError) as caught:
        policy_for(path, "unface validate")
    assert str(caught.value) == (
        f"--policy {path}: rule 1 is about what 'unface release' writes; leave it to 'unface gate'"
    )


@pytest.fixture
def mixed() -> GateResult:
    return gated(audited(raw(), findings=[WARNING]), PASSES, FAILS, {**PASSES, "far": 1e-6})


def test_verdicts_have_their_colours_and_nothing_else_has(mixed: GateResult) -> None:
    text = colours(print_gate, mixed)
    assert text.splitlines()[0] == (
        "\x1b[2mfaces.parquet: the worse end of each 95 % interval must be within its limit\x1b[0m"
    )
    for said in ("\x1b[32mpassed      \x1b[0m", "\x1b[1;31mfailed      \x1b[0m", "\x1b[1;33minconclusive\x1b[0m"):
        assert said in text
    assert "\n1  lda at k = 4: the upper end, 32.0 %, is within the limit (" in text, "numbers are not highlighted"
    assert "\x1b[33m!  the result has 1 warning; see its findings\x1b[0m" in text
    assert "\x1b[1;31mFailed: 1 of 3 rules failed, 1 could not be evaluated (exit 3).\x1b[0m" in text


def test_a_decision_is_a_line_and_one_more_for_each_rule_that_did_not_hold(mixed: GateResult) -> None:
    matched = "photo pairs of one person matched, before erasure, at one false match in"
    failed = f"  rule 2 failed: {matched} 10,000, at most 1.0 %. lda at k = 4: 30.0 % is more than 1.0 %"
    why = "FAR 1e-6 was not measured in raw; the audit has 1e-4"
    unknown = f"  rule 3 inconclusive: {matched} 1,000,000, at most 50.0 %. {why}"
    for of_what, lead in (("", ""), ("sface", "sface: ")):
        text = StringIO()
        print_decision(mixed, Console(file=text, width=200, force_terminal=True, color_system="standard"), of=of_what)
        assert text.getvalue().splitlines() == [
            f"\x1b[1;31m{lead}Failed: 1 of 3 rules failed, 1 could not be evaluated (exit 3).\x1b[0m",
            failed,
            unknown,
            "",
        ]


def test_a_comparison_has_its_colours_and_its_columns() -> None:
    diff = compare(audited(raw(), erased()), audited(raw(), erased("isp", point(0.03, 0.025, 0.035))))
    lines = colours(print_diff, diff).splitlines()
    assert lines[0] == "\x1b[2mfaces.parquet: old and new result\x1b[0m"
    assert sum("\x1b[1;31mworse\x1b[0m" in line for line in lines) == 2
    assert any(line.startswith("\x1b[1mvectors ") for line in lines)
    assert "\x1b[2m1 more number without a clear change.\x1b[0m" in lines
    assert lines[-1] == "\x1b[1;31mWorse: 2 of 4 numbers are clearly worse (exit 3).\x1b[0m"
    narrow = StringIO()
    print_diff(diff, Console(file=narrow, width=50, color_system=None))
    assert any(line.rstrip().endswith("+2.2 [+1.4, +3.1]  worse") for line in narrow.getvalue().splitlines())


def test_a_ci_file_is_utf_8_as_it_is_read(mixed: GateResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = gated(audited(raw(), erased("Zoë")), {**FAILS, "tar_max": 0.001})
    log = sarif(named, Path("out") / ".." / "a b.json")
    text = log.decode()
    assert "Zoë" in text
    assert text.startswith('{\n  "$schema": "https://docs.oasis-open.org/sarif/')
    assert text.endswith("}\n")
    (run,) = json.loads(text)["runs"]
    assert run["properties"] == {"source": "faces.parquet", "sourceSha256": "a" * 64, "verdict": "failed"}
    assert run["columnKind"] == "unicodeCodePoints"
    rule, found = run["tool"]["driver"]["rules"][0], run["results"][0]
    words = "TAR in Zoë at FAR 1e-4, every k, worst probe"
    assert rule["id"] == "tar-in-zo-at-far-1e-4-every-k-worst-probe"
    assert rule["shortDescription"]["text"] == f"{words}: at most 0.10 %"
    assert rule["fullDescription"]["text"] == f"The policy requires: {words}, at most 0.10 %."
    assert rule["help"]["text"] == ("Do not release what failed or is inconclusive. docs/pipelines.md says what to do.")
    assert rule["defaultConfiguration"] == {"level": "error"}
    place = found["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b.json", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}
    printed = hashlib.sha256(f"{rule['id']}\x1fat most 0.10 %".encode()).hexdigest()
    assert found["partialFingerprints"] == {"unfaceRule/v1": printed}
    xml = junit_xml(mixed).decode()
    assert xml.startswith("<?xml version='1.0' encoding='utf-8'?>\n<testsuites ")
    assert xml.endswith("</testsuites>\n")
    assert '\n    <testcase classname="unface.gate" name="rule 1: TAR in raw at FAR 1e-4' in xml
    assert 'time="0">' in xml


def test_rules_that_read_alike_are_numbered() -> None:
    (run,) = json.loads(sarif(gated(audited(raw()), FAILS, FAILS, FAILS, PASSES), Path("a.json")))["runs"]
    first = "tar-in-raw-at-far-1e-4-every-k-worst-probe"
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert ids == [first, f"{first}-2", f"{first}-3", f"{first}-4"]


def test_markdown_of_a_gate_and_of_a_comparison_line_by_line(mixed: GateResult) -> None:
    passed = gate_markdown(gated(audited(raw()), PASSES))
    said = "photo pairs of one person matched, before erasure, at one false match in 10,000"
    assert passed == (
        "### ✅ unface gate: passed\n\n"
        "Passed: 1 rule held, for the attackers, rates and people of this test (exit 0).\n\n"
        "Result: faces.parquet (`aaaaaaaaaaaa`)\n\n"
        "| | rule | measured | limit |\n|---|---|---|---|\n"
        f"| ✅ passed | {said} | 30.0 % &#91;28.0, 32.0&#93; | at most 50.0 % |\n\n"
        "1. lda at k = 4: the upper end, 32.0 %, is within the limit (TAR in raw at FAR 1e-4, every k, worst probe)\n"
    ).replace("&#91;", "[").replace("&#93;", "]")
    assert "| – | at most 50.0 % |" in gate_markdown(mixed)
    worse = compare(audited(raw()), audited(raw(point(0.4, 0.38, 0.42))))
    assert diff_markdown(worse).splitlines()[:9] == [
        "### ❌ unface diff: worse",
        "",
        "Worse: 2 of 2 numbers are clearly worse (exit 3).",
        "",
        "faces.parquet → faces.parquet",
        "",
        "| | number | old, % | new, % | difference in points |",
        "|---|---|---:|---:|---:|",
        "| ❌ worse | vectors: TAR, worst k, FAR 1e-4 | 30.0 | 40.0 | +10.0 [+5.4, +14.6] |",
    ]
    gone = diff_markdown(compare(audited(raw(), erased()), audited(raw())))
    assert gone.startswith("### ⚠️ unface diff: inconclusive\n")
    assert "| ⚠️ not compared | isp: TAR, worst k, FAR 1e-4 | 0.80 | – | – |\n" in gone
    assert "\nNot compared: the new result does not have it.  \n" in gone


def test_a_summary_of_a_step_that_cannot_be_added_to_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for _ in range(2):
        write_markdown("Zoë\n", summary)
    assert summary.read_text("utf-8") == "Zoë\nZoë\n"
    other = tmp_path / "other.md"
    for _ in range(2):
        write_markdown("Zoë\n", other)
    assert other.read_text("utf-8") == "Zoë\n"
    monkeypatch.setitem(os.environ, "GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UnfaceError) as caught:
        write_markdown("x", tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be written (Is a directory); see to $GITHUB_STEP_SUMMARY"


def test_the_worst_case_of_a_validation_is_named_by_the_attacks_that_were_chosen() -> None:
    made = validation()
    at = made.attacks[0].at[1].model_copy(update={"attacks": ["scores", "best-of-n"], "other": share(0.01)})
    chosen = made.attacks[0].model_copy(update={"name": "worst case", "at": [at]})
    found = ruled(made.model_copy(update={"worst_case": chosen}), success_max=0.5, far=1e-2, queries=100)
    assert found.reason == "scores or best-of-n: the upper end, 6.0 %, is within the limit"


def test_the_end_of_an_interval_at_its_own_level_decides_and_is_shown() -> None:
    """Nobody of 58 people leaves 5 % possible at 95 %; at 99 % it takes 0.95 ** 90 = 0.0099."""
    beyond = one(audited(raw(point(0.02, 0.006, 0.009))), **{**FAILS, "tar_max": 0.5})
    assert beyond.measured is not None
    assert (beyond.measured.high, beyond.reason) == (
        0.02,
        "lda at k = 4: the upper end, 2.0 %, is within the limit",
    )

    def nobody_of(number: int) -> str:
        ends = Interval(0.0, 1 - 0.01 ** (1 / number), 0.99)
        view = test_release.view()
        seen = view.exposure.model_copy(update={"exposed": Share.counted(0, number, ends, number)})
        made = test_release.result(view.model_copy(update={"exposure": seen}))
        return ruled(made, exposed_max=0.05).reason

    assert nobody_of(89) == (
        f"89 people cannot show it: with none affected the upper end would be {100 * (1 - 0.01 ** (1 / 89)):.9g} %, "
        "above 5 %; at least 90 are needed"
    )
    assert nobody_of(90) == "the upper end, 5.0 %, is within the limit"


def test_of_several_ks_the_one_nearest_to_failing_or_farthest_beyond_is_told() -> None:
    def at(*highs: float) -> str:
        points = [point(0.008, 0.006, 0.009, k=k) for k in (1, 2, 4)]
        changes = [change(-0.09, -0.1, high, k=k) for k, high in zip((1, 2, 4), highs, strict=True)]
        return one(audited(raw(*points), erased("isp", *points, changes=changes)), beats="random", far=1e-4).reason

    assert at(-0.02, -0.01, -0.03) == "lda at k = 2: the upper end, −1.0 points against random, is below 0"
    assert at(0.01, 0.0, 0.03).startswith("lda at k = 4: TAR is lower than in random, but its interval reaches +3.0")
    sets = [kept(0.95, low, 0.99, on=on) for low, on in ((0.93, "a"), (0.91, "b"), (0.92, "c"))]
    space = erased("isp", utility=sets)
    assert one(audited(raw(), space), utility="knn", retained_min=0.9).reason.startswith("on b: the lower end, 91.0 %")
    assert one(audited(raw(), space), utility="knn", retained_min=0.9, on="c").reason.startswith("on c: ")


def test_multiples_of_chance_need_a_chance() -> None:
    for chance in (None, 0.0):
        bare = point().model_copy(update={"chance": chance})
        found = one(audited(raw(bare)), far=1e-4, times_chance_max=10)
        assert (found.verdict, found.reason) == (
            Verdict.INCONCLUSIVE,
            "lda at k = 4 has no chance in the audit",
        )
        assert one(audited(raw(bare)), **PASSES).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("tar_max", 1, "1 is not a share above 0 and below 1, such as 0.01 for 1 %; 1 % is 0.01"),
        ("tar_max", 100.0, "100.0 is not a share above 0 and below 1, such as 0.01 for 1 %; 100 % is 1"),
        ("tar_max", 100.5, "100.5 is not a share above 0 and below 1, such as 0.01 for 1 %"),
        ("tar_max", True, "true is not a share above 0 and below 1, such as 0.01 for 1 %"),
        ("tar_max", "5", "'5' is not a share above 0 and below 1, such as 0.01 for 1 %"),
        ("far", 2, "2 is not a false-accept rate above 0 and below 1, such as 1e-4; 2 % is 0.02"),
        ("far", 0, "0 is not a false-accept rate above 0 and below 1, such as 1e-4"),
        ("k", 0, "0 is not a whole number of support images, from 1"),
        ("k", "x" * 58, f"'{'x' * 58}' is not a whole number of support images, from 1"),
        ("k", "x" * 59, f"'{'x' * 56}... is not a whole number of support images, from 1"),
    ],
)
def test_a_value_that_does_not_fit_is_shown_with_what_is_expected(key: str, value: object, said: str) -> None:
    with pytest.raises(UnfaceError) as caught:
        policy({**FAILS, key: value})
    assert str(caught.value) == f"rule 1: {key}: {said}"


def test_a_verdict_is_never_broken_by_a_narrow_terminal(mixed: GateResult) -> None:
    text = StringIO()
    print_gate(mixed, Console(file=text, width=48, color_system=None))
    assert [word for word in ("passed", "failed", "inconclusive") if f"  {word} " in text.getvalue()] == [
        *("passed", "failed", "inconclusive")
    ]
    assert max(map(len, text.getvalue().splitlines())) <= 48
