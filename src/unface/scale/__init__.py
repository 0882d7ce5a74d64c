"""Projections applied to the collections people have, and fitted on them, file by file."""

from unface.output.place import Place, place_at
from unface.scale.executor import Executor, local_executor
from unface.scale.receipt import Receipt
from unface.scale.released import released_space, released_vectors
from unface.scale.sanitise import sanitise_directory, sanitise_file

__all__ = [
    "Executor",
    "Place",
    "Receipt",
    "local_executor",
    "place_at",
    "released_space",
    "released_vectors",
    "sanitise_directory",
    "sanitise_file",
]
