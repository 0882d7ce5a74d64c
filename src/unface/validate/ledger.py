"""The ledger: every question to a target, on disk before it is sent. A killed run continues without repeating one.

One JSON object a line, appended only. A question is flushed to disk before it is sent, so the ledger never counts
fewer questions than arrived. One that was counted and has no answer may have arrived: it is spent, and is not repeated.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from unface.errors import UnfaceError, reason
from unface.output.lock import file_lock
from unface.output.write import OutputError, new_file, sync

SCHEMA = "unface.ledger/1"
LEDGER_FILE = "ledger.jsonl"
_ASKED_WITH = "queries_sha256"


@dataclass(frozen=True)
class Binding:
    """What a ledger belongs to; a run with any other is refused. Hashes name no one and hold no password."""

    target: str
    target_sha256: str
    enrolled_sha256: str
    queries_sha256: str | None
    """None before the faces to ask with are known; the ledger is bound to them as soon as they are."""
    authorised_by: str | None


class Ledger:
    """Questions by (person, picture); ``opened_ledger`` makes one."""

    def __init__(self, path: Path, file: BinaryIO, lines: Sequence[bytes]) -> None:
        self.path, self._file = path, file
        self._asked: dict[tuple[int, str], int] = {}
        self._keys: dict[int, tuple[int, str]] = {}
        self._scores: dict[int, float] = {}
        self._next = 0
        self.put_off = 0
        """Sendings that arrived and that the target wanted later; each showed it a picture, and none is a question."""
        self.ended: str | None = None
        for number, line in enumerate(lines, 2):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                raise _damaged(path, number) from None

    @property
    def counted(self) -> int:
        """Questions that were sent, or may have been."""
        return len(self._asked)

    @property
    def answered(self) -> int:
        """Questions with an answer."""
        return len(self._scores)

    @property
    def lost(self) -> int:
        """Questions without an answer."""
        return self.counted - self.answered

    def was_asked(self, person: int, picture: str) -> bool:
        """Whether a question was counted before."""
        return (person, picture) in self._asked

    def score(self, person: int, picture: str) -> float:
        """Its answer; NaN where there is none."""
        number = self._asked.get((person, picture))
        return math.nan if number is None else self._scores.get(number, math.nan)

    def count(self, person: int, pictures: Sequence[str]) -> list[int]:
        """Count questions; when this returns they are on disk, and may be sent."""
        numbers = list(range(self._next, self._next + len(pictures)))
        self._write(
            [{"n": n, "person": person, "picture": picture} for n, picture in zip(numbers, pictures, strict=True)],
            flush=True,
        )
        return numbers

    def answer(self, numbers: Sequence[int], scores: Sequence[float]) -> None:
        """Note answers; NaN is none. Not flushed: a kill keeps them, and after a power cut they count as lost."""
        self._write(
            [{"n": n, "score": float(score)} for n, score in zip(numbers, scores, strict=True) if math.isfinite(score)]
        )

    def lose(self, numbers: Sequence[int], why: str) -> None:
        """Note why there is no answer."""
        self._write([{"n": n, "lost": why} for n in numbers])

    def postpone(self, numbers: Sequence[int], why: str) -> None:
        """Note that questions arrived and are to be sent again later."""
        self._write([{"n": n, "put_off": why} for n in numbers])

    def unsend(self, numbers: Sequence[int]) -> None:
        """Take back questions that certainly did not arrive; they may be asked again."""
        self._write([{"n": n, "unsent": True} for n in numbers])

    def end(self, why: str) -> None:
        """Note that the target answers no more."""
        self._write([{"ended": why, "time": _now()}], flush=True)

    def sha256(self) -> str:
        """Of the file as it is now."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def _write(self, records: Sequence[Mapping[str, object]], *, flush: bool = False) -> None:
        try:
            self._file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
            self._file.flush()
            for record in records:
                self._take(record)
            if flush:  # last, so that what is counted is sent at once
                os.fsync(self._file.fileno())
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({reason(error)}); make room and run it again") from None

    def _take(self, record: Mapping[str, object]) -> None:
        """One record, from the file or about to be in it."""
        if "n" not in record:
            # What follows the end of an earlier run is a run that went on.
            self.ended = str(record["ended"]) if "ended" in record else None
            return
        number = record["n"]
        if not isinstance(number, int):
            raise TypeError
        if "picture" in record:
            person, picture = record["person"], record["picture"]
            if number != self._next or not isinstance(person, int) or not isinstance(picture, str):
                raise ValueError
            if (person, picture) in self._asked:
                raise ValueError
            self._asked[person, picture] = number
            self._keys[number] = (person, picture)
            self._next += 1
            self.ended = None
        elif "score" in record:
            score = record["score"]
            if number not in self._keys or not isinstance(score, int | float) or not math.isfinite(score):
                raise ValueError
            self._scores[number] = float(score)
        elif "put_off" in record:
            if number not in self._keys:
                raise ValueError
            self.put_off += 1
        elif "unsent" in record:
            if number in self._scores:
                raise ValueError
            del self._asked[self._keys.pop(number)]


