"""If these fail, passes are added up wrongly, or a reconstruction is of nobody."""

from types import SimpleNamespace

import numpy as np
import pytest

from unface.invert import Ledger, Reconstructions


def test_a_ledger_adds_passes_seconds_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([10.0, 12.5, 100.0, 101.25])
    monkeypatch.setattr("unface.invert.ports.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    first, second = Ledger(), Ledger()
    with first.timed(3):
        first.count("encoder", forward=30, backward=20)
    with second.timed():
        second.count("prior", forward=7)
    first.add(second)
    assert first.passes == {"encoder forward": 30, "encoder backward": 20, "prior forward": 7, "prior backward": 0}
    assert first.targets == 3
    assert first.seconds == 3.75


def test_reconstructions_are_pictures_or_templates_of_somebody() -> None:
    reached = np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="pictures, or templates"):
        Reconstructions(reached)
    with pytest.raises(ValueError, match="pictures, or templates"):
        Reconstructions(reached, templates=np.zeros((1, 2), np.float32))
