"""The quiz answered in a real browser: what is clicked is what is saved, and the scorer finds it again."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import show
from tests.validate.quizzes import PEOPLE, quiz
from unface.report.validation import render_quiz
from unface.validate.quiz import score_quiz

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