@contextmanager
def opened_ledger(path: Path, binding: Binding) -> Iterator[Ledger]:
    """The ledger at ``path``, new or continued; no other run can hold it, and no other target can use it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new_file(path, private=True)
    with file_lock(path, f"{path}: another run is writing it; wait for it or choose another --out"):
        lines = _whole_lines(path)
        head = {"schema": SCHEMA, **asdict(binding)}
        with path.open("ab") as file:
            if lines and _only_tried(lines, head):
                file.truncate(0)
                lines = []
            if lines:
                asked_with = _require_same(path, lines, head)
                ledger = Ledger(path, file, lines[1:])
                ledger._write([{"resumed": _now()}])
                if asked_with is None and binding.queries_sha256 is not None:
                    ledger._write([{_ASKED_WITH: binding.queries_sha256}], flush=True)
            else:
                ledger = Ledger(path, file, [])
                ledger._write([{**head, "started": _now()}], flush=True)
                sync(path.parent)
            yield ledger


def is_begun(path: Path) -> bool:
    """Whether there is a ledger with anything in it."""
    return path.is_file() and path.stat().st_size > 0


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of the file; what a kill left of the last one was not on disk, so nothing was sent for it: cut off."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())
    return content[:whole].splitlines()


def _only_tried(lines: Sequence[bytes], head: Mapping[str, object]) -> bool:
    """Whether this target was asked in another way and never answered, as with a key forgotten: nothing to keep."""
    try:
        found = json.loads(lines[0])
    except (ValueError, RecursionError):
        return False
    other = isinstance(found, dict) and found.get("target_sha256") != head["target_sha256"]
    # Without an answer, it does not matter which faces were to be asked with.
    rest = {key: value for key, value in head.items() if key not in ("target_sha256", _ASKED_WITH)}
    return other and found == {**found, **rest} and not any(b'"score"' in line for line in lines[1:])


def _require_same(path: Path, lines: Sequence[bytes], head: Mapping[str, object]) -> object:
    """Refuse another run's ledger; returns the hash of the faces that it is asked with, None if it has none yet."""
    try:
        found = json.loads(lines[0])
        assert isinstance(found, dict)
    except (ValueError, AssertionError, RecursionError):
        raise _damaged(path, 1) from None
    asked_with = found[_ASKED_WITH] = found.get(_ASKED_WITH) or _bound_later(lines[1:])
    if found.get("schema") != SCHEMA:
        raise UnfaceError(f"{path}: is no ledger of this version ({SCHEMA}); choose another --out")
    names = {
        "target": "target",
        "target_sha256": "target (the same address, asked in another way)",
        "enrolled_sha256": "enrolment: other people or other pictures",
        "queries_sha256": "set of query faces: another --queries, or another --budget if these are generated",
        "authorised_by": "--authorised-by",
    }
    for key, what in names.items():
        open_yet = key == _ASKED_WITH and None in (asked_with, head[key])
        if found.get(key) != head[key] and not open_yet:
            raise UnfaceError(f"{path}: is the ledger of another {what}; choose another --out, or give the same again")
    return asked_with


def _bound_later(lines: Sequence[bytes]) -> object:
    """The faces that a ledger was bound to after its first question; a line that is damaged is refused elsewhere."""
    for line in lines:
        if _ASKED_WITH.encode() in line:
            with suppress(ValueError, RecursionError, AttributeError):
                return json.loads(line).get(_ASKED_WITH)
    return None


def _damaged(path: Path, number: int) -> UnfaceError:
    return UnfaceError(f"{path}: line {number} is damaged; questions cannot be counted any more, choose another --out")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
