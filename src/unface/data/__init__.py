"""Embeddings and pictures with known identities: reading, writing, curating, splitting, and synthetic sets."""

from unface.data.curate import Curation, curate, usual_images
from unface.data.embeddings import EmbeddingSet, Space, require_same_space
from unface.data.images import BadPicture, ImageRef, ImageSet, decode
from unface.data.parquet import write_embeddings
from unface.data.read import Source, is_store, opened_archive, read_embeddings
from unface.data.read_images import NoIdentities, read_images
from unface.data.split import (
    DEFAULT_SHARES,
    PAPER_SHARES,
    Role,
    Split,
    split_from_column,
    split_identities,
    split_order,
)
from unface.data.synthetic import EMBEDDED_ENCODERS, identity_basis, make_identities, nobody, things

__all__ = [
    "DEFAULT_SHARES",
    "EMBEDDED_ENCODERS",
    "PAPER_SHARES",
    "BadPicture",
    "Curation",
    "EmbeddingSet",
    "ImageRef",
    "ImageSet",
    "NoIdentities",
    "Role",
    "Source",
    "Space",
    "Split",
    "curate",
    "decode",
    "identity_basis",
    "is_store",
    "make_identities",
    "nobody",
    "opened_archive",
    "read_embeddings",
    "read_images",
    "require_same_space",
    "split_from_column",
    "split_identities",
    "split_order",
    "things",
    "usual_images",
    "write_embeddings",
]
