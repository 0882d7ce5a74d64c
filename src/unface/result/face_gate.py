"""The certificate of a face gate: how many faces it misses, how much else it takes for faces, and that in sentences."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from unface.result.numbers import Rate
from unface.result.words import count, percent

LEVEL = 0.95
MANY_TAKEN = 0.05
"""A gate set of which more than this share is taken for faces probably holds some; then this is worth a warning."""


@dataclass(frozen=True)
class GateCertificate:
    """How a face gate does on people and vectors that its direction was not fitted on."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    asked: float
    """The miss rate that the upper bound was to stay below."""
    missed: Rate
    """Held-out faces that the gate takes for something else, so that they are released as they are."""
    bound: float
    """Upper bound of that rate at ``level``: exact for people with a missed picture, and so no less for pictures."""
    people: Rate
    """Held-out people with at least one picture that the gate misses."""
    people_bound: float
    """Exact upper bound of that rate: the same number. Before 0.3 that of pictures counted pictures."""
    taken: Rate
    """Vectors of the gate set that are taken for faces, so that they are erased."""
    level: float = 0.95


def people_needed(miss: float) -> int:
    """How many held-out people give a bound of ``miss`` when the threshold misses none of them."""
    return math.ceil(math.log(1 - LEVEL) / math.log1p(-miss))


def gate_words(certificate: GateCertificate, source: str) -> list[str]:
    """The certificate in sentences; all but the first are warnings."""
    missed, people, taken = certificate.missed, certificate.people, certificate.taken
    said = [
        f"face gate: misses {missed.numerator:,} of {count(missed.denominator, 'held-out face')}, at most "
        f"{percent(max(certificate.bound, certificate.people_bound))} with {percent(certificate.level)} confidence, "
        f"counting {count(people.denominator, 'person', 'people')}; takes {percent(taken.value)} of {source} for faces"
    ]
    if certificate.bound > certificate.asked:
        said.append(
            f"a miss rate of at most {percent(certificate.asked)} needs {people_needed(certificate.asked):,} held-out "
            f"people, here are {people.denominator:,}: the threshold lies below all of their faces"
        )
    if taken.value > MANY_TAKEN:
        said.append(
            f"{percent(taken.value)} of {source} is taken for faces, more than {percent(MANY_TAKEN)}: does it hold "
            "pictures of people? They are erased like all faces; to spare more, give vectors without faces"
        )
    return said
