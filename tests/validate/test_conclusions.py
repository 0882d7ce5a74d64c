"""If these fail, a validation warns of what is not there, or keeps silent about what makes its numbers worth less."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import Told
from tests.validate.test_run import Service
from tests.validate.world import world
from unface.data import read_embeddings
from unface.judge import threshold_facts
from unface.result.file import NO_RATE, Finding
from unface.result.numbers import Interval, Share
from unface.result.validation import AttackResult, Ceiling, Hardening, Success
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.material import sha256_of, taken
from unface.validate.oracle import Pace, Session
from unface.validate.ports import Faces, Picture
from unface.validate.run import (
    STAGES,
    Case,
    Plan,
    Validated,
    _ask_in_stages,
    _complete,
    _empty_answers,
    _findings,
    _not_measured,
    _reached,
    _repeated,
    unrecognised,
    validate,
)
from unface.validate.targets import OpenedTarget

MADE = world(people=3)
KEPT = np.arange(3)


def case(service: Any = None, **given: Any) -> Case:
    opened = OpenedTarget(service or Service(MADE), "function", True, "sha")
    plain: dict[str, Any] = {"enrolled_generated": True, "authorised_by": None}
    return Case(opened, MADE.enrolled, MADE.knowledge, MADE.judges, "people", "faces", **{**plain, **given})


class Counted:
    """A ledger's numbers, and nothing else."""

    def __init__(self, counted: int = 100, lost: int = 0, ended: str | None = None) -> None:
        self.counted, self.lost, self.ended = counted, lost, ended
        self.ledger = self


def point(far: float, low: float, chance: float = 0.0, queries: int = 20, other: bool = True) -> Success:
    share = Share.counted(6, 12, Interval(low, 0.9, 0.95), 3)
    return Success(
        queries=queries, far=far, judge="all", same=None if other else share, other=share if other else None,
        chance=chance,
    )  # fmt: skip


def findings(
    session: Counted | None = None,
    results: Sequence[Success] = (),
    controls: Sequence[Success] = (),
    attacks: Sequence[Any] = (),
    kept: int = 3,
    **given: Any,
) -> dict[str, Finding]:
    found = _findings(
        case(**given),
        Plan(50),
        cast(Session, session or Counted()),
        attacks,
        [AttackResult(name="one", adaptive=False, settings=[], at=list(results))],
        [AttackResult(name="two", adaptive=False, settings=[], at=list(controls))],
        np.arange(kept),
        (10, 20),
    )
    assert len({one.about for one in found}) == len(found), "each is said once"
    return {one.about: one for one in found}


def test_a_run_with_nothing_to_say_says_nothing() -> None:
    assert findings(results=[point(1e-3, 0.2, 3e-3)], controls=[point(1e-3, 5e-3), point(1e-2, 0.05)]) == {}


def test_a_target_with_a_caution_is_a_warning_with_its_words() -> None:
    opened = replace(case().opened, cautions=("its accuracy is not known",))
    found = _findings(replace(case(), opened=opened), Plan(50), cast(Session, Counted()), [], [], [], KEPT, (10, 20))
    assert [(one.severity, one.about, one.text) for one in found] == [
        ("warning", "target", "its accuracy is not known")
    ]


def test_shuffled_answers_that_still_succeed_make_the_result_invalid() -> None:
    """From five times the FAR on, at the last number of questions, by the lower end."""
    (found,) = findings(controls=[point(1e-3, 5.1e-3), point(1e-2, 0.9)]).values()
    assert (found.severity, found.about) == ("invalid", "control")
    assert found.text.startswith("two on shuffled answers still succeeds for 50.0 % at FAR 1e-3: ")
    assert findings(controls=[point(1e-3, 0.9, queries=10)]) == {}, "fewer questions are not what is quoted"
    assert "control" in findings(controls=[point(1e-3, 0.9, other=False)]), "of one picture each the enrolled counts"


def test_templates_that_match_strangers_too_often_are_a_warning() -> None:
    (found,) = findings(results=[point(1e-3, 0.2, 3.1e-3)]).values()
    assert (found.severity, found.about) == ("warning", "thresholds")
    assert "3.1 times as often" in found.text
    assert findings(results=[point(1e-4, 0.2, 0.9)]) == {}, "below the headline's rate there are too few strangers"
    assert findings(results=[point(1e-3, 0.2, 0.9, queries=10)]) == {}
    both = findings(results=[point(1e-2, 0.2, 0.02), point(1e-3, 0.2, 0.005)])
    assert "5.0 times as often" in both["thresholds"].text, "the worst of all rates"


