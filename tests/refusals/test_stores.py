"""If these fail, a store that cannot be erased is changed, or a password is printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.refusals.table import Row, table
from tests.stores.contract import DIM, projection, raw_vectors
from unface.stores import open_store, sanitise_store
from unface.stores.faiss_index import FaissStore
from unface.stores.npy import NpyStore

RAW = raw_vectors()
PROJECTION = projection()


def url(name: str, text: str, *names: str, where: str | None = None) -> Row:
    """An address that cannot be meant."""
    return Row(f"url-{name}", lambda _: open_store(text), "store", where, names)


def npy(
    name: str,
    write: Callable[[Path], object],
    *names: str,
    code: str = "store",
    where: str = "faces.npy",
    to: str = "faces.npy",
) -> Row:
    """A file that is not erased; not a byte of its folder changes."""

    def act(folder: Path) -> None:
        sanitise_store(PROJECTION, NpyStore(folder / to), purge=True)

    return Row(f"npy-{name}", act, code, where, names, build=lambda folder: write(folder / to))


def faiss(
    name: str,
    write: Callable[[Path], object],
    *names: str,
    code: str = "store",
    where: str | None = "faces.index",
    lossy_ok: bool = False,
) -> Row:
    """An index that is not erased; not a byte of its folder changes."""

    def act(folder: Path) -> None:
        sanitise_store(PROJECTION, FaissStore(folder / "faces.index", lossy_ok=lossy_ok), purge=True)

    return Row(f"faiss-{name}", act, code, where, names, build=lambda folder: write(folder / "faces.index"))


def saved(array: Any, beside: str = "", content: bytes = b"") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        np.save(path, array, allow_pickle=True)
        if beside:
            path.with_name(beside).write_bytes(content)

    return write


def twice(path: Path) -> None:
    np.save(path, RAW)
    with path.open("ab") as file:
        np.save(file, RAW[:2])


def unparsable(shape: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        np.save(path, np.ones((5, 3), np.float32))
        path.write_bytes(path.read_bytes().replace(b"(5, 3)", shape))

    return write


def linked(beside: str, target: str) -> Callable[[Path], None]:
    """A raw file that is a link to the live one would be gone after the swap."""

    def write(path: Path) -> None:
        np.save(path, RAW)
        path.with_name("elsewhere").write_bytes(path.read_bytes())
        path.with_name(beside).symlink_to(path.with_name(target))

    return write


def index(factory: str, rows: int = 600, change: Callable[[Any], None] = lambda _: None) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import faiss as library

        vectors = raw_vectors(rows)
        made = library.index_factory(DIM, factory)
        made.train(vectors)
        made.add_with_ids(vectors, np.arange(rows)) if "IDMap" in factory else made.add(vectors)
        change(made)
        library.write_index(made, str(path))

    return write


def trained(factory: str) -> Callable[[Path], None]:
    """Without vectors: all it holds is a book of codes that was learned from raw ones."""

    def write(path: Path) -> None:
        import faiss as library

        made = library.index_factory(DIM, factory)
        made.train(raw_vectors(600))
        library.write_index(made, str(path))

    return write


def binary(path: Path) -> None:
    import faiss as library

    library.write_index_binary(library.IndexBinaryFlat(64), str(path))


LOSSY = ("SQ8", "SQfp16", "PQ8x4np", "LSH", "IVF5,SQ8", "IVF5,PQ8x4np", "HNSW8_SQ8", "IDMap,PQ8x4np")

test_refused = table(
    "stores",
    url("of-a-file", "faces.npy", "faiss:, npy:", where="faces.npy"),
    url("of-another-store", "mysql://host/db", where="mysql"),
    url("without-path", "npy:", where="npy"),
    url("option", "npy:faces.npy?table=a", "table", where="npy"),
    url("lance-without-table", "lancedb:folder", "?table=NAME", where="lancedb"),
    url("lance-option", "lancedb:folder?table=a&kolumn=b", "kolumn", where="lancedb"),
    url("qdrant-without-collection", "qdrant:folder", where="qdrant"),
    url("postgres-without-table", "postgresql://me:secret@host/db", where="postgresql"),
    url("table-twice", "postgresql://me:secret@host/db?table=a&table=b", "table", where="postgresql"),
    url("hash", "npy:faces#1.npy", "%23", where="npy"),
    url("bracket", "npy://[faces.npy", "%5B", where="--store"),
    npy("raw-of-another", saved(RAW, "faces.npy.raw", b"theirs"), "faces.npy.raw"),
    npy("two-arrays", twice, "384 bytes"),
    npy("one-vector", saved(RAW[0]), "(32,)", "(n, d)"),
    npy("int8", saved(RAW.astype(np.int8)), "int8", "(300, 32)"),
    npy("objects", saved(np.array([{"a": 1}]))),
    npy("empty", lambda path: path.write_bytes(b"")),
    npy("npz", lambda path: np.savez(path, vectors=RAW), where="faces.npz", to="faces.npz"),
    npy("sidecar", saved(RAW, "faces.npy.unface.json", b"{}"), where="faces.npy.unface.json"),
    npy("missing", lambda path: None, code="file"),
    npy("header-of-quotes", unparsable(b'"""   ')),
    npy("header-of-a-bracket", unparsable(b"(5, 3[")),
    *(
        npy(f"link-{name.split('.')[2]}-to-{target}", linked(name, target), code="output", where=name)
        for name in ("faces.npy.raw", "faces.npy.unface.json")
        for target in ("faces.npy", "elsewhere", "nothing")
    ),
    faiss("pca", index("PCA8,Flat")),
    faiss("fast-scan", index("PQ8x4fs"), "IndexPQFastScan"),
    faiss("nsg", index("NSG8,Flat"), "IndexNSGFlat"),
    faiss("multi-index", index("IMI2x2,Flat"), "MultiIndexQuantizer"),
    faiss("binary", binary),
    faiss("words", lambda path: path.write_bytes(b"not an index at all")),
    faiss("empty", lambda path: path.write_bytes(b"")),
    faiss("missing", lambda path: None, code="file"),
    faiss("a-folder", Path.mkdir, code="file"),
    *(faiss(f"lossy-{factory}", index(factory)) for factory in LOSSY),
    *(
        faiss(f"without-vectors-{factory}", trained(factory), lossy_ok=True)
        for factory in ("PQ8x4np", "IVF5,SQ8", "PQ8x4np,RFlat")
    ),
)
