"""Origin: which weights something was made with, and under which licence they are."""

from dataclasses import dataclass

from unface.models import Card


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
