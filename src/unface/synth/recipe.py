"""Recipe: what is to be made, checked before anything is; and Origin: the weights that it is made with."""

from dataclasses import dataclass

from unface.errors import UnfaceError
from unface.models import Card

_SMALLEST = 64  # pixels: a face fills less than half of the picture
_LARGEST = 1024  # what the largest generators give; more would only be blown up
_LARGEST_TRUNCATION = 1.5


@dataclass(frozen=True)
class Recipe:
    """``identities`` people with ``images`` pictures each of ``size`` pixels, all of them by ``seed``.

    ``truncation`` is how far from the mean face people are drawn: small is alike and clean, 1 varied and less clean.
    """

    identities: int
    images: int
    size: int = 256
    seed: int = 0
    truncation: float = 0.8

    def __post_init__(self) -> None:
        for name, least in (("identities", 1), ("images", 1), ("size", _SMALLEST), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                raise UnfaceError(f"{name} is {value}; expected at least {least}")
        if self.size > _LARGEST:
            raise UnfaceError(f"size is {self.size}; expected at most {_LARGEST}")
        if not 0 < self.truncation <= _LARGEST_TRUNCATION:
            raise UnfaceError(f"truncation is {self.truncation:g}; expected above 0 and at most {_LARGEST_TRUNCATION}")


@dataclass(frozen=True)
class Origin:
    """A model as the files it consists of, by sha256."""

    name: str
    role: str
    weights: dict[str, str]
    licence: str
    note: str = ""


def origin_of(role: str, name: str, *cards: Card) -> Origin:
    """What the cards of one model say."""
    weights = {part.file: part.sha256 for card in cards for part in card.parts}
    licences = dict.fromkeys(card.licence.name for card in cards)
    notes = dict.fromkeys(card.licence.note for card in cards if card.licence.note)
    return Origin(name, role, weights, "; ".join(licences), "; ".join(notes))
