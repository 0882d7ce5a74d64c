"""If these fail, a question is asked twice, or is not counted, or a ledger counts for a target that it is not of."""

import math
import os
import random
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refusals.table import refused
from tests.validate.live import Face, pictures, served, similarity
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.oracle import Pace, Session
from unface.validate.targets import open_target

BINDING = Binding("t", "a", "b", "c", None)
PEOPLE = ("p0", "p1", "p2", "p3")
QUERIES = pictures(60)


def test_what_was_counted_is_there_after_reopening_and_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        first = ledger.count(0, ["x", "y", "z"])
        ledger.answer(first[:1], [0.25])
        ledger.unsend(first[2:])
    with opened_ledger(path, BINDING) as ledger:
        assert (ledger.counted, ledger.answered, ledger.lost) == (2, 1, 1)
        assert ledger.score(0, "x") == 0.25
        assert math.isnan(ledger.score(0, "y"))
        assert [ledger.was_asked(0, name) for name in "xyz"] == [True, True, False]
        assert not ledger.was_asked(1, "x")
        ledger.answer(ledger.count(0, ["z"]), [0.5])
    with opened_ledger(path, BINDING) as ledger:
        assert (ledger.counted, ledger.score(0, "z")) == (3, 0.5)
    assert path.stat().st_mode & 0o077 == 0, "names nobody but is the operator's alone"


def test_the_torn_end_of_a_killed_write_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        ledger.count(0, ["x"])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n": 1, "person": 0, "pict')
    with opened_ledger(path, BINDING) as ledger:
        assert ledger.counted == 1
        assert ledger.count(0, ["y"]) == [1]
    assert path.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b'{"n": 7, "person": 0, "picture": "y"}\n',
        b'{"n": 9, "score": 1}\n',
        pytest.param(b'{"n": 0, "score": ' + b"9" * 400 + b"}\n", id="a score beyond all numbers"),
        b'{"n": 0, "score": NaN}\n',
        pytest.param(b"[" * 100_000 + b"\n", id="nested too deeply"),
    ],
)
def test_a_damaged_line_is_refused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        ledger.count(0, ["x"])
    path.write_bytes(path.read_bytes() + damage)
    with refused("validation", ..., "line 3"), opened_ledger(path, BINDING):
        pass


@pytest.mark.parametrize("field", ["target", "target_sha256", "enrolled_sha256", "queries_sha256", "authorised_by"])
def test_the_ledger_of_another_target_enrolment_or_query_set_is_refused(tmp_path: Path, field: str) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        ledger.answer(ledger.count(0, ["x"]), [0.5])
    other = replace(BINDING, **{field: "other"})
    with refused("validation", ..., "is the"), opened_ledger(path, other):
        pass


def test_a_key_that_was_forgotten_at_the_first_try_may_be_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        ledger.lose(ledger.count(0, ["x"]), "401 Unauthorized")
    with refused("validation", ..., "is the"):
        opened_ledger(path, replace(BINDING, target_sha256="other", enrolled_sha256="other")).__enter__()
    with opened_ledger(path, BINDING) as ledger:
        assert ledger.counted == 1, "asked in the same way, the question counts"
    with opened_ledger(path, replace(BINDING, target_sha256="with a key")) as ledger:
        assert ledger.counted == 0
        ledger.answer(ledger.count(0, ["x"]), [0.5])
    with opened_ledger(path, replace(BINDING, target_sha256="with a key")) as ledger:
        assert ledger.score(0, "x") == 0.5


