"""Weights as data: cards that say what a model is and under which licence, and a resolver to a verified file."""

from unface.models.card import Card, Hub, Input, Licence, Package, Part, Source
from unface.models.own import Description, add_model, card, cards
from unface.models.resolve import weights, whereabouts

__all__ = [
    "Card",
    "Description",
    "Hub",
    "Input",
    "Licence",
    "Package",
    "Part",
    "Source",
    "add_model",
    "card",
    "cards",
    "weights",
    "whereabouts",
]
