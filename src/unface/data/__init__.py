"""Embeddings and pictures and whose they are: reading, writing, curating, splitting, and sets of nobody."""

from unface.data.curate import Curation, curate, usual_images
from unface.data.decode import BadPicture, decode
from unface.data.embedded import EMBEDDED_ENCODERS, nobody, things
from unface.data.embeddings import EmbeddingSet
from unface.data.images import ImageRef, ImageSet
from unface.data.read import Source, read_embeddings
from unface.data.read_images import read_images
from unface.data.space import Space, require_same_space
from unface.data.split import (
    DEFAULT_SHARES,
    PAPER_SHARES,
    Role,
    Split,
    split_from_column,
    split_identities,
    split_order,
)
from unface.data.synthetic import identity_basis, make_identities
from unface.data.vector_arrays import read_vector_arrays, write_vector_arrays
from unface.data.write import write_embeddings

__all__ = [
    "DEFAULT_SHARES",
    "EMBEDDED_ENCODERS",
    "PAPER_SHARES",
    "BadPicture",
    "Curation",
    "EmbeddingSet",
    "ImageRef",
    "ImageSet",
    "Role",
    "Source",
    "Space",
    "Split",
    "curate",
    "decode",
    "identity_basis",
    "make_identities",
    "nobody",
    "read_embeddings",
    "read_images",
    "read_vector_arrays",
    "require_same_space",
    "split_from_column",
    "split_identities",
    "split_order",
    "things",
    "usual_images",
    "write_embeddings",
    "write_vector_arrays",
]
