"""A .npy file to be sanitised, and what must be found in it and beside it."""

from pathlib import Path

import pytest

from tests.stores.contract import erased, projection, raw_vectors
from unface import UnfaceError
from unface.stores import sanitise_store
from unface.stores.npy import NpyStore

PROJECTION, OTHER = projection(), projection(seed=1)
MARK = PROJECTION.sha256
RAW = raw_vectors()
ERASED = erased(PROJECTION, RAW, "float32")


def sanitise(path: Path, *, purge: bool = False) -> None:
    sanitise_store(PROJECTION, NpyStore(path), purge=purge)


def refused(path: Path) -> str:
    """One line; and not a byte of the folder changed."""
    before = contents(path.parent)
    with pytest.raises(UnfaceError) as caught:
        sanitise(path, purge=True)
    assert contents(path.parent) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
