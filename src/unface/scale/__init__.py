"""Projections applied to the collections people have."""

from unface.scale.file import Sanitised, sanitise_file
from unface.scale.released import released_space, released_vectors

__all__ = ["Sanitised", "released_space", "released_vectors", "sanitise_file"]
