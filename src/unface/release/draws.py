"""Equal numbers of pictures of each person on both sides, so that the labels training and holdout are exchangeable.

The nearest of five pictures is nearer than the nearest of two, whoever was trained on. So at most ``most`` pictures of
each person are drawn, and people are compared with people of as many drawn pictures alone. Where there is a choice,
several draws are made: shares are averaged, and twice the median of their p-values is a p-value under any dependence
between them (Rüger 1978). A test of averages would not be one, as averages over more pictures vary less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unface.seeds import stream

DRAWS = 5


@dataclass(frozen=True, eq=False)
class Draw:
    """The pictures that one comparison rests on."""

    number: int
    most: int
    """Pictures of a person, at most."""
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Of training and of the holdout, rising."""
    alike: NDArray[np.int64]
    """(training people and then holdout people,) drawn pictures of each: labels are exchangeable among equals."""


def picture_order(people: NDArray[np.int64], seed: int, side: str, draw: int) -> NDArray[np.int64]:
    """Rows by person, those of each person in random order; draws of one seed differ."""
    rng = stream(seed, "release pictures", side, draw) if draw else stream(seed, "release pictures", side)
    order = rng.permutation(len(people))
    return np.asarray(order[np.argsort(people[order], kind="stable")])


def equal_draws(training: NDArray[np.int64], holdout: NDArray[np.int64], *, seed: int) -> list[Draw]:
    """From the person of each picture; a single draw of all pictures where nobody has more than anybody else."""
    sides = {"training": training, "holdout": holdout}
    counts = [np.bincount(people) for people in sides.values()]
    most = compared_pictures(*counts)
    alike = np.minimum(np.concatenate(counts), most)
    found = []
    for number in range(DRAWS if max(side.max() for side in counts) > most else 1):
        rows = []
        for (side, people), pictures in zip(sides.items(), counts, strict=True):
            order = picture_order(people, seed, side, number)
            place = np.arange(len(order)) - np.repeat(np.cumsum(pictures) - pictures, pictures)
            rows.append(np.sort(order[place < most]))
        found.append(Draw(number, most, (rows[0], rows[1]), alike))
    return found


def compared_pictures(training: NDArray[np.int64], holdout: NDArray[np.int64]) -> int:
    """How many pictures of a person to compare, from the numbers that people have.

    More pictures show more, but the second one less than the first, and fewer people have them. So it is the number c
    with the largest √c · (share of people who have as many), on the side where that is less: all pictures where
    everybody has as many, and otherwise as many as people of the smaller side have.
    """
    numbers = np.arange(1, min(training.max(), holdout.max()) + 1)
    worth = [np.sqrt(numbers) * (counts[:, None] >= numbers).mean(axis=0) for counts in (training, holdout)]
    return int(numbers[np.argmax(np.minimum(*worth))])


def over_draws(p: Sequence[float]) -> float:
    """One p-value of those of several draws."""
    return p[0] if len(p) == 1 else min(2 * float(np.median(p)), 1.0)