def test_templates_that_pass_for_strangers_ten_times_too_often_leave_no_rate() -> None:
    """Of few people the same share is no more than luck."""
    (found,) = findings(results=[point(1e-3, 0.2, 0.094)], kept=60).values()
    assert (found.severity, found.about) == ("invalid", NO_RATE)
    assert "9.4 %, more than 10 times the FAR of 1e-3" in found.text
    assert set(findings(results=[point(1e-3, 0.2, 0.05)], kept=3)) == {"thresholds"}
    assert set(findings(results=[point(1e-3, 0.2, 0.009)], kept=60)) == {"thresholds"}


def test_people_drawn_by_the_generator_that_is_searched_leave_no_rate() -> None:
    class Drawing:
        generates = True

    (found,) = findings(attacks=[Drawing()]).values()
    assert (found.severity, found.about) == ("invalid", NO_RATE)
    assert findings(attacks=[object()]) == {}
    assert NO_RATE not in findings(attacks=[Drawing()], enrolled_generated=False)


def test_lost_answers_are_a_warning_from_one_in_ten_on() -> None:
    assert findings(Counted(100, 10)) == {}
    found = findings(Counted(100, 11))["lost answers"]
    assert (found.severity, found.text) == ("warning", "11.0 % of the questions have no answer")
    assert findings(Counted(0, 0)) == {}


def test_judges_and_people_that_weaken_a_result_are_named() -> None:
    own, second = MADE.judges
    of = replace(case(), judges=(second,))
    one = _findings(of, Plan(50), cast(Session, Counted()), [], [], [], KEPT, (10, 20))
    assert [(each.severity, each.about, each.text) for each in one] == [("note", "judges", "one judge alone, second")]
    alone = _findings(replace(of, judges=(own,)), Plan(50), cast(Session, Counted()), [], [], [], KEPT, (10, 20))
    assert [(each.severity, each.about) for each in alone] == [("warning", "judges")]
    assert "--judge" in alone[0].text
    real = findings(enrolled_generated=False)
    assert {about: each.severity for about, each in real.items()} == {"enrolled people": "note"}
    assert "at home" in real["enrolled people"].text
    ended = findings(Counted(ended="banned"))["the run ended early"]
    assert (ended.severity, ended.text) == (
        "warning", "banned. 3 people of 3 and 20 questions for each are in this result",
    )  # fmt: skip


def test_what_was_not_measured_is_said_with_why() -> None:
    class Follows:
        name, adaptive = "follows", True

    hardened = [
        Hardening(measure="m", applies_to="built-in target", far=1e-3, other=None, queries_to_half=None, largest=1)
    ]
    faces = len(MADE.knowledge.pictures)

    def said(plan: Plan, queries: int, rows: Sequence[Hardening] = hardened, **given: Any) -> list[str]:
        return _not_measured(replace(case(), **given), plan, [], rows, (queries,))

    assert said(Plan(50), 50) == []
    assert said(Plan(50), 20) == ["more than 20 questions for each person: the run ended before"]
    (short,) = said(Plan(faces + 1), faces)
    assert short.startswith(f"more than {faces} questions for each person: one picture of each person is asked with")
    assert short.endswith(f"{faces + 1:,} questions need {(3 * faces + 4) // 2:,} people in --queries")
    assert said(Plan(50), 50, []) == [
        "hardening: the target answers with decisions, and there is nothing left to take away"
    ]
    assert said(Plan(50, hardening=False), 50, []) == []
    first = taken(MADE.enrolled, [MADE.enrolled.rows(at)[0] for at in range(3)])
    (alone,) = said(Plan(50), 50, enrolled=first)
    assert alone == "other pictures of the people: only one picture of each was given"
    two = taken(MADE.enrolled, [0, 1, *(MADE.enrolled.rows(at)[0] for at in (1, 2))])
    assert said(Plan(50), 50, enrolled=two) == []
    following = _not_measured(case(), Plan(50), [cast(Any, Follows())], hardened, (50,))
    assert following == ["follows on shuffled answers: its questions follow them"]


def test_judges_that_accept_a_real_second_photo_at_any_rate_above_chance_are_enough() -> None:
    def ceiling(low: float, value: int) -> Ceiling:
        return Ceiling(far=1e-3, judge="one", other=Share.counted(value, 12, Interval(low, 1.0, 0.95), 4))

    (found,) = unrecognised([ceiling(1e-3, 3), ceiling(0.0, 6)])
    assert (found.severity, found.about) == ("invalid", "ceiling")
    assert "at FAR 1e-3 a real second photo passes for 50.0 %" in found.text
    assert unrecognised([ceiling(1.1e-3, 3), ceiling(0.0, 6)]) == []


