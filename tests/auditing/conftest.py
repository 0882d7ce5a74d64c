"""A spy on the defender."""

import pytest

from unface.data import EmbeddingSet
from unface.erase import Eraser, Projection, fit_projection


@pytest.fixture
def fitted_on(monkeypatch: pytest.MonkeyPatch) -> list[EmbeddingSet]:
    """Every set that a defence was fitted on."""
    seen: list[EmbeddingSet] = []

    def spy(eraser: Eraser, embeddings: EmbeddingSet) -> Projection:
        seen.append(embeddings)
        return fit_projection(eraser, embeddings)

    monkeypatch.setattr("unface.auditing.defence.fit_projection", spy)
    return seen
