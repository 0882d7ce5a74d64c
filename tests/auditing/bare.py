"""An audit of a few people's raw vectors alone, as quick as can be, and what is refused of one."""

import numpy as np
import pytest

from unface import UnfaceError, audit, make_identities
from unface.auditing import AuditResult
from unface.data import EmbeddingSet

PEOPLE = make_identities(40, 5, 4, between=1.5, seed=2)


def quick(embeddings: EmbeddingSet = PEOPLE, **options: object) -> AuditResult:
    chosen: dict[str, object] = {"erasers": (), "fars": (0.05,), "probes": ["cosine"], "seeds": 1}
    chosen |= {"bootstraps": 100, "threads": 1}
    return audit(embeddings, **(chosen | options))  # type: ignore[arg-type]  # options of several types


def refusal(embeddings: EmbeddingSet = PEOPLE, **options: object) -> str:
    with pytest.raises(UnfaceError) as caught:
        quick(embeddings, **options)
    return str(caught.value)


def grouped(groups: list[str | None]) -> EmbeddingSet:
    """The same people, each picture of the group named for it."""
    names = np.array(PEOPLE.names)[PEOPLE.identities]
    return EmbeddingSet.from_arrays(PEOPLE.vectors, names, labels={"shoot": np.array(groups, dtype=object)})
