"""People who do not exist, in the package itself: what real encoders make of portraits that a generator drew."""

from dataclasses import replace
from importlib.resources import as_file, files

from unface.data.embeddings import EmbeddingSet
from unface.data.read import read_embeddings
from unface.errors import UnfaceError

EMBEDDED_ENCODERS = ("sface", "sscd-int8", "dinov2-s-focus")
"""A face recogniser and two general encoders."""


def nobody(encoder: str) -> EmbeddingSet:
    """480 people × 12 portraits as one of ``EMBEDDED_ENCODERS`` sees them (docs/data.md)."""
    return _read("people", encoder, "people who do not exist")


def things(encoder: str) -> EmbeddingSet:
    """CIFAR-10's ten classes × 100 pictures by the same encoder, column ``split``: what vectors are good for."""
    return _read("things", encoder, "CIFAR-10")


def _read(what: str, encoder: str, source: str) -> EmbeddingSet:
    if encoder not in EMBEDDED_ENCODERS:
        raise UnfaceError(f"no embedded vectors of {encoder!r}; choose from {', '.join(EMBEDDED_ENCODERS)}")
    with as_file(files("unface.data") / "nobody" / f"{what}-{encoder}.parquet") as path:
        return replace(read_embeddings(path), source=source)