def test_a_ledger_is_bound_to_its_faces_once_they_are_known(tmp_path: Path) -> None:
    path, early = tmp_path / "ledger.jsonl", replace(BINDING, queries_sha256=None)
    with opened_ledger(path, early) as ledger:
        ledger.answer(ledger.count(0, ["x first"]), [0.5])
    with opened_ledger(path, early) as ledger:
        assert ledger.answered == 1
    for _ in range(2):
        with opened_ledger(path, BINDING) as ledger:
            assert ledger.score(0, "x first") == 0.5
    assert sum(b'"queries_sha256": "c"' in line for line in path.read_bytes().splitlines()) == 1
    with refused("validation", ..., "--queries", "--budget"):
        opened_ledger(path, replace(BINDING, queries_sha256="other")).__enter__()
    with opened_ledger(path, early) as ledger:
        assert ledger.answered == 1, "before faces are drawn again, any may follow"
    with refused("validation", ..., "enrolment"):
        opened_ledger(path, replace(early, enrolled_sha256="other")).__enter__()


def test_of_a_target_that_never_answered_another_first_question_is_asked_each_time(tmp_path: Path) -> None:
    face, path = Face(), tmp_path / "ledger.jsonl"
    people, early = dict(zip(("p0", "p1", "p2"), pictures(3), strict=True)), replace(BINDING, queries_sha256=None)
    face.service.people = {"p2"}
    asked = []
    with served(face) as url:
        for _ in range(5):
            with opened_ledger(path, early) as ledger:
                session = Session(open_target(url).target, ledger, Pace())
                session.first(people)
                asked.append((ledger.counted, ledger.answered, session.ended is None))
    assert asked == [(1, 0, False), (2, 0, False), (3, 1, True), (3, 1, True), (3, 1, True)]
    assert face.seen == [("p2", people["p2"].content)], "the picture they are enrolled with"


def test_two_runs_never_share_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with (
        opened_ledger(path, BINDING),
        refused("output", ...),
        opened_ledger(path, BINDING),
    ):
        pass


def test_after_thirty_kills_the_ledger_counts_what_the_server_counted_and_nothing_was_sent_twice(
    tmp_path: Path,
) -> None:
    """Each run dies by SIGKILL at a random call of any function: of the ledger, of the socket, of the JSON decoder."""
    rng, kills, path = random.Random(29), 0, tmp_path / "ledger.jsonl"
    face = Face()
    with served(face) as url:
        while kills < 30 or not _finished(path):
            kills += _run_and_die(path, url, rng.randrange(1, 3_000) if kills < 30 else None)
    with opened_ledger(path, BINDING) as ledger:
        arrived = set(face.seen)
        asked = {(name, p.content) for n, name in enumerate(PEOPLE) for p in QUERIES if ledger.was_asked(n, p.sha256)}
        answered = {
            (name, p.content)
            for n, name in enumerate(PEOPLE)
            for p in QUERIES
            if ledger.score(n, p.sha256) == similarity(name, p.content)
        }
        assert len(face.seen) == len(arrived), "a question was sent twice"
        assert arrived <= asked, "a question was sent and not counted"
        # A kill between the count and the one system call that sends leaves a question that is counted and never left.
        unsent = asked - arrived
        assert unsent.isdisjoint(answered)
        assert len(unsent) <= kills
        assert ledger.counted == face.service.asked["127.0.0.1"] + len(unsent)
        assert ledger.counted == len(PEOPLE) * len(QUERIES)
        assert 0 < ledger.lost <= kills
        assert len(answered) == ledger.answered


def _run_and_die(path: Path, url: str, calls: int | None) -> int:
    """One run in a process of its own that kills itself at the n-th call or return of a function; 1 where it did."""
    child = os.fork()
    if child == 0:
        left = calls or 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with opened_ledger(path, BINDING) as ledger:
                session = Session(open_target(url).target, ledger, Pace())
                if calls is not None:
                    sys.setprofile(count)
                for number, name in enumerate(PEOPLE):
                    session.person(number, name, len(QUERIES)).ask(QUERIES)
                os._exit(0 if session.ended is None else 3)
        finally:
            os._exit(4)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return int(os.WIFSIGNALED(status))


def _finished(path: Path) -> bool:
    with opened_ledger(path, BINDING) as ledger:
        return ledger.counted == len(PEOPLE) * len(QUERIES)
