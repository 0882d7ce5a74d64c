"""People only the attacker has: they join the train identities, and nobody else may be among them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unface.auditing.protocol import Prepared
from unface.data import EmbeddingSet, Role, Split, require_same_space, split_from_column
from unface.errors import UnfaceError
from unface.probe import Roles, near_duplicates, role_rows
from unface.result.words import count


def with_attacker_data(prepared: Prepared, theirs: EmbeddingSet, others: Sequence[EmbeddingSet] = ()) -> Prepared:
    """The audited set with the attacker's own people behind it, all of them train identities with all their pictures.

    ``others`` are further sets that the attacker's people must not be in.
    """
    theirs = theirs.unit()
    for known in (prepared.embeddings, *others):
        require_same_space(known.space, theirs.space)
        _require_strangers(known, theirs)
    audited = prepared.embeddings
    both = EmbeddingSet.from_arrays(
        np.concatenate([audited.vectors, theirs.vectors]),
        [*_names(audited), *_names(theirs)],
        ids=[*audited.ids, *(f"attacker's {one}" for one in theirs.ids)],
        labels={name: _padded(column, theirs, name) for name, column in audited.labels.items()},
        space=audited.space,
        source=audited.source,
    )
    attackers = split_from_column(list(theirs.names), [Role.TRAIN.value] * len(theirs.names))
    split = Split({**prepared.split.roles, **attackers.roles}, prepared.split.seed)
    roles = Roles(*(role_rows(both, split, role) for role in (Role.TRAIN, Role.CALIBRATE, Role.TEST)))
    return replace(prepared, embeddings=both, split=split, roles=roles)


def _require_strangers(known: EmbeddingSet, theirs: EmbeddingSet) -> None:
    shared = set(known.names) & set(theirs.names)
    if shared:
        raise UnfaceError(
            f"--attacker-data: {theirs.source}: {count(len(shared), 'identity', 'identities')} of it also in "
            f"{known.source}, such as {min(shared)!r}; take them out, or rename them if they are other people"
        )
    both = EmbeddingSet.from_arrays(
        np.concatenate([known.unit().vectors, theirs.vectors]),
        ["known"] * len(known) + ["attacker's"] * len(theirs),
        source=theirs.source,
    )
    twice = near_duplicates(both)
    if twice.across:
        raise UnfaceError(
            f"--attacker-data: {theirs.source}: {count(twice.across, 'pair')} of nearly the same vector (cosine ≥ "
            f"{twice.cosine}) here and in {known.source}: the attacker would learn from people it is judged on; take "
            "them out"
        )


def _names(people: EmbeddingSet) -> list[str]:
    return [people.names[code] for code in people.identities]


def _padded(column: NDArray[np.generic], theirs: EmbeddingSet, name: str) -> NDArray[np.generic]:
    """A column of the audited set with the attacker's own values behind it, or with nothing where there are none."""
    if name in theirs.labels and theirs.labels[name].shape[1:] == column.shape[1:]:
        return np.concatenate([column, theirs.labels[name]])
    if column.dtype.kind == "f":
        return np.concatenate([column, np.full((len(theirs), *column.shape[1:]), np.nan, column.dtype)])
    return np.concatenate([column.astype(object), np.full((len(theirs), *column.shape[1:]), None, object)])
