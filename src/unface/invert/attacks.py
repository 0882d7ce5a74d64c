"""Inversion attacks by name: those of unface, and those that others register under ``unface.attacks``."""

from collections.abc import Mapping
from importlib import import_module

from unface.functions import registered, unknown
from unface.invert.ports import Attack

ATTACKS: Mapping[str, str] = {
    "alsuv": "unface.invert.alsuv:Alsuv",
    "bob": "unface.invert.indirect:Bob",
    "decoder": "unface.invert.decoder:Decoder",
    "diffmi": "unface.invert.diffmi:DiffMI",
    "translate": "unface.invert.indirect:Translate",
}
"""Name → module:class; imported when asked for, since most need torch. What follows ``:`` is a preset."""


def load_attack(name: str) -> Attack:
    """An attack by its name, as ``alsuv``, or with a preset, as ``alsuv:paper``."""
    own, _, preset = name.partition(":")
    if own in ATTACKS:
        module, _, maker = ATTACKS[own].partition(":")
        made: Attack = getattr(import_module(module), maker)(*([preset] if preset else []))
        return made
    unfit = "works on scores, not on stored vectors; use it with unface validate"
    others: Attack | None = registered("attack", name, lambda make: make(), Attack, unfit=unfit)
    if others is not None:
        return others
    raise unknown("attack", name, ATTACKS)
