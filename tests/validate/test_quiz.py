"""If these fail, a quiz shows who is right, or its score is not what people answered."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.refusals.table import refused
from tests.validate.quizzes import PEOPLE, quiz
from unface.seeds import stream
from unface.validate.ports import Faces
from unface.validate.quiz import CATCHES, NONE, make_quiz, score_quiz, two_way


def test_a_quiz_has_its_catches_the_right_answer_and_no_picture_as_its_own_candidate() -> None:
    made = quiz()
    kinds = [item.kind for item in made.items]
    assert [kinds.count(kind) for kind in ("reconstruction", "real", "nobody")] == [PEOPLE, CATCHES, CATCHES]
    for item in made.items:
        assert len({one.sha256 for one in (item.face, *item.candidates)}) == 5
        if item.kind == "nobody":
            assert item.right == NONE
            continue
        person = item.face.name.removeprefix("drawn ").partition("/")[0]
        assert item.candidates[item.right].name == f"{person}/1"
    assert made.sha256 == quiz().sha256
    assert "drawn" not in made.key()


def test_two_way_intervals_are_as_wide_as_the_variance_of_participants_and_items() -> None:
    """Crossed effects: resampling both gives about σp²/P + σi²/I + 3σe²/(PI), never less than the truth (Owen 2007)."""
    random = stream(1, "crossed")
    skill, ease = random.normal(0, 0.15, 60), random.normal(0, 0.2, 40)
    right = random.random((60, 40)) < np.clip(0.6 + skill[:, None] + ease, 0, 1)
    value, low, high = two_way(right)
    rows, columns = right.mean(axis=1).var(ddof=1) / 60, right.mean(axis=0).var(ddof=1) / 40
    assert value == right.mean()
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(rows + columns), rel=0.1)
    assert two_way(np.ones((20, 5), bool))[1] == pytest.approx(0.8389, abs=1e-3)  # Wilson for 20 of 20


def test_answers_to_another_quiz_or_damaged_ones_are_refused(tmp_path: Path) -> None:
    made = quiz()
    key, answers = tmp_path / "key.json", tmp_path / "a.json"
    key.write_text(made.key(), encoding="utf-8")
    good = {"schema": "unface.quiz-answers/1", "quiz": made.sha256, "answers": [0] * len(made.items)}
    for change, why in (
        ({"quiz": "other"}, "another"),
        ({"answers": [0]}, f"{len(made.items)} answers"),
        ({"answers": [9] * len(made.items)}, f"{len(made.items)} answers"),
        ({"schema": "x"}, "unface.quiz-answers/1"),
    ):
        answers.write_text(json.dumps({**good, **change}), encoding="utf-8")
        with refused("validation", "a.json", why):
            score_quiz(key, [answers])
    answers.write_text(json.dumps(good), encoding="utf-8")
    whole = json.loads(made.key())
    for damaged in (
        {**whole, "quiz": None},
        {name: part for name, part in whole.items() if name != "quiz"},
        {**whole, "items": []},
        {**whole, "items": [one for one in whole["items"] if one["kind"] != "reconstruction"]},
        {**whole, "items": [{**one, "right": 1e308} for one in whole["items"]]},
    ):
        key.write_text(json.dumps(damaged), encoding="utf-8")
        with refused("validation", "key.json"):
            score_quiz(key, [answers])
    key.write_text("[" * 100_000, encoding="utf-8")
    with refused("result", ..., "key.json"):
        score_quiz(key, [answers])


def test_too_few_people_make_no_quiz() -> None:
    nobody = Faces((), np.zeros(0, np.int64), (), {"own": np.zeros((0, 4), np.float32)})
    with refused("validation", "--quiz", "0", "least 5"):
        make_quiz(nobody, [], [], "own", 0)
