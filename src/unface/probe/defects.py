"""What may be wrong with the labels: a picture under two identities or the wrong one, a person under two names."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from unface.data import EmbeddingSet
from unface.memory import require_further_memory
from unface.pairs import cosine_space, impostors_above, mated_pairs, open_screen, pair_up
from unface.threads import one_blas_thread

NEAR_DUPLICATE = 0.999
_NAMED_AT_MOST = 100_000
_FALSE_ALARM = 1e-3
_AS_ITSELF = 0.9
_ROWS_AT_ONCE = 1024
_PICTURES_AT_ONCE = 4096
_SCORES_AT_ONCE = 1 << 22
_BYTES_OF_A_NAME = 400
_LITTLE = 1 << 26


@dataclass(frozen=True)
class NearDuplicates:
    """Pairs of nearly the same vector: across identities (a picture under two of them), and within one."""

    cosine: float
    across: int
    within: int
    mated: int
    """Mated pairs that were looked through."""
    named: tuple[tuple[str, str, str, str], ...]
    """(id, identity, id, identity) of the pairs across identities, 100,000 of them at most."""


@dataclass(frozen=True)
class Lookalike:
    """Two identities whose pictures resemble each other as much as each resembles itself: one person, two names?"""

    first: str
    second: str
    across: float
    """Mean cosine between the two …"""
    within: float
    """… and the smaller of their own mean cosines."""


@dataclass(frozen=True)
class Stray:
    """A picture, whose it is said to be, and whose it seems to be."""

    id: str
    identity: str
    resembles: str


def near_duplicates(
    embeddings: EmbeddingSet, cosine: float = NEAR_DUPLICATE, *, device: str = "cpu", threads: int | None = None
) -> NearDuplicates:
    """Count pairs above a cosine; pairs across identities are named."""
    pairing = pair_up(cosine_space(embeddings.vectors), embeddings.identities)
    highest, across = impostors_above(
        pairing, cosine, open_screen(pairing.space, device), most=_NAMED_AT_MOST, threads=threads
    )
    named = tuple(_named(embeddings, int(a), int(b)) for a, b in highest.rows)
    within = sum(int(np.count_nonzero(pairs.scores >= cosine)) for pairs in mated_pairs(pairing))
    return NearDuplicates(cosine, across, within, pairing.mated, named)


def lookalikes(embeddings: EmbeddingSet) -> tuple[Lookalike, ...]:
    """Identity pairs as alike as no two of so many people should be, and as alike as each is to itself."""
    people = _People.of(embeddings)
    directions = people.directions
    with one_blas_thread():
        i, j = _pairs_above(directions, _unlikely_cosine(directions))
    return _as_themselves(people, people, i, j)


def lookalikes_between(known: EmbeddingSet, others: EmbeddingSet) -> tuple[Lookalike, ...]:
    """The same of an identity of one set and an identity of another; one of ``others`` may have a single picture."""
    people = _People.of(known)
    strangers = _People.of(others, people.centre)
    with one_blas_thread():
        unlikely = _unlikely_cosine(people.directions, len(people.sizes) * len(strangers.sizes))
        i, j = _pairs_above(people.directions, unlikely, strangers.directions)
    return _as_themselves(people, strangers, i, j)


@dataclass(frozen=True, eq=False)
class _People:
    """What a set says of each of its identities, seen from a centre."""

    names: tuple[str, ...]
    sizes: NDArray[np.int64]  # (identities,)
    means: NDArray[np.float64]  # (identities, d), of unit vectors
    centre: NDArray[np.float64]  # (d,)

    @classmethod
    def of(cls, embeddings: EmbeddingSet, centre: NDArray[np.float64] | None = None) -> "_People":
        sizes = np.bincount(embeddings.identities, minlength=len(embeddings.names))
        unit = embeddings.unit().vectors
        means = np.zeros((len(sizes), unit.shape[1]))
        for start in range(0, len(unit), _PICTURES_AT_ONCE):
            rows = slice(start, start + _PICTURES_AT_ONCE)
            np.add.at(means, embeddings.identities[rows], unit[rows].astype(np.float64))
        means /= sizes[:, None]
        return cls(embeddings.names, sizes, means, means.mean(axis=0) if centre is None else centre)

    @property
    def directions(self) -> NDArray[np.float64]:
        """(identities, d), of length one."""
        centred = self.means - self.centre
        centred /= np.maximum(np.linalg.norm(centred, axis=1), np.finfo(float).tiny)[:, None]
        return centred

    def own(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """How much each resembles itself: the squared length of its mean without what the spread of its images adds."""
        means, sizes = self.means[rows], self.sizes[rows]
        length = ((means - self.centre) ** 2).sum(axis=1)
        own = length - (1 - (means**2).sum(axis=1)) / np.maximum(sizes - 1, 1)
        return np.where(sizes < 2, np.inf, own)

    def within(self, row: int) -> float:
        """Mean cosine between its own pictures; infinite where there is but one."""
        size = int(self.sizes[row])
        return float("inf") if size < 2 else float((self.means[row] @ self.means[row] * size - 1) / (size - 1))


def _as_themselves(one: _People, other: _People, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[Lookalike, ...]:
    """Those of the pairs that resemble each other as much as each resembles itself."""
    across = np.einsum("pd,pd->p", one.means[i] - one.centre, other.means[j] - other.centre)
    alike = np.flatnonzero(across >= _AS_ITSELF * np.minimum(one.own(i), other.own(j)))
    # the mean of all cosines between two sets of unit vectors is the inner product of their means
    return tuple(
        Lookalike(
            one.names[a],
            other.names[b],
            float(one.means[a] @ other.means[b]),
            min(one.within(a), other.within(b)),
        )
        for a, b in zip(i[alike].tolist(), j[alike].tolist(), strict=True)
    )


def _pairs_above(
    left: NDArray[np.float64], cosine: float, others: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of unit rows at least so alike, the most alike first; without others those of i < j in one set."""
    right, found, pairs = left if others is None else others, [], 0
    step = max(1, min(_ROWS_AT_ONCE, _SCORES_AT_ONCE // len(right)))
    for start in range(0, len(left), step):
        cosines = left[start : start + step] @ right.T
        reached = cosines >= cosine
        i, j = np.nonzero(np.triu(reached, start + 1) if others is None else reached)
        found.append((i + start, j, cosines[i, j]))
        pairs += len(i)
        _require_room(pairs * (_BYTES_OF_A_NAME + 16 * left.shape[1]), f"{pairs:,} pairs of people who look alike")
    i, j, alike = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-alike, kind="stable")
    return i[order], j[order]


def _require_room(needed: int, what: str) -> None:
    """Few are found where labels and vectors mean something; each is listed by name."""
    if needed > _LITTLE:
        require_further_memory(needed, what, "check identities and encoder")


def _unlikely_cosine(directions: NDArray[np.float64], pairs: float | None = None) -> float:
    """The cosine that any of so many pairs reaches with a probability of ``_FALSE_ALARM``, were they independent.

    Of two random directions in D dimensions, (1 − cosine) / 2 follows Beta((D − 1) / 2, (D − 1) / 2). D is what the
    cosines' variance says, or less where their highest hundredth is higher than that: people fill no space evenly.
    """
    count = len(directions)
    some = directions[np.unique(np.linspace(0, count - 1, min(count, _ROWS_AT_ONCE)).astype(np.int64))]
    cosines = (some @ some.T)[np.triu_indices(len(some), 1)]
    high = (1 - float(np.quantile(cosines, 0.99))) / 2

    def too_rare(dimension: float) -> float:
        return 0.01 - float(betainc((dimension - 1) / 2, (dimension - 1) / 2, high))

    dimension = max(2.0, 1 / max(float(np.mean(cosines**2)), np.finfo(float).tiny))
    if too_rare(dimension) > 0:
        from scipy.optimize import brentq

        dimension = brentq(too_rare, 2.0, dimension) if too_rare(2.0) < 0 else 2.0
    half = (dimension - 1) / 2
    return float(1 - 2 * betaincinv(half, half, _FALSE_ALARM / (pairs or count * (count - 1) / 2)))


def _named(embeddings: EmbeddingSet, a: int, b: int) -> tuple[str, str, str, str]:
    names, codes, ids = embeddings.names, embeddings.identities, embeddings.ids
    return str(ids[a]), names[codes[a]], str(ids[b]), names[codes[b]]


def strays(embeddings: EmbeddingSet) -> tuple[Stray, ...]:
    """Pictures as like another identity's mean as most of that identity's own, and like their own as a stranger may be.

    One such picture makes an impostor pair with every picture of the person it shows; a handful set the threshold.
    """
    unit = embeddings.unit().vectors.astype(np.float64)
    unit -= unit.mean(axis=0)
    codes, sizes = embeddings.identities, np.bincount(embeddings.identities)
    sums = np.zeros((len(sizes), unit.shape[1]))
    np.add.at(sums, codes, unit)
    means = sums / sizes[:, None]
    with one_blas_thread():
        # without the picture itself, which would resemble its own mean by being in it
        own = np.einsum("nd,nd->n", unit, (sums[codes] - unit) / np.maximum(sizes[codes] - 1, 1)[:, None])
        usual, never = _usual(own, codes, len(sizes)), _never_among_strangers(unit, codes, means)
        found: list[tuple[int, int]] = []
        step = max(1, min(_PICTURES_AT_ONCE, _SCORES_AT_ONCE // len(means)))
        for start in range(0, len(unit), step):
            rows = slice(start, start + step)
            like = unit[rows] @ means.T
            like[np.arange(len(like)), codes[rows]] = -np.inf
            lost = (own[rows] <= usual[codes[rows]]) & (own[rows] < never)
            alike = np.argwhere((like >= np.maximum(usual, never)) & lost[:, None])
            several = len(found) + len(alike)
            _require_room(several * _BYTES_OF_A_NAME, f"{several:,} pictures that resemble another person")
            found += [(start + int(row), int(other)) for row, other in alike]
    names, ids = embeddings.names, embeddings.ids
    return tuple(Stray(str(ids[row]), names[codes[row]], names[other]) for row, other in found)


def _never_among_strangers(unit: NDArray[np.float64], codes: NDArray[np.int64], means: NDArray[np.float64]) -> float:
    """How like an identity's mean a stranger's picture is with a probability of ``_FALSE_ALARM`` among all of them."""
    looked_at = max(64, min(len(unit), _PICTURES_AT_ONCE, 4 * _SCORES_AT_ONCE // len(means)))
    some = np.unique(np.linspace(0, len(unit) - 1, looked_at).astype(np.int64))
    like = unit[some] @ means.T
    others = like[np.arange(len(means))[None, :] != codes[some, None]]
    centre = float(np.median(others))
    spread = 1.4826 * float(np.median(np.abs(others - centre)))
    # scaled up where the upper tail is heavier than a Gaussian's
    ninety_nine = float(np.quantile(others, 0.99))
    spread = max(spread, (ninety_nine - centre) / float(ndtri(0.99)))
    return centre - float(ndtri(_FALSE_ALARM / (len(unit) * len(means)))) * spread


def _usual(values: NDArray[np.float64], codes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """What four in five of each identity's values reach; infinite where there is but one."""
    order = np.lexsort((values, codes))
    sizes = np.bincount(codes, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.where(sizes > 1, values[order][starts + (sizes - 1) // 5], np.inf)
