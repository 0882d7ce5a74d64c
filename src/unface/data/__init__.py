"""Embeddings and whose they are: reading, writing, curating, splitting, and sets of nobody with a known truth."""

from unface.data.columns import VectorFile, read_vector_file, write_vector_file
from unface.data.curate import Curation, curate, usual_images
from unface.data.embeddings import EmbeddingSet
from unface.data.read import Source, read_embeddings
from unface.data.space import Space, require_same_space
from unface.data.split import DEFAULT_SHARES, PAPER_SHARES, Role, Split, split_from_column, split_identities
from unface.data.synthetic import identity_basis, make_identities
from unface.data.write import write_embeddings

__all__ = [
    "DEFAULT_SHARES",
    "PAPER_SHARES",
    "Curation",
    "EmbeddingSet",
    "Role",
    "Source",
    "Space",
    "Split",
    "VectorFile",
    "curate",
    "identity_basis",
    "make_identities",
    "read_embeddings",
    "read_vector_file",
    "require_same_space",
    "split_from_column",
    "split_identities",
    "usual_images",
    "write_embeddings",
    "write_vector_file",
]
