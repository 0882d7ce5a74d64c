"""If these fail, a validation reports what it did not ask, hides why it ended, or asks without being allowed to."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit import documents
from tests.kit.page import Page
from tests.kit.results import full_audit
from tests.refusals.table import refused
from tests.validate.world import World, world
from unface.data import read_embeddings
from unface.gate import GateResult, decide, make_policy
from unface.result.file import AUDIT, Finding, find_result
from unface.result.numbers import Interval, Share
from unface.result.validation import Ceiling, ValidationResult
from unface.seeds import stream
from unface.validate import Lost, Picture, Refused
from unface.validate.oracle import Pace
from unface.validate.run import HEADLINE_FAR, Case, Plan, Validated, ask_first, unrecognised, validate
from unface.validate.targets import OpenedTarget

BUDGET = 160


class Service:
    """The world's target: cosines, until it has had enough of it."""

    name = "toy"
    decisions_only = False
    batch = 7

    def __init__(self, made: World, limit: int | None = None) -> None:
        self.limit, self.asked = limit, list[tuple[str, str]]()
        first = [made.enrolled.rows(at)[0] for at in range(len(made.enrolled.names))]
        self._people = dict(zip(made.enrolled.names, made.enrolled.vectors["target"][first], strict=True))
        self._faces = {
            picture.sha256: vector
            for faces in (made.asked, made.enrolled)
            for picture, vector in zip(faces.pictures, faces.vectors["target"], strict=True)
        }

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        if self.limit is not None and len(self.asked) + len(pictures) > self.limit:
            raise Refused("banned")
        self.asked += [(person, picture.name) for picture in pictures]
        return np.array([float(self._faces[picture.sha256] @ self._people[person]) for picture in pictures])


@cache
def made() -> World:
    return world(people=12)


def case(service: Service, *, local: bool = True, authorised_by: str | None = None) -> Case:
    return Case(
        OpenedTarget(service, "function", local, "sha"),
        made().enrolled,
        made().knowledge,
        made().judges,
        "nobody",
        "nobody",
        enrolled_generated=True,
        authorised_by=authorised_by,
    )


@cache
def finished() -> tuple[Validated, Service]:
    import tempfile

    service = Service(made())
    with tempfile.TemporaryDirectory() as folder:
        return validate(case(service), Plan(BUDGET), Path(folder) / "ledger.jsonl"), service


def test_everybody_is_asked_about_once_with_every_face_of_the_budget() -> None:
    done, service = finished()
    asked = done.result.asked
    assert len(service.asked) == len(set(service.asked)) == 12 * BUDGET
    assert (asked.counted, asked.answered, asked.lost, asked.people_finished) == (12 * BUDGET, 12 * BUDGET, 0, 12)
    assert asked.ended is None
    assert {point.queries for attack in done.result.attacks for point in attack.at} == {20, 50, 100, BUDGET}


def test_scores_recover_people_shuffled_answers_do_not_and_the_headline_says_so() -> None:
    result = finished()[0].result
    headline = result.headline
    assert headline is not None
    assert headline.attack == "scores"
    assert headline.point.same is not None
    assert headline.point.same.value > 0.9
    control = next(attack for attack in result.shuffled if attack.name == "scores").point(BUDGET, headline.point.far)
    assert control is not None
    assert control.same is not None
    assert control.same.value < 0.1
    assert result.valid
    assert "After 160 questions about a person, an attacker recovers a face template" in result.verdict
    assert result.hardening[0].measure == "as it is"
    assert result.hardening[0].other == headline.point.other
    assert result.worst_case is not None
    assert headline.point == result.worst_case.point(BUDGET, headline.point.far)
    scores = next(attack for attack in result.attacks if attack.name == "scores").point(BUDGET, headline.point.far)
    assert scores == headline.point.model_copy(update={"attacks": []}), "both halves chose it"


