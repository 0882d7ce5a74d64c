"""Albums: several pictures of a person as one template, dealt out for each seed and compared like single pictures.

Each seed deals the pictures of an identity into disjoint albums of m, as many as there are, and compares all of them:
m = 1 is the pair protocol. ``half`` against the others has two albums, of unequal size where the pictures are odd.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.pairs import Mated, Pairing, PairSpace, all_mated, pair_up
from unface.probe.cosine import cosine_of_seen
from unface.probe.kshot import RoleRows
from unface.probe.ports import Scorer, Setting
from unface.seeds import stream

HALF = "half"


@dataclass(frozen=True)
class AlbumSize:
    """Pictures on either side."""

    first: int
    second: int

    @property
    def equal(self) -> bool:
        """Whether any two albums can be compared."""
        return self.first == self.second

    def able(self, role: RoleRows) -> NDArray[np.int64]:
        """The people of a role who have pictures for two albums."""
        return np.flatnonzero(role.images() >= self.first + self.second)

    def pairs(self, role: RoleRows) -> int:
        """Comparisons of two people that one deal makes; no two share both albums."""
        albums = role.images()[self.able(role)] // self.first
        return int(albums.sum() ** 2 - (albums**2).sum()) // 2 if self.equal else len(albums) * (len(albums) - 1)


def album_sizes(asked: Sequence[int | str] | None, images: int) -> list[AlbumSize]:
    """The sizes to compare, rising; None: 1, 2, 4, 8 … as far as ``images`` of an identity allow, and ``half``."""
    if asked is None:
        asked = [*(2**power for power in range(images.bit_length()) if 2 ** (power + 1) <= images), HALF]
    sizes = set()
    for one in asked:
        if one == HALF:
            sizes.add(AlbumSize(images // 2, images - images // 2))
        elif isinstance(one, str) or one < 1:
            raise UnfaceError(f"--album: {one!r} is not a number of pictures from 1, or 'half'")
        elif 2 * one > images:
            raise UnfaceError(
                f"--album {one}: two albums need {2 * one} pictures of an identity and at most {images} are used; "
                f"ask for at most {images // 2}, or for more --images"
            )
        else:
            sizes.add(AlbumSize(int(one), int(one)))
    return sorted(sizes, key=lambda size: (size.first, size.second))


@dataclass(frozen=True, eq=False)
class Dealt:
    """One seed's albums of a role: for each side (albums, m) positions among the role's rows, and their identities.

    Albums of equal size are all on one side and compared with each other; else one side is compared with the other.
    """

    size: AlbumSize
    sides: tuple[NDArray[np.int64], ...]
    identities: NDArray[np.int64]


def deal(role: RoleRows, size: AlbumSize, seed: int, name: str) -> Dealt:
    """Shuffle each identity's pictures and cut them into albums; those that fill none are left out.

    So are people with too few pictures for two albums.
    """
    images, people = role.images(), size.able(role)
    keys = stream(seed, "albums", size.first, size.second, name).random(len(role.rows))
    order = np.lexsort((keys, role.identities))
    starts = np.concatenate([[0], np.cumsum(images)[:-1]])
    if not size.equal:
        shuffled = order[starts[people][:, None] + np.arange(size.first + size.second)]
        return Dealt(size, (shuffled[:, : size.first], shuffled[:, size.first :]), people)
    albums = images[people] // size.first
    owner = np.repeat(people, albums)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(albums) - albums, albums)
    shuffled = order[(starts[owner] + number * size.first)[:, None] + np.arange(size.first)]
    return Dealt(size, (shuffled,), owner)


class Seen(Protocol):
    """A role's pictures as a fitted probe sees them, ready to be put into albums."""

    def space(self, dealt: Dealt) -> PairSpace:
        """Scores of albums, a row for each: of the first side, then of the second if there is one."""
        ...


@runtime_checkable
class Embeds(Protocol):
    """A scorer whose score is the cosine of what it makes of each picture."""

    def embed(self, setting: Setting, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """e = g(z), (n, D), of any length; zeros where it makes nothing of a picture."""
        ...


@runtime_checkable
class SeesAlbums(Protocol):
    """A scorer with templates of its own."""

    def seen(self, setting: Setting, vectors: NDArray[np.float32]) -> Seen:
        """The (n, d) vectors under one of the probe's settings."""
        ...


def see(scorer: Scorer, setting: Setting, vectors: NDArray[np.float32]) -> Seen | None:
    """The pictures as a scorer sees them; None where its score is no cosine and it has no templates of its own."""
    if isinstance(scorer, SeesAlbums):
        return scorer.seen(setting, vectors)
    if isinstance(scorer, Embeds):
        return unit_seen(scorer.embed(setting, vectors))
    space = scorer.space(setting, vectors)
    return UnitSeen(space.left) if space.right is space.left else None


@dataclass(frozen=True, eq=False)
class UnitSeen:
    """What a probe makes of each picture, (n, D); a row of zeros where it makes nothing of it."""

    vectors: NDArray[np.float32]

    def space(self, dealt: Dealt) -> PairSpace:
        """Cosines of the mean unit vectors of the albums."""
        return cosine_of_seen(album_means(self.vectors, dealt))


def unit_seen(seen: NDArray[np.float32]) -> UnitSeen:
    """Rows scaled to unit length; rows of zeros stay."""
    norms = np.sqrt(np.einsum("nd,nd->n", seen, seen, dtype=np.float64))
    norms[norms == 0] = 1
    return UnitSeen(np.asarray(seen / norms[:, None], dtype=np.float32))


def album_means(vectors: NDArray[np.float32], dealt: Dealt) -> NDArray[np.float32]:
    """The mean of each album, a row for each, side after side."""
    means = [vectors[side].mean(axis=1, dtype=np.float64) for side in dealt.sides]
    return np.concatenate(means).astype(np.float32)


@dataclass(frozen=True, eq=False)
class AlbumPairs:
    """The comparisons of one deal: pairings that hold each impostor pair once between them, and the mated pairs."""

    pairings: tuple[Pairing, ...]
    mated: Mated

    @property
    def impostors(self) -> int:
        """Pairs of albums of two identities."""
        return sum(pairing.impostors for pairing in self.pairings)


def album_pairs(seen: Seen, dealt: Dealt, number: int = 0) -> AlbumPairs:
    """Compare the albums of a deal; ``number`` tells its albums from those of other deals."""
    space = seen.space(dealt)
    offset = number * len(space)
    if dealt.size.equal:
        pairing = pair_up(space, dealt.identities)
        mated = all_mated(pairing)
        return AlbumPairs((pairing,), replace(mated, rows=mated.rows + offset))
    people = len(dealt.identities)
    first, second = np.arange(people), people + np.arange(people)
    # Either half of the comparisons A × B is one pairing with one row for each person: A_i with B_j, and B_i with A_j.
    forth, back = (
        PairSpace(np.ascontiguousarray(space.left[a]), np.ascontiguousarray(space.right[b]))
        for a, b in ((first, second), (second, first))
    )
    rows = np.stack([first, second], axis=1) + offset
    mated = Mated(dealt.identities, space.exact(first, second), rows)
    return AlbumPairs((pair_up(forth, dealt.identities), pair_up(back, dealt.identities)), mated)
