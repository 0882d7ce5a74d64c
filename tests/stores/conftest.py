"""FAISS files are tried in forks of one process that has FAISS loaded."""

import sys
from collections.abc import Iterator

import pytest

from tests.kit.warm_trials import WarmTrials


@pytest.fixture(scope="session")
def trials() -> Iterator[WarmTrials]:
    made = WarmTrials()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _warm_trials(trials: WarmTrials, monkeypatch: pytest.MonkeyPatch) -> None:
    if "unface.stores.faiss_index" in sys.modules:
        monkeypatch.setattr("unface.stores.faiss_index.subprocess", trials)
