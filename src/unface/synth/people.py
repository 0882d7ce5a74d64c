"""People who are kept apart: candidates from the prior, each taken only if no judge takes it for one already there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.judge import NO_FACE, PanelJudge

_HOPELESS = 500  # candidates in a row that were all refused


@dataclass(frozen=True, eq=False)
class Candidates:
    """Some people in the order they were drawn; ``vectors`` (n, dim) by judge are of those whose face was ``found``."""

    found: NDArray[np.bool_]
    vectors: tuple[NDArray[np.float32], ...]


@dataclass(frozen=True, eq=False)
class People:
    """Those taken, by their number among all candidates; ``refused`` counts the others by reason."""

    numbers: tuple[int, ...]
    vectors: tuple[NDArray[np.float32], ...]
    refused: Counter[str]


def kept_apart(candidates: Iterable[Candidates], judges: Sequence[PanelJudge], count: int) -> People:
    """The first ``count`` people, no two of them as near as ``apart`` to any judge."""
    numbers: list[int] = []
    taken = [np.empty((0, 0), dtype=np.float32) for _ in judges]
    refused: Counter[str] = Counter()
    in_vain: Counter[str] = Counter()
    for number, vectors in _one_by_one(candidates):
        reason = NO_FACE if vectors is None else _nearest(vectors, [rows[: len(numbers)] for rows in taken], judges)
        if vectors is None or reason:
            refused[reason or NO_FACE] += 1
            in_vain[reason or NO_FACE] += 1
            if in_vain.total() == _HOPELESS:
                raise UnfaceError(_hopeless(len(numbers), count, in_vain))
            continue
        in_vain.clear()
        taken = _with(taken, vectors, len(numbers), count)
        numbers.append(number)
        if len(numbers) == count:
            break
    return People(tuple(numbers), tuple(rows[: len(numbers)] for rows in taken), refused)


def _with(
    taken: list[NDArray[np.float32]], vectors: Sequence[NDArray[np.float32]], there: int, count: int
) -> list[NDArray[np.float32]]:
    """One more row for each judge. Room is doubled when it runs out: more may be asked for than fit into memory."""
    if not there:
        taken = [np.empty((1, len(vector)), dtype=np.float32) for vector in vectors]
    elif there == len(taken[0]):
        more = min(there, count - there)
        taken = [np.concatenate([rows, np.empty((more, rows.shape[1]), dtype=np.float32)]) for rows in taken]
    for rows, vector in zip(taken, vectors, strict=True):
        rows[there] = vector
    return taken


def _hopeless(there: int, count: int, in_vain: Counter[str]) -> str:
    why = ", ".join(f"{number} {reason}" for reason, number in in_vain.most_common())
    faceless = in_vain[NO_FACE] > _HOPELESS / 2
    return (
        f"only {there} of {count} people could be kept apart: {_HOPELESS} candidates in a row were refused ({why}); "
        + (
            "choose another --truncation or --size"
            if faceless
            else "ask for fewer --identities or a larger --truncation"
        )
    )


def _one_by_one(candidates: Iterable[Candidates]) -> Iterator[tuple[int, tuple[NDArray[np.float32], ...] | None]]:
    number = 0
    for some in candidates:
        rows = iter(range(int(some.found.sum())))
        for found in some.found:
            row = next(rows) if found else None
            yield number, None if row is None else tuple(vectors[row] for vectors in some.vectors)
            number += 1


def _nearest(
    vectors: Sequence[NDArray[np.float32]], taken: Sequence[NDArray[np.float32]], judges: Sequence[PanelJudge]
) -> str | None:
    for judge, vector, rows in zip(judges, vectors, taken, strict=True):
        if len(rows) and float((rows @ vector).max()) >= judge.thresholds.apart:
            return f"too close to another person ({judge.name})"
    return None
