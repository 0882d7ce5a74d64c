"""Made-up vectors of people for the pair engine, and the slow answers that it must agree with."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from unface.pairs import Pairing, PairSpace, cosine_space, l2_space, pair_up
from unface.pairs.pairing import Block
from unface.pairs.screen import CpuScreen, Hits, TooManyHits

SPACES = {"cosine": cosine_space, "l2": l2_space}
KINDS = ("continuous", "integers", "duplicates", "scales")


@dataclass(frozen=True, eq=False)
class Crowd:
    """Vectors (n, d) without zero rows, identity codes in no order, and the score to compare by."""

    vectors: NDArray[np.float32]
    identities: NDArray[np.int64]
    score: str = "cosine"

    @property
    def space(self) -> PairSpace:
        return SPACES[self.score](self.vectors)

    @property
    def pairing(self) -> Pairing:
        return pair_up(self.space, self.identities)


@dataclass(frozen=True, eq=False)
class Everything:
    """Every pair of a crowd from the full matrix: rows (p, 2) with the smaller first, scores, and who is mated."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    is_mated: NDArray[np.bool_]

    @property
    def mated(self) -> NDArray[np.float32]:
        return self.scores[self.is_mated]

    @property
    def impostor(self) -> NDArray[np.float32]:
        """In falling order."""
        return np.sort(self.scores[~self.is_mated])[::-1]

    def score_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Scores of the given pairs of rows, either way round."""
        known = {(int(i), int(j)): score for (i, j), score in zip(self.rows, self.scores, strict=True)}
        return np.array([known[min(i, j), max(i, j)] for i, j in rows.tolist()], np.float32)


def everything(crowd: Crowd) -> Everything:
    space = crowd.space
    matrix = space.settle(space.left.astype(np.float64) @ space.right.astype(np.float64).T)
    i, j = np.triu_indices(len(space), 1)
    return Everything(np.stack([i, j], axis=1), matrix[i, j], crowd.identities[i] == crowd.identities[j])


def make_crowd(seed: int, kind: str, size: int, score: str = "cosine") -> Crowd:
    """A seeded crowd: unequal numbers of images, some people with one, codes with gaps, rows unsorted."""
    rng = np.random.default_rng(seed)
    dimension = int(rng.integers(1, 9))
    vectors = rng.normal(size=(size, dimension))
    if kind == "integers":
        vectors = rng.integers(-2, 3, size=(size, dimension)).astype(np.float64)
    elif kind == "duplicates":
        vectors = vectors[rng.integers(0, max(1, size // 4), size=size)]
    elif kind == "scales":
        vectors *= 10.0 ** rng.uniform(-4, 4, size=(size, 1))
    vectors[~vectors.any(axis=1), 0] = 1
    codes = rng.choice(1000, size=max(2, size // 3), replace=False)
    shares = rng.dirichlet(np.full(len(codes), 0.7))
    identities = rng.choice(codes, size=size, p=shares)
    identities[:2] = codes[:2]
    return Crowd(vectors.astype(np.float32), identities.astype(np.int64), score)


def crowds(scores: tuple[str, ...] = ("cosine", "l2")) -> st.SearchStrategy[Crowd]:
    """Crowds with at least one impostor pair, and often with masses of ties."""
    return st.builds(
        make_crowd, st.integers(0, 2**32), st.sampled_from(KINDS), st.integers(2, 45), st.sampled_from(scores)
    )


def small_blocks(pairing: Pairing, rows: int = 7, columns: int = 5) -> CpuScreen:
    """The CPU screen cut into so many blocks that even a small crowd crosses their borders."""
    screen = CpuScreen(pairing.space)
    screen.block_rows, screen.block_columns = rows, columns
    return screen


class NoisyScreen:
    """A screen as bad as its margin allows: half of its scores are off by all of it, the others by some."""

    workers: int | None = None

    def __init__(self, pairing: Pairing, margin: float, seed: int, *, rows: int = 6, columns: int = 9) -> None:
        self.margin = margin
        self.block_rows, self.block_columns = rows, columns
        space = pairing.space
        exact = space.settle(space.left.astype(np.float64) @ space.right.astype(np.float64).T).astype(np.float64)
        rng = np.random.default_rng(seed)
        errors = rng.uniform(-1, 1, size=exact.shape)
        errors = np.where(rng.random(exact.shape) < 0.5, np.sign(errors), errors) * margin
        noisy = (exact + errors).astype(np.float32)
        over = np.abs(noisy - exact) > margin
        noisy[over] = np.nextafter(noisy[over], exact[over].astype(np.float32))
        self._noisy = noisy

    def above(self, block: Block, cut: float, most: int | None = None) -> Hits:
        scores = self.scores(block)
        i, j = np.nonzero(scores >= cut)
        if most is not None and len(i) > most:
            raise TooManyHits
        return Hits(i + block.rows.start, j + block.columns.start, scores[i, j])

    def scores(self, block: Block) -> NDArray[np.float32]:
        return self._noisy[block.rows, block.columns]