def test_templates_are_what_the_worst_attack_recovered_and_are_written_only_when_asked(tmp_path: Path) -> None:
    done, _ = finished()
    first = [made().enrolled.rows(at)[0] for at in range(12)]
    own = made().enrolled.vectors["own"][first]
    cosines = (done.templates * own).sum(axis=1) / np.linalg.norm(done.templates, axis=1)
    assert cosines.min() > 0.7
    done.result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["validation.json"]
    saved = read_embeddings(done.save_templates(tmp_path / "templates.parquet"))
    assert (tmp_path / "templates.parquet").stat().st_mode & 0o777 == 0o600
    assert list(saved.names) == sorted(done.names)


def test_a_finished_ledger_gives_the_same_result_without_a_question(tmp_path: Path) -> None:
    first = validate(case(Service(made())), Plan(50, hardening=False), tmp_path / "ledger.jsonl")
    silent = Service(made(), limit=0)
    again = validate(case(silent), Plan(50, hardening=False), tmp_path / "ledger.jsonl")
    assert silent.asked == []
    assert again.result.attacks == first.result.attacks
    assert again.result.asked.counted == first.result.asked.counted == 12 * 50


def test_a_ban_leaves_what_everybody_was_asked_and_says_why(tmp_path: Path) -> None:
    service = Service(made(), limit=12 * 50 + 100)
    done = validate(case(service), Plan(BUDGET, hardening=False), tmp_path / "ledger.jsonl")
    result = done.result
    assert result.asked.ended == "banned"
    assert {point.queries for attack in result.attacks for point in attack.at} == {20, 50}
    assert result.enrolled.people == 12
    (said,) = [finding for finding in result.findings if finding.about == "the run ended early"]
    assert said.severity == "warning"
    assert "banned" in said.text
    assert any("more than 50 questions" in text for text in result.not_measured)
    # Once the ban is lifted the same call goes on.
    service.limit = None
    on = validate(case(service), Plan(BUDGET, hardening=False), tmp_path / "ledger.jsonl")
    assert on.result.asked.ended is None
    assert len(service.asked) == len(set(service.asked))
    assert on.result.asked.lost == 7, "the batch that was refused is spent"


def test_a_ban_in_the_first_round_leaves_those_who_were_asked_enough(tmp_path: Path) -> None:
    done = validate(case(Service(made(), limit=5 * 20 + 3)), Plan(BUDGET, hardening=False), tmp_path / "ledger.jsonl")
    assert done.result.enrolled.people == 5
    assert {point.queries for attack in done.result.attacks for point in attack.at} == {20}


def test_a_target_that_never_answers_leaves_one_line_and_its_ledger(tmp_path: Path) -> None:
    with refused("validation", "toy", "after 7", "ledger.json"):
        validate(case(Service(made(), limit=0)), Plan(BUDGET), tmp_path / "ledger.jsonl")
    assert (tmp_path / "ledger.jsonl").is_file()


def test_nobody_is_asked_elsewhere_without_a_name_behind_it(tmp_path: Path) -> None:
    service = Service(made())
    for nobody in (None, "", "  "):
        with refused("validation", "toy", "--authorised-by"):
            validate(case(service, local=False, authorised_by=nobody), Plan(50), tmp_path / "ledger.jsonl")
    assert service.asked == []
    assert not (tmp_path / "ledger.jsonl").exists()
    allowed = case(service, local=False, authorised_by="the owner, 3 May")
    done = validate(allowed, Plan(50, hardening=False), tmp_path / "ledger.jsonl")
    assert done.result.target.authorised_by == "the owner, 3 May"
    assert '"authorised_by": "the owner, 3 May"' in (tmp_path / "ledger.jsonl").read_text()


def test_answers_that_mean_nothing_are_reported_as_chance(tmp_path: Path) -> None:
    class Random(Service):
        def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
            return stream(len(self.asked), person, pictures[0].name).standard_normal(len(pictures))

    result = validate(case(Random(made())), Plan(100, hardening=False), tmp_path / "ledger.jsonl").result
    assert "no attack recovered a face template better than chance" in result.verdict


