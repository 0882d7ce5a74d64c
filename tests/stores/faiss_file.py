"""FAISS index files, made, sanitised and refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stores.contract import Vectors, projection, raw_vectors
from unface import UnfaceError
from unface.stores import sanitise_store
from unface.stores.faiss_index import FaissStore

faiss = pytest.importorskip("faiss", reason="faiss is not installed")
PROJECTION = projection()
RAW = raw_vectors(600)
ERASED = PROJECTION.apply(RAW)
IP, L2 = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2


def written(index: Any, path: Path, vectors: Vectors = RAW, ids: Any = None) -> Path:
    index.train(vectors)
    index.add(vectors) if ids is None else index.add_with_ids(vectors, ids)
    faiss.write_index(index, str(path))
    return path


def sanitised(path: Path, **options: bool) -> Any:
    sanitise_store(PROJECTION, FaissStore(path, **options), purge=True)
    return faiss.read_index(str(path))


def left(vectors: Any) -> float:
    """Of length one as they are, how much is left along what was removed."""
    return float(np.abs(np.asarray(vectors, np.float64) @ PROJECTION.directions).max())


def refused(path: Path, **options: bool) -> str:
    """One line; and not a byte of the folder changed."""
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    with pytest.raises(UnfaceError) as caught:
        sanitise_store(PROJECTION, FaissStore(path, **options), purge=True)
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before
    assert "\n" not in str(caught.value)
    return str(caught.value)
