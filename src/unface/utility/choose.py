"""Which tasks a set of vectors is good for, by the columns it has."""

from unface.data import EmbeddingSet
from unface.utility.copies import COLUMN, copy_task
from unface.utility.labelled import labelled_task
from unface.utility.outcome import Task


def utility_tasks(embeddings: EmbeddingSet, seed: int = 0) -> tuple[Task, ...]:
    """Copy detection where rows say in ``copy_of`` what they are copies of; else telling identities as classes."""
    if COLUMN in embeddings.labels:
        return (copy_task(embeddings),)
    return (labelled_task(embeddings, seed=seed),)
