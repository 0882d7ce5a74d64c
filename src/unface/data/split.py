"""Split: which identity plays which role, decided by a hash of its name and never by its images."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from unface.data.embeddings import EmbeddingSet
from unface.errors import UnfaceError


class Role(StrEnum):
    """What an identity is used for: the defender, the attacker, the threshold, or the verdict."""

    FIT = "fit"
    TRAIN = "train"
    CALIBRATE = "calibrate"
    TEST = "test"


DEFAULT_SHARES: Mapping[Role, float] = {Role.FIT: 0.30, Role.TRAIN: 0.25, Role.CALIBRATE: 0.20, Role.TEST: 0.25}
# The paper's 320/80/80: its eraser is fitted on the attacker's own identities, so nobody is only for fit.
PAPER_SHARES: Mapping[Role, float] = {Role.TRAIN: 2 / 3, Role.CALIBRATE: 1 / 6, Role.TEST: 1 / 6}


@dataclass(frozen=True)
class Split:
    """Identity → role. Names are kept as sha256 only, so that a split can be stored beside a report."""

    roles: Mapping[str, Role]  # sha256(name) in hex → role
    seed: int | None  # None when the user's own column decided

    @property
    def hash(self) -> str:
        """The same for the same identities in the same roles, however they were reached."""
        items = [[name, role.value] for name, role in sorted(self.roles.items())]
        return hashlib.sha256(json.dumps(items).encode()).hexdigest()

    def role_of(self, name: str) -> Role:
        try:
            return self.roles[_hidden(name)]
        except KeyError:
            raise UnfaceError(f"identity {name!r} is not in this split; split the set it comes from") from None

    def rows(self, embeddings: EmbeddingSet, role: Role) -> NDArray[np.int64]:
        """The row numbers of a role's identities, ascending."""
        chosen = np.array([self.role_of(name) is role for name in embeddings.names], dtype=bool)
        return np.flatnonzero(chosen[embeddings.identities])

    def counts(self) -> dict[Role, int]:
        """How many identities each role has; every role is there."""
        given = list(self.roles.values())
        return {role: given.count(role) for role in Role}


def split_identities(names: Iterable[str], *, shares: Mapping[Role, float] = DEFAULT_SHARES, seed: int = 0) -> Split:
    """Cut the identities, ordered by sha256 of seed and name, by cumulative shares; repeated names count once.

    Each role with a share gets at least two identities: with one there is no impostor pair.
    """
    _require_shares(shares)
    ordered = sorted(set(names), key=lambda name: split_order(name, seed))
    sizes = role_sizes(len(ordered), shares)
    if not _enough(sizes, shares):
        raise UnfaceError(_too_few(len(ordered), shares))
    roles = [role for role, size in sizes.items() for _ in range(size)]
    return Split({_hidden(name): role for name, role in zip(ordered, roles, strict=True)}, seed)


def split_order(name: str, seed: int) -> str:
    """By this, identities are sorted before they are cut: a role is an interval of it, which needs no list of names."""
    return _digest(f"{seed}\x1f{name}")


def split_from_column(names: Iterable[str], roles: Iterable[str]) -> Split:
    """The user's own split: one name and one role for each row; an identity in two roles is refused."""
    rows, words = list(names), list(roles)
    if len(rows) != len(words):
        raise UnfaceError(f"split: {len(rows)} identities but {len(words)} roles; expected one role for each row")
    given: dict[str, Role] = {}
    for row, (name, word) in enumerate(zip(rows, words, strict=True)):
        try:
            role = Role(word)
        except ValueError:
            raise UnfaceError(f"split: row {row} has role {word!r}; roles are {', '.join(Role)}") from None
        if given.setdefault(name, role) is not role:
            raise UnfaceError(f"split: identity {name!r} is in two roles, {given[name]} and {role}; give it one")
    return Split({_hidden(name): role for name, role in given.items()}, seed=None)


def _hidden(name: str) -> str:
    return _digest(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _require_shares(shares: Mapping[Role, float]) -> None:
    # Written so that NaN fails too; below a thousandth no role would ever get its two identities.
    if not all(share == 0 or 0.001 <= share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-9:
        found = ", ".join(f"{role} {share:g}" for role, share in shares.items())
        raise UnfaceError(f"split: shares are {found}; expected numbers of 0.001 or more (or 0) that add up to 1")


def role_sizes(identities: int, shares: Mapping[Role, float]) -> dict[Role, int]:
    """How many of so many identities play each role."""
    ends = np.rint(np.cumsum([shares.get(role, 0.0) for role in Role]) * identities).astype(int)
    return dict(zip(Role, np.diff(ends, prepend=0).tolist(), strict=True))


def _enough(sizes: Mapping[Role, int], shares: Mapping[Role, float]) -> bool:
    return all(size >= 2 for role, size in sizes.items() if shares.get(role, 0.0) > 0)


def _too_few(identities: int, shares: Mapping[Role, float]) -> str:
    needed = identities + 1
    while not _enough(role_sizes(needed, shares), shares):
        needed += 1
    wanted = [role for role in Role if shares.get(role, 0.0) > 0]
    return (
        f"split: {identities} identities are too few for {', '.join(wanted)};"
        f" at least {needed} are needed, two for each role at these shares"
    )
