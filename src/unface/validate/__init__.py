"""What a face system gives away that only answers with a score: targets, a ledger of questions, attacks, judges."""

from unface.validate.ports import (
    Attack,
    Knowledge,
    Lost,
    NotSent,
    Oracle,
    Picture,
    Recovered,
    Refused,
    Setting,
    Target,
)

__all__ = [
    "Attack",
    "Knowledge",
    "Lost",
    "NotSent",
    "Oracle",
    "Picture",
    "Recovered",
    "Refused",
    "Setting",
    "Target",
]
