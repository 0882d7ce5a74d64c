"""If these fail, a report claims that a face gate misses fewer faces than it does."""

import pytest

from tests.kit.golden import declare, golden
from unface.result.face_gate import GateCertificate, gate_words, people_needed
from unface.result.numbers import Rate

declare("result/face-gate.txt")

FINE = GateCertificate(
    asked=0.01,
    missed=Rate.counted(1, 2000),
    bound=0.0024,
    people=Rate.counted(1, 1500),
    people_bound=0.0032,
    taken=Rate.counted(1, 20),
)


def test_too_few_people_and_a_set_with_people_in_it_are_warnings() -> None:
    assert FINE.level == 0.95
    poor = GateCertificate(0.01, Rate.counted(0, 1), 0.95, Rate.counted(0, 1), 0.95, Rate.counted(3, 50), 0.9)
    exact = GateCertificate(0.0005, Rate.counted(0, 5990), 0.0005, FINE.people, 0.1, FINE.taken)
    beyond = GateCertificate(0.0005, Rate.counted(0, 5980), 0.00051, FINE.people, 0.1, FINE.taken)
    said = [gate_words(one, "things.parquet") for one in (FINE, poor, exact, beyond)]
    assert [len(one) for one in said] == [1, 3, 1, 2], "a bound on what was asked is within it"
    golden("\n".join(line for one in said for line in one), "result/face-gate.txt")


@pytest.mark.parametrize(("miss", "people"), [(0.05, 59), (0.01, 299), (0.5, 5), (0.96, 1)])
def test_the_people_who_are_needed_are_those_of_the_exact_bound(miss: float, people: int) -> None:
    assert people_needed(miss) == people
    assert (1 - miss) ** people <= 0.05 < (1 - miss) ** (people - 1)
