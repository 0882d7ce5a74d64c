"""The quiz answered in a real browser: what is clicked is what is saved, and the scorer finds it again."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.browser.chromium import show, started
from unface.errors import UnfaceError
from unface.report.validation import render_quiz
from unface.seeds import stream
from unface.validate.ports import Faces, Picture
from unface.validate.quiz import CATCHES, NONE, Quiz, make_quiz, score_quiz, two_way

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PEOPLE = 8


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    yield from started()


def picture(name: str, colour: tuple[int, int, int]) -> Picture:
    made = BytesIO()
    Image.new("RGB", (64, 64), colour).save(made, "PNG")
    return Picture(name, made.getvalue())


def quiz() -> Quiz:
    """Eight people of three pictures, each in a colour of its own; reconstructions are a little off."""
    pictures = [picture(f"{at}/{n}", (20 * at, 10 * n, 200)) for at in range(PEOPLE) for n in range(3)]
    vectors = stream(0, "quiz").standard_normal((PEOPLE * 3, 4)).astype(np.float32)
    people = np.repeat(np.arange(PEOPLE), 3)
    faces = Faces(tuple(pictures), people, tuple(map(str, range(PEOPLE))), {"own": vectors})
    drawn = [picture(f"drawn {at}", (20 * at, 99, 200)) for at in range(PEOPLE)]
    strangers = [picture(f"nobody {at}", (250, 250, at)) for at in range(CATCHES)]
    return make_quiz(faces, drawn, strangers, "own", seed=3)


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


def test_answers_of_a_real_browser_are_scored(browser: "Browser", tmp_path: Path) -> None:
    made = quiz()
    (tmp_path / "quiz-key.json").write_text(made.key(), encoding="utf-8")
    page = tmp_path / "quiz.html"
    page.write_text(render_quiz(made.sha256, [(i.face.content, [c.content for c in i.candidates]) for i in made.items]))
    saved = []
    for who, width in (("all right", 1200), ("one wrong", 390), ("not looking", 1200)):
        for opened in show(browser, page, width=width):
            shown = opened.page
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            wrong = next(at for at, item in enumerate(made.items) if item.kind == "reconstruction")
            for at, item in enumerate(made.items):
                choice = (
                    (item.right + 1) % 5 if who == "not looking" or (who, at) == ("one wrong", wrong) else item.right
                )
                assert shown.locator("#next").is_disabled()
                shown.get_by_role("radio").nth(choice).check()
                shown.locator("#next").click()
            with shown.expect_download() as download:
                shown.get_by_role("link", name="Save answers").click()
            path = tmp_path / f"{who}.json"
            download.value.save_as(path)
            saved.append(path)
            assert opened.complaints == []
            assert [url for url in opened.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    scored = score_quiz(tmp_path / "quiz-key.json", saved)
    assert (scored.participants, scored.inattentive) == (2, 1)
    assert scored.sps[0] == pytest.approx((2 * PEOPLE - 1) / (2 * PEOPLE))
    assert scored.sps[1] < scored.sps[0] <= scored.sps[2]
    assert sorted(one[0] for one in scored.srr) == [0.5, *[1.0] * (PEOPLE - 1)]
    assert (scored.real, scored.nobody) == (1.0, 0.0)


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
        ({"quiz": "other"}, "a.json: answers another quiz"),
        ({"answers": [0]}, f"a.json: expected {len(made.items)} answers from 0 to 4"),
        ({"answers": [9] * len(made.items)}, "a.json: expected"),
        ({"schema": "x"}, "a.json: is not a file of unface.quiz-answers/1"),
    ):
        answers.write_text(json.dumps({**good, **change}), encoding="utf-8")
        with pytest.raises(UnfaceError, match=why):
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
        with pytest.raises(UnfaceError, match=r"key\.json: is damaged"):
            score_quiz(key, [answers])
    key.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(UnfaceError, match=r"key\.json: is not JSON"):
        score_quiz(key, [answers])


def test_too_few_people_make_no_quiz() -> None:
    nobody = Faces((), np.zeros(0, np.int64), (), {"own": np.zeros((0, 4), np.float32)})
    with pytest.raises(UnfaceError, match="--quiz: 0 people with a reconstruction and two photos; expected at least 5"):
        make_quiz(nobody, [], [], "own", 0)
