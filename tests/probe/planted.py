"""Made-up people with a known fault in their labels."""

from dataclasses import dataclass

import numpy as np

from unface.data import EmbeddingSet, make_identities


@dataclass(frozen=True)
class Model:
    """The Gaussian model of ``make_identities``."""

    identities: int
    images: int
    dim: int
    between: float = 1.0
    tails: float | None = None
    rank: int | None = None

    def clean(self, seed: int) -> EmbeddingSet:
        return self._made(self.images, seed)

    def one_under_two_names(self, seed: int) -> EmbeddingSet:
        """The first person has twice as many pictures as others; the second half goes by the name of "zz"."""
        twice = self._made(2 * self.images, seed)
        later = np.arange(len(twice)) % (2 * self.images) >= self.images
        first = twice.identities == 0
        names = np.where(first & later, "zz", np.array(twice.names)[twice.identities])
        kept = first | ~later
        return EmbeddingSet.from_arrays(twice.vectors[kept], names[kept])

    def _made(self, images: int, seed: int) -> EmbeddingSet:
        return make_identities(
            self.identities, images, self.dim, rank=self.rank, between=self.between, tails=self.tails, seed=seed
        )