def test_stages_end_with_the_budget_or_the_faces_there_are() -> None:
    assert Plan(200).stages(10_000) == (20, 50, 100, 200)
    assert Plan(201).stages(10_000) == (20, 50, 100, 200, 201)
    assert Plan(200).stages(60) == (20, 50, 60)
    assert Plan(10).stages(60) == (10,)
    assert Plan(10**6).stages(10**6) == (*STAGES, 10**6)
    assert STAGES == (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
    plan = Plan(1)
    assert (plan.attacks, plan.rate, plan.seed, plan.hardening, plan.pace) == ((), None, 0, True, None)


@pytest.mark.parametrize(
    ("reached", "people", "stages"),
    [
        ([3, 2, 3], [0, 1, 2], (20, 50)),
        ([0, 2, 1], [1, 2], (20,)),
        ([0, 0, 0], [], ()),
        ([1, 1, 1], [0, 1, 2], (20,)),
    ],
)
def test_everybody_is_measured_at_what_all_reached_or_those_who_reached_anything_at_the_first(
    reached: list[int], people: list[int], stages: tuple[int, ...]
) -> None:
    found, done = _complete(np.array(reached), (20, 50, 100))
    assert (found.tolist(), done) == (people, stages)


def test_people_are_asked_about_in_turn_stage_by_stage(tmp_path: Path) -> None:
    service, told = Service(MADE), Told()
    here = case(service)
    with opened_ledger(tmp_path / "ledger.jsonl", here.binding) as ledger:
        session = Session(service, ledger, Pace())
        _ask_in_stages(session, here, (4, 9), told)
        order = [person for person, _ in service.asked]
        assert order == [name for count in (4, 5) for name in MADE.enrolled.names for _ in range(count)]
        assert [name for _, name in service.asked[:4]] == [one.name for one in MADE.knowledge.pictures[:4]]
        assert (told.started, told.advanced) == ([("asking", 27)], {"asking": 27})
        assert _reached(ledger, here, (4, 9)).tolist() == [2, 2, 2]
        assert _reached(ledger, here, (4, 9, 10)).tolist() == [2, 2, 2]
        session.person(1, MADE.enrolled.names[1], 10).ask(MADE.knowledge.pictures[:10])
        assert _reached(ledger, here, (4, 9, 10)).tolist() == [2, 3, 2]
        session.ended = "banned"
        before = len(service.asked)
        _ask_in_stages(session, here, (4, 20), told)
        assert len(service.asked) == before


def test_a_ledger_is_bound_to_the_target_the_people_and_the_faces() -> None:
    binding = case(authorised_by="me").binding
    asked = Faces(MADE.knowledge.pictures, np.zeros(len(MADE.knowledge.pictures), np.int64), ("",), {})
    assert binding == Binding("toy", "sha", sha256_of(MADE.enrolled), sha256_of(asked), "me")


class Drifts(Service):
    """Answers that are this much higher from a certain question on."""

    batch = 1

    def __init__(self, by: float, after: int, silent: bool = False) -> None:
        super().__init__(MADE)
        self._by, self._after, self._silent = by, after, silent

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        late = len(self.asked) >= self._after
        found = super().score(person, pictures)
        if late and self._silent:
            from unface.validate import Lost

            raise Lost("gone")
        return found + (self._by if late else 0.0)


@pytest.mark.parametrize(
    ("by", "silent", "severity", "words"),
    [
        (0.0, False, None, ""),
        (0.9e-3, False, None, "rounding"),
        (1.2e-3, False, "warning", "the target adds noise or changed"),
        (0.9, False, "warning", "the target adds noise or changed"),
        (1.1, False, "invalid", "the target was changed during the run"),
        (0.0, True, "warning", "no question could be asked a second time"),
    ],
)
def test_the_first_questions_asked_once_more_show_whether_the_target_changed(
    tmp_path: Path, by: float, silent: bool, severity: str | None, words: str
) -> None:
    """In parts of how much the scores of fifty faces differ."""
    spread = float(np.std(MADE.scores[:, :50]))
    service = Drifts(by * spread, 3 * 50, silent)
    here = case(service)
    with opened_ledger(tmp_path / "ledger.jsonl", here.binding) as ledger:
        session = Session(service, ledger, Pace())
        _ask_in_stages(session, here, (50,), Told())
        found = _repeated(session, here, KEPT)
        assert ledger.counted == 3 * 50 + 3
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    if severity is not None:
        assert found[0].about == "repeats"
        assert words in found[0].text
        if not silent:
            assert (
                f"of 3 questions asked again at the end the answer changed by up to {by * spread:.2g}" in found[0].text
            )
            assert f"scores of different faces differ by {spread:.2g}" in found[0].text


def test_a_whole_result_says_what_was_given_and_done(tmp_path: Path) -> None:
    service, told = Service(MADE), Told()
    here = case(service, queries_generated=True, notes=("one left out",))
    plan = Plan(60, ("best-of-n",), seed=4, hardening=False)
    done = validate(here, plan, tmp_path / "ledger.jsonl", progress=told)
    result = done.result
    assert result.target.model_dump() == {
        "name": "toy", "kind": "function", "decisions_only": False, "local": True, "authorised_by": None,
    }  # fmt: skip
    enrolled = result.enrolled
    assert (enrolled.source, enrolled.generated, enrolled.people, enrolled.pictures) == ("people", True, 3, 18)
    assert (enrolled.sha256, enrolled.notes) == (sha256_of(MADE.enrolled), ["one left out"])
    attacker = result.attacker
    assert (attacker.encoder, attacker.queries, attacker.generated) == ("own", "faces", True)
    assert attacker.pictures == len(MADE.knowledge.pictures)
    assert (result.asked.budget, result.asked.people_finished, result.asked.counted) == (60, 3, 180)
    assert result.asked.sha256 != ""
    assert [(one.name, one.independent) for one in result.judges] == [("own", False), ("second", True)]
    assert [len(one.notes) for one in result.judges] == [0, 2]
    assert result.judges[0].thresholds == [threshold_facts(one) for one in MADE.judges[0].thresholds]
    assert result.hardening == []
    assert result.worst_case is not None
    assert (result.worst_case.name, result.worst_case.adaptive) == ("worst", False)
    assert {name for one in result.worst_case.at for name in one.attacks} == {"best-of-n"}
    assert dict(told.started) == {"asking": 180, "attacking": 6}
    assert told.advanced == {"asking": 180, "attacking": 6}, "each person's answers, and the same shuffled"
    best = MADE.knowledge.vectors[MADE.scores[:, :60].argmax(axis=1)]
    np.testing.assert_allclose(done.templates, best, atol=1e-6)
    assert done.names == MADE.enrolled.names
    assert done.pictures == ()
    again = validate(here, replace(plan, seed=5), tmp_path / "ledger.jsonl").result
    assert again.shuffled != result.shuffled, "in the order of another seed"


def test_people_of_whom_nothing_was_recovered_have_no_template_in_the_file(tmp_path: Path) -> None:
    done = validate(case(), Plan(20, ("best-of-n",), hardening=False), tmp_path / "ledger.jsonl")
    templates = done.templates.copy()
    templates[1, 3] = np.nan
    kept = Validated(done.result, templates, done.names)
    path = tmp_path / "templates.parquet"
    assert kept.save_templates(path) == path
    saved = read_embeddings(path)
    assert sorted(saved.names) == sorted([done.names[0], done.names[2]])
    assert (kept.pictures, kept.faces) == ((), None)


def told(answers: Sequence[Sequence[float]], own: float | None, *, decisions_only: bool = False) -> tuple[str, str]:
    """Severity and subject of the only thing said, where somebody's own picture had this answer."""
    first = None if own is None else np.array([math.nan, own])
    found = _empty_answers(np.array(answers, dtype=np.float64), first, decisions_only=decisions_only)
    assert len(found) <= 1, "one thing at a time"
    return (found[0].severity, found[0].about) if found else ("", "")


def test_a_person_is_known_if_few_other_faces_score_as_high_as_their_own_picture() -> None:
    """The second person's 40 answers are 0.01, 0.02 … 0.40: at most two of them, 5 %, may be as high."""
    others = [0.01 * (1 + at) for at in range(40)]
    answers = [[0.9, *others[1:]], others]
    assert told(answers, 0.39) == ("", ""), "0.39 and 0.40 are as high, an equal one among them"
    assert told(answers, 0.385) == ("", "")
    assert told(answers, 0.375) == ("invalid", "enrolment")
    assert told([answers[0], [*others[:-1], math.nan]], 0.385) == ("", ""), "no answer, nothing to count"
    assert told(answers, None) == ("", "")


def test_of_decisions_the_own_picture_is_accepted_or_the_result_is_invalid() -> None:
    rejected, mixed, accepted = [[0, 0], [0, 0]], [[0, 1], [0, 0]], [[1, 1], [1, 1]]
    assert told(rejected, None, decisions_only=True) == ("warning", "answers")
    assert told(rejected, 1, decisions_only=True) == ("", ""), "a strict service, which knows its people"
    for answers in (rejected, mixed):
        assert told(answers, 0, decisions_only=True) == ("invalid", "enrolment")
    assert told(mixed, 1, decisions_only=True) == told(mixed, None, decisions_only=True) == ("", "")
    assert told(accepted, 1, decisions_only=True) == ("invalid", "answers")


def test_answers_that_never_change_are_invalid_for_everybody_and_a_warning_for_some() -> None:
    assert told([[0.5, 0.5], [0.5, 0.5]], 0.5) == ("invalid", "answers")
    assert told([[0.5, 0.5], [0.5, 0.6]], 0.9) == ("warning", "answers")
    assert told([[0.5, 0.4], [0.5, 0.6]], 0.9) == ("", "")