def test_the_file_comes_back_as_it_was_and_has_a_schema(tmp_path: Path) -> None:
    result = finished()[0].result
    path = result.save(tmp_path)
    assert ValidationResult.load(path) == result
    assert find_result(tmp_path) == find_result(path) == (path, ValidationResult.file_kind())
    assert set(ValidationResult.model_json_schema(by_alias=True)["properties"]) == set(result.model_dump(by_alias=True))
    text = path.read_text()
    assert not any(f'"{name}"' in text for name in made().enrolled.names), "no names of people"
    (tmp_path / "audit.json").write_text('{"schema": "unface.audit/2"}')
    assert find_result(tmp_path / "audit.json")[1] is AUDIT


def test_the_table_fits_eighty_columns_and_the_page_says_the_same() -> None:
    result = finished()[0].result
    assert max(len(line) for line in documents.terminal(result).splitlines()) <= 80
    page = Page(documents.page(result))
    assert result.verdict in page.one("main").words
    drawn = [one.attributes for one in page.elements if one.tag == "svg" and one.attributes.get("role") == "img"]
    assert [one.get("class") == "hundred" for one in drawn] == [True, True, False, False], "the opening, then curves"


def test_names_from_outside_are_only_text_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    result = finished()[0].result
    facts = result.target.model_copy(update={"name": evil, "authorised_by": evil})
    page = Page(documents.page(result.model_copy(update={"target": facts})))
    assert [one for one in page.elements if one.tag == "script"] == []
    assert evil in page.one("h1").words


def verdict_of(result: ValidationResult, **rule: object) -> GateResult:
    return decide(result, make_policy({"require": [rule]}, lambda table, key: f"{table} {key}"))


def test_the_gate_holds_the_upper_end_against_the_limit() -> None:
    result = finished()[0].result
    headline = result.headline
    assert headline is not None
    failed = verdict_of(result, success_max=0.05, far=headline.point.far, queries=BUDGET, coarse="allow")
    assert (failed.exit_code, failed.rules[0].reason[:6]) == (3, "scores")
    attack, point = next(
        (attack.name, point)
        for attack in result.attacks
        for point in attack.at
        if point.judge == "all" and point.other is not None and 0 < point.other.value < point.other.high < 1
    )
    assert point.other is not None
    at = {"attack": attack, "far": point.far, "queries": point.queries, "coarse": "allow"}
    between = (point.other.value + point.other.high) / 2
    assert verdict_of(result, success_max=between, **at).exit_code == 3, "the value is below, the upper end is not"
    assert verdict_of(result, success_max=point.other.high, **at).exit_code == 0


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"success_max": 0.1, "far": 1e-2, "queries": 33}, "success after 33 questions at FAR 0.01 was not measured"),
        ({"success_max": 0.1, "far": 1e-2, "queries": BUDGET, "attack": "map"}, "attack 'map' was not run"),
        ({"tar_max": 0.1, "far": 1e-2}, "this file is a validation"),
    ],
)
def test_what_was_not_measured_never_passes(rule: dict[str, object], why: str) -> None:
    result = verdict_of(finished()[0].result, **({"coarse": "allow"} | rule))
    assert (result.exit_code, why in result.rules[0].reason) == (4, True), result.rules[0].reason


def test_an_invalid_validation_and_a_coarse_rate_are_inconclusive() -> None:
    result = finished()[0].result
    bad = Finding(severity="invalid", about="control", text="failed")
    rule = {"success_max": 0.9999, "far": 1e-2, "queries": BUDGET, "coarse": "allow"}
    assert verdict_of(result.model_copy(update={"findings": [bad]}), **rule).exit_code == 4
    thresholds = [one.model_copy(update={"resolution": "coarse"}) for one in result.judges[0].thresholds]
    judges = [result.judges[0].model_copy(update={"thresholds": thresholds}), *result.judges[1:]]
    coarse = verdict_of(result.model_copy(update={"judges": judges}), success_max=0.9, far=1e-2, queries=BUDGET)
    assert coarse.exit_code == 4
    assert "coarse" in coarse.rules[0].reason


