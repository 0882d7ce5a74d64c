"""If these fail, an attack runs without what it needs, or its passes are miscounted."""

from collections.abc import Mapping

import numpy as np
import pytest

from unface.errors import UnfaceError
from unface.invert import ATTACKS, Attack, Invert, Ledger, Need, Reconstructions, Threat, Train, load_attack, require


class Asking:
    name, batch = "asking", 1
    needs = frozenset({Need.GRADIENTS, Need.PRIOR})
    settings: Mapping[str, float | str] = {}

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        raise AssertionError


def test_an_attack_without_what_it_needs_is_refused_by_name() -> None:
    attack = Asking()
    assert isinstance(attack, Attack)
    train = Train(np.zeros((2, 3), np.float32), np.arange(2), {})
    with pytest.raises(UnfaceError, match="'asking' needs the encoder with gradients and a face prior, not given here"):
        require(attack, Threat("raw", "tiny", train=train))


def test_every_name_is_an_attack_and_others_are_refused() -> None:
    for name in ATTACKS:
        assert isinstance(load_attack(name), Attack), name
    with pytest.raises(UnfaceError, match="attack 'nbnet' is not known; choose from "):
        load_attack("nbnet")


def test_a_ledger_adds_passes_seconds_and_targets() -> None:
    first, second = Ledger(), Ledger()
    with first.timed(3):
        first.count("encoder", forward=30, backward=20)
    with second.timed():
        second.count("prior", forward=7)
    first.add(second)
    assert first.passes == {"encoder forward": 30, "encoder backward": 20, "prior forward": 7, "prior backward": 0}
    assert first.targets == 3
    assert first.seconds >= 0


def test_reconstructions_are_pictures_or_templates_of_somebody() -> None:
    reached = np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="pictures, or templates"):
        Reconstructions(reached)
    with pytest.raises(ValueError, match="pictures, or templates"):
        Reconstructions(reached, templates=np.zeros((1, 2), np.float32))
