"""From a stored vector to a face: attacks under a threat model, with a ledger of passes, judged by recognisers."""

from unface.invert.attacks import ATTACKS, load_attack
from unface.invert.ports import (
    Attack,
    Generator,
    Invert,
    Ledger,
    Need,
    Reconstructions,
    Targets,
    Threat,
    Train,
    require,
    require_prior,
)

__all__ = [
    "ATTACKS",
    "Attack",
    "Generator",
    "Invert",
    "Ledger",
    "Need",
    "Reconstructions",
    "Targets",
    "Threat",
    "Train",
    "load_attack",
    "require",
    "require_prior",
]