def test_an_audit_rule_for_a_validation_is_inconclusive_and_the_other_way_round() -> None:
    policy = make_policy({"require": [{"success_max": 0.1, "far": 1e-3, "queries": 20}]}, lambda table, key: key)
    result = decide(full_audit(), policy)
    assert (result.exit_code, "this file is an audit" in result.rules[0].reason) == (4, True)


def test_judges_that_do_not_know_a_real_second_photo_make_the_result_invalid() -> None:
    def ceiling(low: float, far: float = HEADLINE_FAR) -> Ceiling:
        return Ceiling(far=far, judge="sface", other=Share.counted(0, 12, Interval(low, 0.5, 0.95), 4))

    assert [one.severity for one in unrecognised([ceiling(0.0), ceiling(0.3, far=0.5)])] == ["invalid"]
    assert unrecognised([ceiling(0.0), ceiling(0.2)]) == []
    assert unrecognised([]) == []


class AlwaysTheSame(Service):
    """A service that is out of order, or was never given the people: one answer to every question about some."""

    def __init__(self, made: World, answer: float, people: int = 12, *, decisions_only: bool = False) -> None:
        super().__init__(made)
        self.answer, self.dull, self.decisions_only = answer, made.enrolled.names[:people], decisions_only

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        scores = super().score(person, pictures)
        return np.full(len(pictures), self.answer) if person in self.dull else scores


def answers_of(service: Service, folder: Path) -> tuple[ValidationResult, list[tuple[str, str]]]:
    result = validate(case(service), Plan(40), folder / "ledger.jsonl").result
    return result, [(one.severity, one.text) for one in result.findings if one.about == "answers"]


def test_a_service_that_gives_one_answer_to_everything_is_no_pass(tmp_path: Path) -> None:
    result, (finding,) = answers_of(AlwaysTheSame(made(), 0.5), tmp_path)
    assert finding == (
        "invalid",
        "the target gave the same answer to every question about each of 12 people, so no attack could learn "
        "anything; check that they are enrolled and that the answer holds the score, then use another --out",
    )
    rule = {"attack": "worst", "far": 1e-3, "queries": 40, "success_max": 0.9}
    policy = make_policy({"require": [rule]}, lambda table, key: key)
    assert decide(result, policy).verdict == "inconclusive"


def test_people_about_whom_every_answer_is_the_same_are_counted(tmp_path: Path) -> None:
    result, (finding,) = answers_of(AlwaysTheSame(made(), 0.0, people=3), tmp_path)
    assert result.valid
    assert finding == (
        "warning",
        "about 3 of 12 people the target gave the same answer to every question; check that they are enrolled",
    )
    assert not [one for one in finished()[0].result.findings if one.about == "answers"]


class Backwards(Service):
    """A service that answers with a distance, which unface takes for a score."""

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        return np.abs(np.round(1 - super().score(person, pictures), 6))


def asked_first(service: Service, folder: Path, *about: str) -> list[tuple[str, str]]:
    """What is said about answers and enrolment where the first question was asked as by the command line."""
    whole = case(service)
    ask_first(whole.opened, whole.enrolled, None, folder / "ledger.jsonl", Pace())
    result = validate(whole, Plan(40), folder / "ledger.jsonl").result
    assert result.asked.counted == 12 * 42, "the questions with pictures of their own are counted too"
    return [(one.severity, one.text) for one in result.findings if one.about in (about or ("answers", "enrolment"))]


def test_a_service_that_does_not_know_the_enrolled_picture_is_no_pass(tmp_path: Path) -> None:
    assert asked_first(Service(made()), tmp_path / "sound") == []
    ((severity, text),) = asked_first(Backwards(made()), tmp_path / "backwards")
    assert severity == "invalid"
    assert text == (
        "the service does not know 12 of 12 enrolled people: the very picture that they are enrolled with scored no "
        "higher than other faces (one scored 0, and 100.0 % of other faces as high). A failed attack on them says "
        "nothing; check that these people are enrolled and that a higher score means more alike, then use another --out"
    )


