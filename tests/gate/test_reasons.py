"""If these fail, a gate or a diff decides rightly and then says another number, or none."""

from tests.gate.made import audited, erased, raw
from tests.gate.test_certificate import certificate
from tests.gate.test_release import gated, result, view
from tests.gate.test_too_few import ruled
from tests.report.made_validation import validation
from unface.gate import Trend, Verdict, compare, decide, make_policy
from unface.gate.rules import _distinguishable
from unface.result.file import Finding


def test_a_number_of_questions_that_was_not_asked_names_those_that_were() -> None:
    found = ruled(validation(), success_max=0.5, far=1e-2, queries=7)
    assert found.verdict is Verdict.INCONCLUSIVE
    asked = "success after 7 questions at FAR 0.01 was not measured"
    assert found.reason == f"{asked}; it was after 10, 100 questions at FAR 0.01, 1e-3"


def test_a_measured_rule_of_a_validation_keeps_its_questions_and_its_attack() -> None:
    found = ruled(validation(), success_max=0.9, far=1e-2, queries=100).measured
    assert found is not None
    assert (found.queries, found.far, found.k, found.limit) == (100, 1e-2, None, 0.9)
    assert found.attack == "scores"


def test_amounts_that_would_read_alike_get_more_digits_in_their_own_unit() -> None:
    assert _distinguishable(0.25, 0.5, "share") == ("25.0 %", "50.0 %")
    assert _distinguishable(0.3000001, 0.3, "share") == ("30.00001 %", "30 %")
    assert _distinguishable(12.3000001, 12.3, "times chance") == ("12.3000001 times chance", "12.3 times chance")


def test_an_empty_list_of_exposed_people_says_what_it_could_not_have_shown() -> None:
    (found,) = gated(result(view(least=21)), exposed_max=0.01).rules
    assert "21 people are exposed, which is more than 1.0 %; give a larger holdout" in found.reason


def test_a_number_that_the_new_result_lacks_is_missing_for_that_reason_and_the_json_says_the_sum() -> None:
    diff = compare(audited(raw(), erased("isp")), audited(raw()))
    lost = [row for row in diff.rows if row.trend is Trend.MISSING]
    assert lost
    assert {row.why for row in lost} == {"the new result does not have it"}
    told = diff.as_dict()
    assert (told["summary"], told["verdict"], told["exit_code"]) == (diff.summary, "inconclusive", 4)


def test_a_gate_counts_warnings_and_names_what_it_judged_by_hash() -> None:
    warned = result(findings=[Finding(severity="warning", about="people", text="were clustered")])
    judged = gated(warned, exposed_max=0.01)
    assert (judged.warnings, judged.source, judged.source_sha256) == (
        1,
        warned.synthetic.name,
        warned.synthetic.sha256,
    )
    assert gated(result(), exposed_max=0.01).warnings == 0
    made = certificate()
    assert made.pictures is not None
    policy = make_policy({"require": [{"recognised_max": 0.5}]}, lambda table, key: f"{table}: {key}")
    assert decide(made, policy).source_sha256 == made.pictures.sha256
    assert decide(made.model_copy(update={"pictures": None}), policy).source_sha256 == ""


def test_a_rule_about_another_file_names_the_command_that_writes_it() -> None:
    found = ruled(validation(), exposed_max=0.5)
    assert (found.verdict, "'unface release' wrote" in found.reason) == (Verdict.INCONCLUSIVE, True)
