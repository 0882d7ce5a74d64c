"""If these fail, a report claims that a face gate misses fewer faces than it does."""

import pytest

from unface.result.face_gate import GateCertificate, faces_needed, gate_words
from unface.result.numbers import Rate

FINE = GateCertificate(
    asked=0.01,
    missed=Rate.counted(1, 2000),
    bound=0.0024,
    people=Rate.counted(1, 1500),
    people_bound=0.0032,
    taken=Rate.counted(1, 20),
)


def test_the_certificate_is_one_sentence_where_it_is_good_enough() -> None:
    assert gate_words(FINE, "things.parquet") == [
        "face gate: misses 1 of 2,000 held-out faces, at most 0.24 % with 95.0 % confidence if pictures of one person "
        "are independent; of 1,500 people at most 0.32 % have a missed picture; takes 5.0 % of things.parquet for faces"
    ]
    assert FINE.level == 0.95


def test_too_few_faces_and_a_set_with_people_in_it_are_warnings() -> None:
    poor = GateCertificate(0.01, Rate.counted(0, 1), 0.95, Rate.counted(0, 1), 0.95, Rate.counted(3, 50), 0.9)
    assert gate_words(poor, "x") == [
        "face gate: misses 0 of 1 held-out face, at most 95.0 % with 90.0 % confidence if pictures of one person are "
        "independent; of 1 person at most 95.0 % have a missed picture; takes 6.0 % of x for faces",
        "a miss rate of at most 1.0 % needs 299 held-out faces, here are 1: the threshold lies below all of them",
        "6.0 % of x is taken for faces, more than 5.0 %: does it hold pictures of people? They are erased like all "
        "faces; to spare more, give vectors without faces",
    ]
    exact = GateCertificate(0.0005, Rate.counted(0, 5990), 0.0005, FINE.people, 0.1, FINE.taken)
    assert len(gate_words(exact, "x")) == 1, "a bound on what was asked is within it"
    beyond = GateCertificate(0.0005, Rate.counted(0, 5980), 0.00051, FINE.people, 0.1, FINE.taken)
    assert gate_words(beyond, "x")[1].startswith(
        "a miss rate of at most 0.050 % needs 5,990 held-out faces, here are 5,980: "
    )


@pytest.mark.parametrize(("miss", "faces"), [(0.05, 59), (0.01, 299), (0.5, 5), (0.96, 1)])
def test_the_faces_that_are_needed_are_those_of_the_exact_bound(miss: float, faces: int) -> None:
    assert faces_needed(miss) == faces
    assert (1 - miss) ** faces <= 0.05 < (1 - miss) ** (faces - 1)
