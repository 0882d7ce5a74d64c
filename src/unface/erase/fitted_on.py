"""Who a projection was fitted on: a set in which people can be looked up, but from which nobody can be read.

Each name sets one of eight bits for each person, at a place that a keyed hash of it says. Of people who were not fitted
on about 12 % match all the same, so that one match says little of one person; of a whole set of people the number of
matches says whether many of them were.
"""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from unface.errors import UnfaceError

_BITS = 8  # for each person
_SALT_BYTES = 16
# One audit in a million of other people would be called one of the same people.
_CERTAIN = 1e-6


@dataclass(frozen=True, eq=False)
class FittedOn:
    """``bits`` (people,) of eight each; ``salt`` in hexadecimal digits."""

    people: int
    salt: str
    bits: NDArray[np.uint8]

    def __post_init__(self) -> None:
        try:
            salted = len(bytes.fromhex(self.salt)) == _SALT_BYTES
        except ValueError:
            salted = False
        if not salted or self.people < 1 or self.bits.shape != (self.people,) or self.bits.dtype != np.uint8:
            raise UnfaceError("projection: its record of who it was fitted on is damaged; fit it again")

    @classmethod
    def of(cls, names: Iterable[str], directions: NDArray[np.float64]) -> "FittedOn":
        """The salt comes from what was learned: it differs between projections, and is the same when fitted again."""
        people = sorted(set(names))
        salt = hashlib.sha256(np.ascontiguousarray(directions).tobytes()).digest()[:_SALT_BYTES]
        bits = np.zeros(_BITS * len(people), bool)
        bits[_places(people, salt, len(bits))] = True
        return cls(len(people), salt.hex(), np.packbits(bits))

    def matches(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """(n,): certainly of those who were fitted on, and of others with the probability ``chance``."""
        bits = np.unpackbits(self.bits).astype(bool)
        found: NDArray[np.bool_] = bits[_places(list(names), bytes.fromhex(self.salt), len(bits))]
        return found

    @property
    def chance(self) -> float:
        """How likely somebody matches who was not fitted on."""
        return float(np.unpackbits(self.bits).mean())

    def to_fields(self) -> dict[str, object]:
        """For JSON."""
        return {"people": self.people, "salt": self.salt, "bits": base64.b64encode(self.bits.tobytes()).decode()}

    @classmethod
    def from_fields(cls, fields: object) -> "FittedOn":
        """What ``to_fields`` made, or UnfaceError."""
        try:
            assert isinstance(fields, dict)
            bits = np.frombuffer(base64.b64decode(fields["bits"], validate=True), np.uint8)
            return cls(int(fields["people"]), str(fields["salt"]), bits)
        except (AssertionError, KeyError, TypeError, ValueError):
            raise UnfaceError("its record of who it was erased for is damaged; apply the projection again") from None


def too_many(matches: int, compared: int, chance: float) -> bool:
    """Whether so many of so many people match that some of them were fitted on, beyond doubt."""
    # scipy.special: scipy.stats, which has the same number, takes as long to import as all the rest of this room.
    return bool(bdtrc(matches - 1, compared, chance) < _CERTAIN)


def _places(names: list[str], salt: bytes, size: int) -> NDArray[np.int64]:
    digests = (hashlib.blake2b(name.encode(), key=salt, digest_size=8).digest() for name in names)
    return np.array([int.from_bytes(digest, "little") % size for digest in digests], np.int64)
