"""If these fail, a run does not end as it should when a live service limits, drops, bans or answers nonsense."""

import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.validate.live import Face, answer, pictures, served, similarity
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.oracle import Pace, Session
from unface.validate.targets import HttpForm, open_target

QUERIES = pictures(12)
TRUE = np.array([similarity("p0", picture.content) for picture in QUERIES])


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def run(
    folder: Path, url: str, form: HttpForm | None = None, clock: Clock | None = None, rate: float | None = None
) -> tuple[NDArray[np.float64], Session]:
    clock = clock or Clock()
    with opened_ledger(folder / "ledger.jsonl", Binding("t", "", "", "", None)) as ledger:
        session = Session(open_target(url, form=form).target, ledger, Pace(rate, clock, clock.sleep))
        return session.person(0, "p0", len(QUERIES)).ask(QUERIES), session


def test_a_rate_limit_is_waited_for_and_counts_no_question_twice(tmp_path: Path) -> None:
    clock = Clock()
    face = Face(rate=5, clock=clock)
    with served(face) as url:
        scores, session = run(tmp_path, url, clock=clock)
    np.testing.assert_array_equal(scores, TRUE)
    assert clock.slept == [1.0, 1.0], "Retry-After, after five questions and after ten"
    assert session.ledger.counted == len(face.seen) == face.service.asked["127.0.0.1"] == 12


def test_our_own_rate_limit_keeps_the_services(tmp_path: Path) -> None:
    clock = Clock()
    face = Face(rate=5, clock=clock)
    with served(face) as url:
        run(tmp_path, url, clock=clock, rate=4)
    assert clock.slept == [0.25] * 11


def test_a_ban_ends_the_run_and_keeps_what_there_is(tmp_path: Path) -> None:
    face = Face(limit=7)
    with served(face) as url:
        scores, session = run(tmp_path, url)
    np.testing.assert_array_equal(scores[:7], TRUE[:7])
    assert np.isnan(scores[7:]).all()
    assert session.ended is not None
    assert "403 Forbidden" in session.ended
    assert "banned" in session.ended
    assert len(face.seen) == 7
    with opened_ledger(tmp_path / "ledger.jsonl", Binding("t", "", "", "", None)) as ledger:
        assert (ledger.counted, ledger.answered) == (8, 7)


def test_dropped_connections_lose_an_answer_and_never_repeat_a_question(tmp_path: Path) -> None:
    face = Face()
    face.fault = lambda number: b"" if number in (3, 4, 9) else None
    with served(face) as url:
        scores, session = run(tmp_path, url)
    lost = [2, 3, 8]
    assert np.flatnonzero(np.isnan(scores)).tolist() == lost
    np.testing.assert_array_equal(np.delete(scores, lost), np.delete(TRUE, lost))
    assert (session.ended, session.ledger.counted, session.ledger.lost, len(face.seen)) == (None, 12, 3, 12)


def test_an_answer_that_takes_too_long_is_lost_and_the_next_question_is_asked(tmp_path: Path) -> None:
    face, late = Face(), threading.Event()

    def wait(number: int) -> bytes | None:
        if number == 5:
            late.wait()
        return None

    face.fault = wait
    with served(face) as url:
        scores, session = run(tmp_path, url, HttpForm(timeout=0.5))
        late.set()
    assert np.flatnonzero(np.isnan(scores)).tolist() == [4]
    assert (session.ended, session.ledger.counted, session.ledger.lost, len(face.seen)) == (None, 12, 1, 12)


def test_five_lost_answers_in_a_row_end_the_run(tmp_path: Path) -> None:
    face = Face()
    face.fault = lambda number: b"" if number > 2 else None
    with served(face) as url:
        scores, session = run(tmp_path, url)
    assert np.isnan(scores).tolist() == [False] * 2 + [True] * 10
    assert session.ended is not None
    assert "5 questions in a row" in session.ended
    assert len(face.seen) == session.ledger.counted == 7


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (b'{"score": NaN}', "infinity"),
        (b'{"score": 1e999}', "infinity"),
        (answer({"score": "0.31"}), "number"),
        (answer({"score": None}), "number"),
        (answer({"similarity": 0.3, "ok": True}), "'score'"),
        (b"<html>", "JSON"),
    ],
)
def test_an_answer_that_is_no_score_ends_the_run(tmp_path: Path, fault: bytes, why: str) -> None:
    face = Face()
    face.fault = lambda number: fault if number == 4 else None
    with served(face) as url:
        scores, session = run(tmp_path, url)
    np.testing.assert_array_equal(scores[:3], TRUE[:3])
    assert np.isnan(scores[3:]).all()
    assert session.ended is not None
    assert why in session.ended
    assert len(face.seen) == session.ledger.counted == 4


def test_an_endpoint_that_is_down_is_tried_with_longer_and_longer_breaks_and_counts_nothing(tmp_path: Path) -> None:
    with served(Face()) as url:
        pass
    clock = Clock()
    scores, session = run(tmp_path, url, clock=clock)
    assert clock.slept == [1, 2, 4, 8, 16, 32]
    assert np.isnan(scores).all()
    assert session.ended is not None
    assert "no connection" in session.ended
    assert session.ledger.counted == 0


def test_a_score_deep_in_the_answer_is_found(tmp_path: Path) -> None:
    face = Face()
    face.fault = lambda number: answer({"data": {"matches": [{"x": 1}, {"similarity": 0.5}]}})
    with served(face) as url:
        scores, _ = run(tmp_path, url, HttpForm(score_path="data.matches.1.similarity"))
    np.testing.assert_array_equal(scores, np.full(12, 0.5))


def test_decisions_that_are_no_decisions_end_the_run(tmp_path: Path) -> None:
    with served(Face(threshold=0.5)) as url, opened_ledger(tmp_path / "a", Binding("t", "", "", "", None)) as ledger:
        session = Session(open_target(url, decisions_only=True).target, ledger, Pace())
        scores = session.person(0, "p0", 12).ask(QUERIES)
    np.testing.assert_array_equal(scores, TRUE >= 0.5)
    with served(Face()) as url, opened_ledger(tmp_path / "b", Binding("t", "", "", "", None)) as ledger:
        session = Session(open_target(url, decisions_only=True).target, ledger, Pace())
        session.person(0, "p0", 12).ask(QUERIES)
        assert session.ended is not None
        assert "another number than 0 and 1" in session.ended
