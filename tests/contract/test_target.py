"""If these fail, some face system is asked something else, more often than is counted, or believed when it is wrong."""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.validate.live import Face, answer, pictures, served, similarity
from unface.validate import Lost, Picture, Refused
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.oracle import Pace, Session
from unface.validate.ports import Target
from unface.validate.targets import Enrollable, OpenedTarget, open_target

KINDS = ["function", "command", "http", "encoder", "toy"]
QUERIES = pictures(5)
ENROLLED = Picture("enrolled", b"p0")
PROGRAM = """
import os, sys
from hashlib import sha256
person, picture = sys.argv[1], sys.stdin.buffer.read()
with open(sys.argv[2], "ab") as file:
    file.write(picture + b"\\n")
if person != "p0":
    sys.exit("not enrolled")
wrong = os.environ.get("UNFACE_TEST_WRONG")
print(wrong or int.from_bytes(sha256(person.encode() + picture).digest()[:4]) / 2**32)
"""
each = pytest.mark.parametrize("kind", KINDS)
asked: list[bytes] = []
"""Every picture that reached the function, the encoder or the toy."""


def function(person: str, given: Sequence[bytes]) -> list[float]:
    """What an operator writes in front of a client."""
    asked.extend(given)
    if person != "p0":
        raise KeyError(person)
    wrong = os.environ.get("UNFACE_TEST_WRONG")
    return [float(wrong) if wrong else similarity(person, picture) for picture in given]


class Mirror:
    """A target as another package would bring it."""

    decisions_only, batch, local = False, 2, True

    def __init__(self, text: str) -> None:
        self.name = f"toy:{text}"

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        try:
            return np.array(function(person, [picture.content for picture in pictures]))
        except KeyError:
            raise Refused(f"{self.name}: {person} is not enrolled") from None


@dataclass(eq=False)
class Case:
    """A face system that has enrolled p0, and everything that it was asked."""

    opened: OpenedTarget
    asked: Callable[[], list[bytes]]
    answer_with: Callable[[float], None]
    """From now on, whatever is asked."""


@pytest.fixture
def case(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    asked.clear()

    def wrong(number: float) -> None:
        monkeypatch.setenv("UNFACE_TEST_WRONG", str(number))

    if kind == "http":
        face = Face()
        with served(face) as url:

            def fault(number: float) -> None:
                face.fault = lambda _: answer({"score": number})

            yield Case(open_target(url), lambda: [picture for _, picture in face.seen], fault)
        return
    if kind == "command":
        program, log = tmp_path / "score.py", tmp_path / "log"
        program.write_text(PROGRAM)
        opened = open_target(f"command:{sys.executable} -S {program} {{person}} {log}")
        yield Case(opened, lambda: log.read_bytes().splitlines() if log.exists() else [], wrong)
        return
    text = {"function": f"{__name__}:function", "encoder": "encoder:toy", "toy": "toy:home"}[kind]
    opened = open_target(text, embed=lambda _: embed)
    if isinstance(opened.target, Enrollable):
        opened.target.enrol({"p0": ENROLLED})
        asked.clear()
    yield Case(opened, lambda: list(asked), wrong)


def embed(given: Sequence[Picture]) -> NDArray[np.float32]:
    """Angles whose cosine to the enrolled picture is the similarity."""
    asked.extend(picture.content for picture in given)
    wrong = os.environ.get("UNFACE_TEST_WRONG")
    cosines = [float(wrong) if wrong else similarity("p0", picture.content) for picture in given]
    cosines = [1.0 if one is ENROLLED else x for one, x in zip(given, cosines, strict=True)]
    rows = [(x, math.sqrt(max(0.0, 1 - x * x))) for x in cosines]
    return np.array(rows, np.float32)


@contextmanager
def session(case: Case, folder: Path) -> Iterator[Session]:
    with opened_ledger(folder / "ledger.jsonl", Binding("t", "", "", "", None)) as ledger:
        yield Session(case.opened.target, ledger, Pace())


@each
def test_it_says_what_it_is_and_opening_it_asks_nothing(case: Case, kind: str) -> None:
    target = case.opened.target
    assert isinstance(target, Target)
    names = {"function": f"{__name__}:function", "command": f"command:{sys.executable}", "encoder": "encoder:toy"}
    assert target.name == {**names, "toy": "toy:home"}.get(kind, target.name)
    assert target.name
    assert target.batch >= 1
    assert not target.decisions_only
    assert case.opened.local
    assert case.opened.kind == {"encoder": "built-in"}.get(kind, kind)
    assert case.asked() == []


@each
def test_each_picture_gets_a_score_of_its_own_about_the_person_asked_for(case: Case) -> None:
    target = case.opened.target
    expected = [similarity("p0", picture.content) for picture in QUERIES]
    together = np.concatenate(
        [target.score("p0", QUERIES[start : start + target.batch]) for start in range(0, len(QUERIES), target.batch)]
    )
    assert together.dtype == np.float64
    np.testing.assert_allclose(together, expected, rtol=1e-6)
    np.testing.assert_allclose(target.score("p0", QUERIES[3:4]), expected[3:4], rtol=1e-6)
    with pytest.raises((Refused, Lost)):
        target.score("a stranger; echo 1", QUERIES[:1])


@each
def test_a_question_is_counted_and_sent_once_whatever_becomes_of_the_run(case: Case, tmp_path: Path) -> None:
    for _ in range(2):  # the second run finds all answers in the ledger
        with session(case, tmp_path) as run:
            person = run.person(0, "p0", 4)
            found = person.ask([QUERIES[0], *QUERIES])
            assert (run.ended, run.ledger.counted, person.left) == (None, 4, 0)
        expected = [similarity("p0", picture.content) for picture in (QUERIES[0], *QUERIES[:4])]
        np.testing.assert_allclose(found[:5], expected, rtol=1e-6)
        assert np.isnan(found[5]), "beyond the budget"
    assert sorted(case.asked()) == sorted(picture.content for picture in QUERIES[:4])


@each
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_an_answer_that_is_no_score_ends_the_run_and_stays_counted(case: Case, number: float, tmp_path: Path) -> None:
    case.answer_with(number)
    with session(case, tmp_path) as run, np.errstate(invalid="ignore"):
        found = run.person(0, "p0", 5).ask(QUERIES)
        assert not np.isfinite(found).any()
        assert run.ended is not None
        assert 1 <= run.ledger.counted <= case.opened.target.batch
        before = len(case.asked())
        assert np.isnan(run.person(1, "p0", 5).ask(QUERIES)).all()
    assert len(case.asked()) == before, "a run that has ended asks nothing"
