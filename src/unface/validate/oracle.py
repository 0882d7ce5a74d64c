"""Oracles: what an attack asks. ``Asking`` goes through the ledger to the target, ``Replayed`` knows all answers."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unface.validate.ledger import Ledger
from unface.validate.ports import Announced, Lost, NotSent, Picture, Refused, Target

RETRIES = 6
LONGEST_WAIT = 120.0
"""Seconds; a target that asks for a longer break ends the run, which continues when the command is given again."""
MOST_LOST = 5
"""Answers lost in a row after which the run ends."""
_AGAIN, _FIRST = " again", " first"


@dataclass
class Pace:
    """At most ``rate`` questions a second (None: no limit), and waiting twice as long after each failure."""

    rate: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free: float = field(default=-math.inf, init=False)

    def wait(self, questions: int) -> None:
        """Until this many questions may be sent."""
        if self.rate is None:
            return
        now = self.clock()
        if now < self._free:
            self.sleep(self._free - now)
        self._free = max(now, self._free) + questions / self.rate

    def back_off(self, attempt: int, asked: float | None) -> None:
        """Before trying again: as long as the target asked for, or 1, 2, 4, 8 … seconds."""
        self.sleep(2.0**attempt if asked is None else asked)


@dataclass
class Session:
    """One run against one target: all people share its ledger, its pace, and the moment the target stops answering."""

    target: Target
    ledger: Ledger
    pace: Pace
    ended: str | None = None
    lost_in_a_row: int = 0

    def person(self, number: int, name: str, budget: int) -> "Asking":
        """An oracle for one enrolled person."""
        return Asking(self, number, name, budget)

    def first(self, people: Mapping[str, Picture | None]) -> None:
        """One question about everybody who has such a picture, ahead of all others.

        The first shows whether the target answers at all, all of them whether it knows these people.
        """
        for number, (name, picture) in enumerate(people.items()):
            if picture is None or self.ended is not None:
                continue
            if not self.ledger.was_asked(number, picture.sha256 + _FIRST):
                self.send(number, name, [picture], _FIRST)

    def own_score(self, number: int, picture: Picture) -> float:
        """The answer to the first question about a person; NaN where there is none."""
        return self.ledger.score(number, picture.sha256 + _FIRST)

    def own_was_asked(self, number: int, picture: Picture) -> bool:
        """Whether the first question about a person was asked."""
        return self.ledger.was_asked(number, picture.sha256 + _FIRST)

    def repeat(self, number: int, name: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) second answers to questions that were asked before, each a question of its own; NaN where there is none.

        The only place where a question is asked twice: to see whether the target still gives the same answer.
        """
        new = [one for one in pictures if not self.ledger.was_asked(number, one.sha256 + _AGAIN)]
        for start in range(0, len(new), self.target.batch):
            if self.ended is None:
                self.send(number, name, new[start : start + self.target.batch], _AGAIN)
        return np.array([self.ledger.score(number, one.sha256 + _AGAIN) for one in pictures], dtype=np.float64)

    def send(self, number: int, name: str, pictures: Sequence[Picture], mark: str = "") -> None:
        """Count questions, send them, and note what came back; a target that stops ends the session."""
        numbers: list[int] = []

        def leaving() -> None:
            if not numbers:  # a second attempt, after the target asked to wait, is the same question
                numbers.extend(self.ledger.count(number, [picture.sha256 + mark for picture in pictures]))

        try:
            scores = self._scores(name, pictures, leaving)
        except NotSent as error:
            self.ledger.unsend(numbers)
            self._end(str(error))
        except Lost as error:
            self.ledger.lose(numbers, str(error))
            self.lost_in_a_row += 1
            if self.lost_in_a_row >= MOST_LOST:
                self._end(f"{MOST_LOST} questions in a row had no answer, the last: {error}")
        except Refused as error:
            self.ledger.lose(numbers, str(error))
            self._end(str(error))
        else:
            self.ledger.answer(numbers, scores.tolist())
            self.lost_in_a_row = 0
            if not np.isfinite(scores).all():
                self._end("the target answered with NaN or infinity")

    def _scores(self, name: str, pictures: Sequence[Picture], leaving: Callable[[], None]) -> NDArray[np.float64]:
        for attempt in range(RETRIES + 1):
            self.pace.wait(len(pictures))
            try:
                if isinstance(self.target, Announced):
                    found = self.target.score_announced(name, pictures, leaving)
                else:
                    leaving()
                    found = self.target.score(name, pictures)
                scores = np.asarray(found, dtype=np.float64)
            except NotSent as error:
                if attempt == RETRIES or (error.wait or 0) > LONGEST_WAIT:
                    raise
                self.pace.back_off(attempt, error.wait)
                continue
            if scores.shape != (len(pictures),):
                raise Refused(f"the target gave answers of shape {scores.shape} to {len(pictures)} pictures")
            if self.target.decisions_only and not np.isin(scores[np.isfinite(scores)], (0.0, 1.0)).all():
                raise Refused("the target is said to answer with decisions only, but gave another number than 0 and 1")
            return scores
        raise AssertionError("the last attempt returns or raises")

    def _end(self, why: str) -> None:
        self.ended = why
        self.ledger.end(why)


class Asking:
    """One enrolled person; see ``Oracle``."""

    def __init__(self, session: Session, number: int, name: str, budget: int) -> None:
        self._session, self._number, self._name, self._budget = session, number, name, budget
        self._asked: set[str] = set()

    @property
    def decisions_only(self) -> bool:
        """See ``Target``."""
        return self._session.target.decisions_only

    @property
    def left(self) -> int:
        """Questions that may still be asked."""
        return 0 if self._session.ended is not None else self._budget - len(self._asked)

    def ask(self, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) scores; what was asked before comes from the ledger."""
        allowed: list[Picture] = []
        for picture in pictures:
            if picture.sha256 not in self._asked and len(self._asked) < self._budget:
                self._asked.add(picture.sha256)
                allowed.append(picture)
        session = self._session
        new = [picture for picture in allowed if not session.ledger.was_asked(self._number, picture.sha256)]
        for start in range(0, len(new), session.target.batch):
            if session.ended is not None:
                break
            session.send(self._number, self._name, new[start : start + session.target.batch])
        return np.array(
            [
                session.ledger.score(self._number, picture.sha256) if picture.sha256 in self._asked else np.nan
                for picture in pictures
            ],
            dtype=np.float64,
        )


class Replayed:
    """Answers that are there already: for controls and for hardening, which ask the target nothing."""

    def __init__(
        self, pictures: Sequence[Picture], scores: NDArray[np.float64], *, decisions_only: bool = False
    ) -> None:
        self._scores: Mapping[str, float] = {
            picture.sha256: float(score) for picture, score in zip(pictures, scores, strict=True)
        }
        self._asked: set[str] = set()
        self.decisions_only = decisions_only

    @property
    def left(self) -> int:
        """Pictures that were not asked about yet."""
        return len(self._scores) - len(self._asked)

    def ask(self, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """(n,) scores; NaN for a picture that there is no answer for."""
        self._asked.update(picture.sha256 for picture in pictures if picture.sha256 in self._scores)
        return np.array([self._scores.get(picture.sha256, np.nan) for picture in pictures], dtype=np.float64)
