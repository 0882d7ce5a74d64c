"""A quiz for people: who does a reconstruction show? One page to answer, a key that stays at home, and a scorer.

    python -m unface.validate.quiz quiz-key.json answers.json …

Some items are catches: a real photo in the reconstruction's place (a ceiling, and who fails it did not look), and a
face of nobody, to which "none" is right.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.metrics import wilson
from unface.result.file import read_json
from unface.result.numbers import Interval
from unface.seeds import stream
from unface.validate.ports import Faces, Picture

KEY_SCHEMA, ANSWERS_SCHEMA = "unface.quiz-key/1", "unface.quiz-answers/1"
CANDIDATES, MOST_ITEMS, CATCHES = 4, 30, 3
NONE = CANDIDATES
"""The answer "none of them"."""
_REPLICATES, _LEVEL = 2000, 0.95
Kind = Literal["reconstruction", "real", "nobody"]


@dataclass(frozen=True, eq=False)
class Item:
    """A face, four candidates, and which of them is right."""

    kind: Kind
    face: Picture
    candidates: tuple[Picture, ...]
    right: int


@dataclass(frozen=True, eq=False)
class Quiz:
    """Items in the order in which they are shown."""

    items: tuple[Item, ...]

    @property
    def sha256(self) -> str:
        """Of all pictures: which quiz answers belong to."""
        digest = hashlib.sha256()
        for item in self.items:
            digest.update("".join(one.sha256 for one in (item.face, *item.candidates)).encode())
        return digest.hexdigest()

    def key(self) -> str:
        """What is right, as JSON; no picture and no name is in it."""
        items = [{"kind": item.kind, "right": item.right} for item in self.items]
        return json.dumps({"schema": KEY_SCHEMA, "quiz": self.sha256, "items": items}, indent=1) + "\n"


def make_quiz(
    faces: Faces, recovered: Sequence[Picture | None], strangers: Sequence[Picture], encoder: str, seed: int
) -> Quiz:
    """``recovered`` are of each person of ``faces``; distractors are those who look most alike to ``encoder``."""
    people = [at for at, one in enumerate(recovered) if one is not None and len(faces.rows(at)) > 1]
    if len(people) <= CANDIDATES or len(strangers) < CATCHES:
        raise UnfaceError(
            f"--quiz: {len(people)} people with a reconstruction and two photos; expected at least {CANDIDATES + 1}, "
            "and an attack that draws faces, such as --attack map2v"
        )
    random = stream(seed, "validate", "quiz")
    vectors = faces.vectors[encoder][[faces.rows(at)[0] for at in range(len(faces.names))]]
    alike = vectors @ vectors.T

    def candidates(person: int, *, shown: bool) -> tuple[tuple[Picture, ...], int]:
        near = [int(one) for one in np.argsort(-alike[person]) if one != person]
        chosen = ([person] if shown else []) + near[: CANDIDATES - 1 if shown else CANDIDATES]
        order = [int(one) for one in random.permutation(chosen)]
        pictures = tuple(faces.pictures[faces.rows(one)[1 if one == person else 0]] for one in order)
        return pictures, order.index(person) if shown else NONE

    items = []
    for person in random.permutation(people)[: MOST_ITEMS - 2 * CATCHES]:
        face = recovered[person]
        assert face is not None, "people have one"
        items.append(Item("reconstruction", face, *candidates(int(person), shown=True)))
    several = [at for at in people if len(faces.rows(at)) > 2] or people
    for person in random.permutation(several)[:CATCHES]:
        face = faces.pictures[faces.rows(int(person))[-1 if len(faces.rows(int(person))) > 2 else 0]]
        items.append(Item("real", face, *candidates(int(person), shown=True)))
    for person, face in zip(random.permutation(people)[:CATCHES], strangers, strict=False):
        items.append(Item("nobody", face, *candidates(int(person), shown=False)))
    return Quiz(tuple(items[int(at)] for at in random.permutation(len(items))))


@dataclass(frozen=True)
class Scored:
    """What a panel of people recognised; shares with intervals of 95 %."""

    participants: int
    inattentive: int
    """Left out: wrong on more than half of the real photos."""
    sps: tuple[float, float, float]
    """Subjective privacy score: right answers to reconstructions, over participants and items."""
    srr: tuple[tuple[float, float, float], ...]
    """Subjective recognition rate of each reconstruction, in the order of the quiz."""
    real: float
    """Right answers to real photos: the ceiling."""
    nobody: float
    """Somebody was seen in a face of nobody: what guessing gives."""
    chance: float = 1 / (CANDIDATES + 1)


def score_quiz(key: Path, answers: Sequence[Path], seed: int = 0) -> Scored:
    """Of the files that the page exported."""
    kinds, right, quiz = _read_key(key)
    chosen = np.array([_read_answers(path, quiz, len(right)) for path in answers])
    if not len(chosen):
        raise UnfaceError("no answers; give the files that the page saved")
    correct = chosen == right
    real, shown, nobody = (kinds == kind for kind in ("real", "reconstruction", "nobody"))
    attentive = correct[:, real].mean(axis=1) >= 0.5
    if not attentive.any():
        raise UnfaceError(f"{count_of(len(chosen))} did not recognise real photos; no score can be given")
    kept = correct[attentive]
    rates = [wilson(int(one.sum()), len(one), _LEVEL) for one in kept[:, shown].T]
    return Scored(
        participants=len(kept),
        inattentive=int((~attentive).sum()),
        sps=two_way(kept[:, shown], seed),
        srr=tuple(_share(float(one.mean()), rate) for one, rate in zip(kept[:, shown].T, rates, strict=True)),
        real=float(kept[:, real].mean()),
        nobody=float((chosen[attentive][:, nobody] != NONE).mean()),
    )


def two_way(correct: NDArray[np.bool_], seed: int = 0) -> tuple[float, float, float]:
    """(value, low, high) of a share over (participants, items), both of which are resampled (Owen 2007)."""
    random = stream(seed, "validate", "quiz", "two-way")
    people, items = correct.shape
    rows = random.multinomial(people, np.full(people, 1 / people), _REPLICATES) / people
    columns = random.multinomial(items, np.full(items, 1 / items), _REPLICATES) / items
    shares = np.einsum("rp,pi,ri->r", rows, correct.astype(np.float64), columns, optimize=True)
    value = float(correct.mean())
    low, high = np.quantile(shares, ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2))
    if value in (0.0, 1.0):  # nothing to resample: the interval of as many participants as there are
        bound = wilson(round(value * people), people, _LEVEL)
        low, high = bound.low, bound.high
    return value, min(float(low), value), max(float(high), value)


def _share(value: float, found: Interval) -> tuple[float, float, float]:
    return value, found.low, found.high


def _read(path: Path, schema: str) -> dict[str, object]:
    content = read_json(path, "'unface validate --quiz' or its page")
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise UnfaceError(f"{path.name}: is not a file of {schema}")
    return content


def _read_key(path: Path) -> tuple[NDArray[np.str_], NDArray[np.int64], str]:
    content = _read(path, KEY_SCHEMA)
    try:
        items, quiz = content["items"], content["quiz"]
        if not isinstance(items, list) or not isinstance(quiz, str):
            raise TypeError
        kinds, right = [one["kind"] for one in items], [one["right"] for one in items]
        # Without one of the kinds there is nothing to divide by.
        if set(kinds) != set(get_args(Kind)) or not all(one in range(NONE + 1) for one in right):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise UnfaceError(f"{path.name}: is damaged; give the key that was written with the quiz") from None
    return np.array(kinds), np.array(right, np.int64), quiz


def _read_answers(path: Path, quiz: str, items: int) -> list[int]:
    content = _read(path, ANSWERS_SCHEMA)
    if content.get("quiz") != quiz:
        raise UnfaceError(f"{path.name}: answers another quiz than the key is of")
    given = content.get("answers")
    if not isinstance(given, list) or len(given) != items or not all(one in range(NONE + 1) for one in given):
        raise UnfaceError(f"{path.name}: expected {items} answers from 0 to {NONE}")
    return given


def count_of(people: int) -> str:
    """1 participant, 3 participants."""
    return f"{people} participant{'' if people == 1 else 's'}"


if __name__ == "__main__":
    try:
        print(json.dumps(asdict(score_quiz(Path(sys.argv[1]), [Path(one) for one in sys.argv[2:]])), indent=1))
    except (UnfaceError, IndexError) as error:
        sys.exit(f"unface: {error}" if isinstance(error, UnfaceError) else str(__doc__))
