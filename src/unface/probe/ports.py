"""What a probe is: it learns from the attacker's own identities and then compares pictures of people it never saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.moments import ClassMoments, class_moments
from unface.pairs import PairSpace
from unface.probe.fisher import Fisher

Setting = Mapping[str, float]
"""One choice of hyper-parameters, e.g. ``{"alpha": 0.1}``."""


@dataclass(frozen=True, eq=False)
class Support:
    """What the attacker has: unit vectors of its own identities, ``k`` of each or all, a seed for what it draws."""

    vectors: NDArray[np.float32]
    identities: NDArray[np.int64]
    k: int
    seed: int
    device: str = "cpu"
    """Where a probe that trains may do so; closed forms need none."""

    @cached_property
    def fisher(self) -> Fisher:
        """What lda and plda share."""
        return Fisher(self.moments, self.span)

    @cached_property
    def span(self) -> NDArray[np.float64]:
        """(d, r) orthonormal directions that hold every vector of the support: no more than it has rows.

        Ridge and discriminants learn nothing beyond them, so that few pictures of many dimensions cost r³ and not d³.
        """
        rows, dim = self.vectors.shape
        return np.eye(dim) if rows >= dim else np.linalg.qr(self.vectors.T.astype(np.float64))[0]

    @cached_property
    def moments(self) -> ClassMoments:
        """Along the span; made once for every probe that is closed-form in them."""
        rows, dim = self.vectors.shape
        return class_moments(self.vectors if rows >= dim else self.vectors @ self.span, self.identities)


class Scorer(Protocol):
    """A fitted probe: turns vectors into a space whose inner products are its scores."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be done differently on this support, in words."""
        ...

    def space(self, setting: Setting, vectors: NDArray[np.float32]) -> PairSpace:
        """The (n, d) vectors as this probe sees them under one of the probe's settings."""
        ...


class Probe(Protocol):
    """A family of attackers; which of its settings is used is decided on calibrate identities."""

    @property
    def name(self) -> str:
        """As it appears in results and on the command line."""
        ...

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What may be chosen on calibrate; the first wins ties."""
        ...

    def fit(self, support: Support) -> Scorer:
        """Learn from the support once, for all settings."""
        ...
