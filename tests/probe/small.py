"""Small people for the probes, and the slow answers that the panel must agree with."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Role, Split, make_identities, split_identities
from unface.pairs import PairSpace
from unface.probe import RoleRows, Roles, Support, role_rows
from unface.seeds import stream


def support_of(vectors: NDArray[np.floating], identities: int, k: int, seed: int = 0) -> Support:
    """A support of k rows for each identity, in shuffled order: probes may not rely on sorted rows."""
    codes = np.repeat(np.arange(identities), k)
    order = stream(seed, "support order").permutation(len(codes))
    return Support(np.asarray(vectors, np.float32)[order], codes[order], k, seed)


def gaussian_support(identities: int, k: int, dim: int, *, between: float = 1.0, seed: int = 0) -> Support:
    """Raw, correlated Gaussian people: the within-class covariance is not a multiple of the identity."""
    rng = stream(seed, "support")
    mix = rng.normal(size=(dim, dim)) / np.sqrt(dim)
    images = rng.normal(size=(identities, k, dim)) @ mix + between * rng.normal(size=(identities, 1, dim))
    return support_of(images.reshape(-1, dim), identities, k, seed)


def roles_of(embeddings: EmbeddingSet, split: Split | None = None) -> Roles:
    split = split or split_identities(embeddings.names)
    return Roles(*(role_rows(embeddings, split, role) for role in (Role.TRAIN, Role.CALIBRATE, Role.TEST)))


def people(identities: int = 48, images: int = 6, dim: int = 6, seed: int = 0, **model: float) -> EmbeddingSet:
    return make_identities(identities, images, dim, seed=seed, **model).unit()  # type: ignore[arg-type]  # options of several types


def consecutive(*sizes: int, start: int = 0) -> RoleRows:
    """A role of identities with so many images each, in rows that follow one another."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return RoleRows(np.arange(start, start + len(codes)), codes, len(sizes))


@dataclass
class Told:
    """A progress that records its calls."""

    started: list[tuple[str, int]] = field(default_factory=list)
    advanced: dict[str, int] = field(default_factory=dict)

    def start(self, task: str, total: int) -> None:
        self.started.append((task, total))

    def advance(self, task: str, steps: int = 1) -> None:
        self.advanced[task] = self.advanced.get(task, 0) + steps


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every pair of a space from the full matrix."""

    mated: NDArray[np.float32]
    impostor: NDArray[np.float32]


def all_pairs(space: PairSpace, identities: NDArray[np.int64]) -> AllPairs:
    scores = score_matrix(space)
    i, j = np.triu_indices(len(scores), 1)
    same = identities[i] == identities[j]
    return AllPairs(scores[i, j][same], scores[i, j][~same])


def score_matrix(space: PairSpace) -> NDArray[np.float32]:
    return space.settle(space.left.astype(np.float64) @ space.right.astype(np.float64).T)


def cosines(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    unit = np.asarray(vectors, np.float64)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)
