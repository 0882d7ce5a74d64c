"""Nobody is learned from and judged on: whether two sets share people or vectors."""

from unface.auditing.words import count
from unface.data import EmbeddingSet
from unface.errors import UnfaceError


def require_strangers(audited: EmbeddingSet, other: EmbeddingSet) -> None:
    """Nobody of one set may be in the other: an eraser would be fitted on someone it is judged on."""
    shared = set(other.names) & set(audited.names)
    if shared:
        raise UnfaceError(
            f"{other.source}: {count(len(shared), 'identity', 'identities')} of it also in the audited set, such as "
            f"{min(shared)!r}; nobody may have two roles: take them out, or rename them if they are other people"
        )
    require_other_vectors(audited, other)


def require_other_vectors(audited: EmbeddingSet, other: EmbeddingSet) -> None:
    """The same picture under another name, or under none, would be learned from and judged on all the same."""
    again = vectors_again(audited, other)
    if again:
        raise UnfaceError(
            f"{other.source}: {count(again, 'vector')} of it also in the audited set; what erasers learn from must be "
            "other pictures than those they are judged on: take them out"
        )


def vectors_again(one: EmbeddingSet, other: EmbeddingSet) -> int:
    """How many rows of the other set are, scaled to length one, a row of the first."""
    known = {row.tobytes() for row in one.unit().vectors}
    return sum(row.tobytes() in known for row in other.unit().vectors)