class KnowsSome(Service):
    """A service in which some people were never enrolled: about them it compares with somebody else."""

    def __init__(self, unknown: Sequence[int]) -> None:
        super().__init__(made())
        names = made().enrolled.names
        for at in unknown:
            self._people[names[at]] = -self._people[names[at]]


def test_a_service_that_knows_only_the_first_person_is_no_pass(tmp_path: Path) -> None:
    ((severity, text),) = asked_first(KnowsSome(range(1, 12)), tmp_path / "most")
    assert severity == "invalid"
    assert text.startswith("the service does not know 11 of 12 enrolled people:")
    ((severity, text),) = asked_first(KnowsSome([11]), tmp_path / "one")
    assert severity == "invalid", "a twelfth is more than a twentieth"


class KnowsOnePicture(Service):
    """A service that knows the very picture somebody is enrolled with, and no other one of theirs."""

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        found = super().score(person, pictures)
        people = made().enrolled
        first = people.pictures[people.rows(people.names.index(person))[0]]
        theirs = {picture.sha256 for picture in people.pictures} - {first.sha256}
        return np.where([picture.sha256 in theirs for picture in pictures], -1.0, found)


def test_a_service_that_knows_nobody_by_a_second_photo_is_no_pass(tmp_path: Path) -> None:
    assert asked_first(Service(made()), tmp_path / "sound", "second photos") == [
        ("note", "asked with a second photo of each, the service recognised 12 of 12 enrolled people")
    ]
    ((severity, text),) = asked_first(KnowsOnePicture(made()), tmp_path / "one", "second photos")
    assert severity == "invalid"
    assert text.endswith("recognised 0 of 12 enrolled people: it recognises nobody, so a failed attack says nothing")
    some = asked_first(KnowsSome(range(2, 12)), tmp_path / "some", "second photos")
    assert [severity for severity, _ in some] == ["warning"]


class DeafAtFirst(Backwards):
    """Its first answers are lost, as those of a service that is still starting."""

    def __init__(self, lost: int) -> None:
        super().__init__(made())
        self.left = lost

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        self.left -= 1
        if self.left >= 0:
            raise Lost("no answer within 30 s")
        return super().score(person, pictures)


def test_a_first_answer_that_is_lost_does_not_hide_that_nobody_is_known(tmp_path: Path) -> None:
    ((severity, text),) = asked_first(DeafAtFirst(1), tmp_path / "once")
    assert severity == "invalid"
    assert text.startswith("the service does not know 11 of 11 enrolled people:")
    deaf = case(DeafAtFirst(12))
    for _ in range(2):
        with refused("validation", "5 questions in a row had no answer, the last"):
            ask_first(deaf.opened, deaf.enrolled, None, tmp_path / "never" / "ledger.jsonl", Pace())
    ask_first(deaf.opened, deaf.enrolled, None, tmp_path / "never" / "ledger.jsonl", Pace())
    result = validate(deaf, Plan(40), tmp_path / "never" / "ledger.jsonl").result
    assert result.verdict == (
        "These numbers cannot be used: the target did not answer when asked with enrolled pictures, so whether it "
        "knows these people is unknown."
    )
    words = Page(documents.page(result)).words
    assert "Set a limit" not in words, "there is no suggested policy to begin with"
    assert "chance 0" not in words.split("What questions buy")[0], "no large 0.0 % that looks like a pass"
    rule = {"attack": "worst", "far": 1e-3, "queries": 40, "success_max": 0.9}
    (judged,) = decide(result, make_policy({"require": [rule]}, lambda table, key: key)).rules
    assert judged.reason.startswith("the validation is invalid: the target did not answer when asked with enrolled")


@pytest.mark.parametrize(("answer", "severity"), [(1.0, "invalid"), (0.0, "warning")])
def test_a_service_that_accepts_everybody_shows_nothing_and_one_that_rejects_everybody_may(
    tmp_path: Path, answer: float, severity: str
) -> None:
    _, (finding,) = answers_of(AlwaysTheSame(made(), answer, decisions_only=True), tmp_path)
    assert finding[0] == severity
