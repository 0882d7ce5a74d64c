"""If this fails, two people of a set are one to a recogniser, or more are promised than can be kept apart."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.synth.toy import degrees, judges
from unface.synth.people import Candidates, kept_apart

BOTH = judges(apart=30, same=20)


def points(angles: Sequence[float]) -> NDArray[np.float32]:
    radians = np.radians(np.asarray(angles, dtype=float))
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def candidates(upper: Sequence[float | None], lower: Sequence[float | None], size: int = 2) -> Iterator[Candidates]:
    """Angles by judge, None without a face; in chunks."""
    for start in range(0, len(upper), size):
        some = [angles[start : start + size] for angles in (upper, lower)]
        found = np.array([angle is not None for angle in some[0]])
        yield Candidates(found, tuple(points([angle for angle in angles if angle is not None]) for angles in some))


def test_a_person_nearer_than_the_threshold_to_anybody_taken_is_refused_by_either_judge() -> None:
    upper = [0, 29, 31, None, 200, 90, 62, 120]
    lower = [0, 180, 180, None, 29, 205, 90, 300]
    people = kept_apart(candidates(upper, lower), BOTH, 3)
    # To the upper judge 1 is 29° from 0; to the lower one 4 is 29° from 0 and 5 is 25° from 2.
    assert people.numbers == (0, 2, 6)
    assert people.refused == Counter(
        {"too close to another person (upper)": 1, "too close to another person (lower)": 2, "no face": 1}
    )
    np.testing.assert_array_equal(people.vectors[0], points([0, 31, 62]))
    np.testing.assert_array_equal(people.vectors[1], points([0, 180, 90]))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_how_candidates_come_in_chunks_changes_nobody(size: int) -> None:
    rng = np.random.default_rng(0)
    upper, lower = rng.uniform(0, 360, (2, 60)).tolist()
    whole, cut = (kept_apart(candidates(upper, lower, chunk), BOTH, 6) for chunk in (7, size))
    assert (whole.numbers, whole.refused) == (cut.numbers, cut.refused)


def test_no_two_taken_people_are_nearer_than_the_threshold() -> None:
    rng = np.random.default_rng(1)
    people = kept_apart(candidates(*rng.uniform(0, 360, (2, 400)).tolist()), BOTH, 5)
    for vectors in people.vectors:
        cosines = vectors @ vectors.T - 2 * np.eye(5)
        assert cosines.max() < degrees(30)


def test_more_people_than_fit_on_the_circle_are_refused_in_a_sentence() -> None:
    def endless() -> Iterator[Candidates]:
        rng = np.random.default_rng(2)
        while True:
            yield from candidates(*rng.uniform(0, 360, (2, 10)).tolist())

    # Twelve arcs of 30° fill it; drawn at random, fewer find room.
    with refused("synthesis", "only 7 of 13 people could be kept apart", "500", "--identities"):
        kept_apart(endless(), BOTH, 13)


def test_where_there_are_no_faces_nobody_is_told_to_ask_for_fewer_people() -> None:
    with refused("synthesis", "only 0 of 2 people could be kept apart", "500", "--truncation", "--size"):
        kept_apart(candidates([None] * 600, [None] * 600), BOTH, 2)


def test_what_is_held_grows_with_the_people_there_and_not_with_those_asked_for() -> None:
    angles = [0.0, 40.0, 80.0, 120.0, 160.0]
    people = kept_apart(candidates(angles, angles), BOTH, 10**15)
    assert people.numbers == (0, 1, 2, 3, 4)
    for vectors in people.vectors:
        np.testing.assert_array_equal(vectors, points(angles))
