"""A FAISS index file, rebuilt from erased vectors with its type, settings and ids, also in another dimension."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unface.data.collection import Collection
from unface.data.embeddings import Columns
from unface.data.files import unopened
from unface.errors import UnfaceError, reason
from unface.output.write import new_file
from unface.progress import Progress
from unface.seeds import stream
from unface.stores.beside import BesideFile, new_array
from unface.stores.identity_file import IdentityFile
from unface.stores.ports import Erase, Holding, released_dim
from unface.stores.recall import index_recall

with suppress(ImportError):  # FaissStore says what to install
    import faiss

# The stubs of FAISS leave out most attributes of the kinds of indexes.
Index: TypeAlias = Any
Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]

_FLAT = {"IndexFlat", "IndexFlatL2", "IndexFlatIP"}
_EXACT = {*_FLAT, "IndexHNSWFlat", "IndexIVFFlat"}
_LOSSY = {"IndexScalarQuantizer", "IndexPQ", "IndexLSH", "IndexHNSWSQ", "IndexHNSWPQ"}
_LOSSY_LISTS = {"IndexIVFScalarQuantizer", "IndexIVFPQ"}
_LISTS = {"IndexIVFFlat", *_LOSSY_LISTS}
_ID_MAPS = {"IndexIDMap", "IndexIDMap2"}
_BATCH_BYTES = 1 << 24
# FAISS itself trains on at most this many points for each centroid, and for a code book of 256.
_POINTS_PER_CENTROID, _POINTS_PER_CODE_BOOK = 256, 1 << 16


class FaissStore:
    """Flat, IVFFlat, HNSWFlat, refined by Flat, and any of them under IDMap; with ``lossy_ok`` SQ, PQ and LSH too.

    FAISS holds a whole index in memory while it builds one, and so does ``stage``: one at a time, with the erased
    vectors in a file meanwhile. Searches use the raw file until ``swap``. A killed ``stage`` begins again.
    """

    def __init__(self, path: Path, *, lossy_ok: bool = False, identities: str | None = None) -> None:
        try:
            import faiss  # noqa: F401
        except ImportError:
            raise UnfaceError("FAISS is not installed; pip install 'unface[stores]'") from None
        self._file = BesideFile(path)
        self._lossy_ok, self._identities = lossy_ok, identities

    @contextmanager
    def reading(self, columns: Columns) -> Iterator[Collection]:
        """Identities are in a file beside it, by the ids of the index."""
        index = self._read(self._file.path, mapped=True)
        exact = _is_exact(index, self._file.name)
        people = IdentityFile.of(self._identities, columns, self._file.name)
        found = people.collection(index.ntotal, index.d, lambda: _batches(index), self._file.sanitised_with())
        rounded = f"{type(index).__name__} keeps codes: what they decode to was read, not the vectors that were added"
        yield found if exact else replace(found, notes=(*found.notes, rounded))

    def inspect(self) -> Holding:
        index = self._read(self._file.path, mapped=True)
        self._is_exact(index)
        return self._file.holding(index.ntotal, index.d)

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        index = self._read(self._file.path, mapped=True)
        built = f"{type(index).__name__} of {released_dim} dimensions is built again, with its settings and ids"
        return self._file.foresee(purge=purge, built=built)

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        rows = self._rows(mark)
        exact = self._is_exact(self._read(self._file.path, mapped=True))
        if self._file.is_staged(mark) and (exact or rows.exists()):
            return
        with self._file.staging(mark) as unfinished:
            index = self._read(self._file.path)
            try:
                ids, erased = _erased_rows(index, erase, rows, progress)
                if erased.shape[1] != index.d:
                    index = resized(index, erased.shape[1], self._file.name)
                _refill(index, ids, erased)
                new_file(unfinished, private=True)
                faiss.write_index(index, str(unfinished))
            except RuntimeError as error:
                raise UnfaceError(f"{self._file.name}: cannot be rebuilt ({_faiss_reason(error)})") from None
            finally:
                # The rows of codes are needed once more, to check that the codes are theirs.
                if exact or not unfinished.exists():
                    rows.unlink(missing_ok=True)

    def staged(self) -> Iterator[NDArray[np.floating]]:
        """The vectors of an exact index; for codes, the erased vectors, once they give exactly these codes again."""
        index = self._read(self._file.staged(), mapped=True)
        if self._is_exact(index):
            yield from (vectors for _, vectors in _batches(index))
            return
        if self._file.staged() == self._file.path:
            return
        erased = np.load(self._rows(), mmap_mode="r")
        again = self._read(self._file.staged())
        again.reset()
        _add(again, np.arange(len(erased)), erased)
        for (_, one), (_, other) in zip(_batches(index), _batches(again), strict=True):
            if not np.array_equal(one, other):
                raise UnfaceError(f"{self._file.name}: its codes are not those of the erased vectors; run it again")
        step = 1 << 14
        for start in range(0, len(erased), step):
            yield np.array(erased[start : start + step])

    def unmatched(self) -> int:
        raw, staged = (
            np.sort(_ids_of(self._read(path, mapped=True))) for path in (self._file.path, self._file.staged())
        )
        if np.array_equal(raw, staged):
            return 0
        return max(len(np.setxor1d(raw, staged)), abs(len(raw) - len(staged)), 1)

    def recall(self) -> float | None:
        index = self._read(self._file.path)
        if not self._is_exact(index) or not ("HNSW" in _kinds(index) or "IVF" in _kinds(index)):
            return None
        l2 = index.metric_type == faiss.METRIC_L2
        return index_recall(
            lambda: _batches(index), index.ntotal, lambda queries, k: np.asarray(index.search(queries, k)[1]), l2=l2
        )

    def swap(self, mark: str) -> None:
        self._file.swap(mark)

    def purge(self) -> list[str]:
        return self._file.purge()

    def _rows(self, mark: str | None = None) -> Path:
        staged = self._file.staged(mark)
        return staged.with_name(f"{staged.name}.rows")

    def _is_exact(self, index: Index) -> bool:
        exact = _is_exact(index, self._file.name)
        if not exact and not self._lossy_ok:
            raise UnfaceError(
                f"{self._file.name}: {type(index).__name__} keeps codes, so only rounded vectors can be erased, and its"
                " code book was learned from raw vectors and must be learned again; build it again from erased"
                " vectors, or accept this loss (--lossy-ok)"
            )
        return exact

    def _read(self, path: Path, *, mapped: bool = False) -> Index:
        try:
            with path.open("rb") as file:
                if file.read(2) == b"IB":
                    raise UnfaceError(f"{self._file.name}: a binary index; its bits are not vectors to project")
                status = os.fstat(file.fileno())
            problem = _read_problem(path, (status.st_ino, status.st_size, status.st_mtime_ns))
            if problem is not None:
                raise RuntimeError(problem)
            return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        except OSError as error:
            raise unopened(path, error) from None
        except RuntimeError as error:
            raise UnfaceError(
                f"{self._file.name}: not a FAISS index that can be read ({_faiss_reason(error)});"
                " write or copy it again"
            ) from None


@lru_cache(maxsize=64)
def _read_problem(path: Path, stamp: tuple[int, int, int]) -> str | None:
    """Why a file cannot be read, from a process of its own: FAISS crashes on some damaged files. ``stamp`` dates it."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("faiss_trial.py")), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None
    return done.stdout.strip() or "reading it crashed FAISS, so it is cut off or damaged"


def _erased_rows(index: Index, erase: Erase, path: Path, progress: Progress) -> tuple[Ids, Vectors]:
    """The ids of an index in its own order, and its erased vectors as a memory map of a file."""
    ids = np.empty(index.ntotal, np.int64)
    erased = new_array(path, np.dtype(np.float32), (index.ntotal, released_dim(erase, index.d)))
    progress.start("erase", index.ntotal)
    start = 0
    for batch_ids, vectors in _batches(index):
        rows = slice(start, start + len(vectors))
        ids[rows], erased[rows] = batch_ids, erase(vectors)
        start += len(vectors)
        progress.advance("erase", len(vectors))
    erased.flush()
    return ids, erased


def _faiss_reason(error: RuntimeError) -> str:
    """FAISS puts function and file in front of its message."""
    return reason(RuntimeError(str(error).rpartition(": ")[2]))


def _is_exact(index: Index, where: str) -> bool:
    """Whether vectors are kept as they were given, rather than as codes; refuses what cannot be rebuilt."""
    name = type(index).__name__
    if not _is_consistent(index):
        raise UnfaceError(f"{where}: its header does not match what it holds, so it is damaged; write or copy it again")
    if name in _ID_MAPS:
        inner = faiss.downcast_index(index.index)
        exact = _is_exact(inner, where)
        if _ids_of(inner).max(initial=-1) >= index.id_map.size():
            raise UnfaceError(f"{where}: its ids and its vectors do not match, as after removals; build it again")
        return exact
    if name == "IndexRefineFlat":
        # The base index is rebuilt from the vectors that the refining one keeps whole.
        _is_exact(faiss.downcast_index(index.base_index), where)
        return _is_exact(faiss.downcast_index(index.refine_index), where)
    if name == "IndexPreTransform":
        raise UnfaceError(
            f"{where}: its vectors are behind a transform, which was learned on raw vectors or changes only queries,"
            " and projecting only queries protects nobody; build an index without it and sanitise that"
        )
    if name not in _EXACT | _LOSSY | _LOSSY_LISTS:
        raise UnfaceError(f"{where}: {name} cannot be rebuilt from its own vectors; build it again from erased ones")
    if name not in _EXACT and index.is_trained and index.ntotal == 0:
        raise UnfaceError(f"{where}: holds no vectors, only what was learned from raw ones; create it again")
    if name in _LISTS:
        _require_lists(index, where)
    return name in _EXACT


def _is_consistent(index: Index) -> bool:
    """Whether its counts and dimensions agree; FAISS reads files where they do not, and crashes or hangs later."""
    name = type(index).__name__
    if index.d < 1 or index.ntotal < 0:
        return False
    if name in _FLAT:
        return bool(index.code_size == 4 * index.d and index.codes.size() == index.ntotal * index.code_size)
    if name in _LOSSY and hasattr(index, "codes"):
        return bool(index.codes.size() == index.ntotal * index.code_size)
    if name in _LISTS:
        flat = name != "IndexIVFFlat" or index.code_size == 4 * index.d
        sizes = (index.invlists.nlist, index.invlists.code_size) == (index.nlist, index.code_size)
        centroids = index.quantizer.ntotal in ((index.nlist,) if index.is_trained else (0, index.nlist))
        return bool(flat and sizes and centroids and index.nlist > 0 and index.quantizer.d == index.d)
    wrapped = {"IndexRefineFlat": ("base_index", "refine_index"), **dict.fromkeys(_ID_MAPS, ("index",))}
    inner = [getattr(index, part) for part in wrapped.get(name, ("storage",) if name.startswith("IndexHNSW") else ())]
    return all((part.d, part.ntotal) == (index.d, index.ntotal) for part in inner)


def _require_lists(index: Index, where: str) -> None:
    lists = type(faiss.downcast_InvertedLists(index.invlists)).__name__
    if lists != "ArrayInvertedLists":
        raise UnfaceError(f"{where}: its inverted lists are {lists}, in files of their own; build it again in one file")
    kept = sum(index.invlists.list_size(number) for number in range(index.nlist))
    if kept != index.ntotal:
        raise UnfaceError(
            f"{where}: counts {index.ntotal:,} vectors and keeps {kept:,}; FAISS loses those with NaN, build it again"
        )
    coarse = type(faiss.downcast_index(index.quantizer)).__name__
    if coarse not in _FLAT | {"IndexHNSWFlat"}:
        raise UnfaceError(f"{where}: its lists are chosen by {coarse}, which cannot be trained again; build it again")


def _ids_of(index: Index) -> Ids:
    """In the order of the index, which means nothing to a user."""
    name = type(index).__name__
    if name in _ID_MAPS:
        return np.array(faiss.vector_to_array(index.id_map), np.int64)
    if name in _LISTS:
        return np.concatenate([np.empty(0, np.int64), *(_list_ids(index, number) for number in range(index.nlist))])
    return np.arange(index.ntotal, dtype=np.int64)


def _batches(index: Index) -> Iterator[tuple[Ids, Vectors]]:
    """(ids, vectors) in the order in which the index keeps them."""
    name = type(index).__name__
    if name in _ID_MAPS:
        outer = _ids_of(index)
        for ids, vectors in _batches(faiss.downcast_index(index.index)):
            yield outer[ids], vectors
    elif name == "IndexRefineFlat":
        yield from _batches(faiss.downcast_index(index.refine_index))
    elif name in _LISTS:
        yield from _list_batches(index)
    else:
        step = _batch_rows(index)
        for start in range(0, index.ntotal, step):
            count = min(step, index.ntotal - start)
            yield np.arange(start, start + count), index.reconstruct_n(start, count)


def _list_batches(index: Index) -> Iterator[tuple[Ids, Vectors]]:
    """Several lists at a time: there may be a hundred thousand of a few vectors each."""
    lists, step = index.invlists, _batch_rows(index)
    ids: list[Ids] = []
    codes: list[NDArray[np.uint8]] = []
    for number in range(index.nlist):
        size = lists.list_size(number)
        if size:
            ids.append(_list_ids(index, number))
            kept = faiss.rev_swig_ptr(lists.get_codes(number), size * index.code_size).reshape(size, -1)
            # A standalone code begins with the number of its list.
            head = np.frombuffer(number.to_bytes(8, "little"), np.uint8)[: index.coarse_code_size()]
            codes.append(np.hstack([np.broadcast_to(head, (size, len(head))), kept]))
        if sum(map(len, codes)) >= step:
            yield np.concatenate(ids), index.sa_decode(np.concatenate(codes))
            ids, codes = [], []
    if codes:
        yield np.concatenate(ids), index.sa_decode(np.concatenate(codes))


def _list_ids(index: Index, number: int) -> Ids:
    ids: Ids = faiss.rev_swig_ptr(index.invlists.get_ids(number), index.invlists.list_size(number)).copy()
    return ids


def _batch_rows(index: Index) -> int:
    return max(1, _BATCH_BYTES // (4 * max(1, int(index.d))))


def _refill(index: Index, ids: Ids, vectors: Vectors) -> None:
    """Replace an index's vectors; whatever it learned from the old ones is learned again from these.

    ``vectors`` may be a memory map. Without any there is nothing to learn from, and lists are left untrained.
    """
    lists = _lists_of(index)
    direct_map = None if lists is None else lists.direct_map.type
    index.reset()
    if lists is not None:
        # Centroids are means of raw vectors; a reset quantiser learns new ones.
        lists.quantizer.reset()
        lists.is_trained = False
        # The file does not say how they were learned: as FAISS does by default.
        lists.cp.spherical = lists.metric_type == faiss.METRIC_INNER_PRODUCT
        lists.cp.min_points_per_centroid = 1
        # FAISS cannot maintain a map from ids to places while rows are added with ids of their own.
        lists.set_direct_map_type(lists.direct_map.NoMap)
    if len(vectors):
        index.train(_training_sample(vectors, 0 if lists is None else lists.nlist))
    elif lists is not None:
        index.is_trained = False
    _add(index, ids, vectors)
    if lists is not None and direct_map != lists.direct_map.NoMap:
        lists.set_direct_map_type(direct_map)


def _add(index: Index, ids: Ids, vectors: Vectors) -> None:
    """An index without ids of its own numbers vectors in the order in which they come."""
    with_ids = type(index).__name__ in _ID_MAPS | _LISTS
    step = _batch_rows(index)
    for start in range(0, len(vectors), step):
        rows = slice(start, start + step)
        if with_ids:
            index.add_with_ids(np.ascontiguousarray(vectors[rows]), ids[rows])
        else:
            index.add(np.ascontiguousarray(vectors[rows]))


def _kinds(index: Index) -> str:
    name = type(index).__name__
    return name + _kinds(faiss.downcast_index(index.index)) if name in _ID_MAPS else name


def _lists_of(index: Index) -> Index | None:
    name = type(index).__name__
    if name in _ID_MAPS:
        return _lists_of(faiss.downcast_index(index.index))
    if name == "IndexRefineFlat":
        return _lists_of(faiss.downcast_index(index.base_index))
    return index if name in _LISTS else None


def _training_sample(vectors: Vectors, centroids: int) -> Vectors:
    """As many as training uses; if there are fewer than centroids, they are repeated."""
    enough = max(_POINTS_PER_CENTROID * centroids, _POINTS_PER_CODE_BOOK)
    if len(vectors) > enough:
        rows = np.sort(stream(0, "faiss training").choice(len(vectors), enough, replace=False))
        return np.ascontiguousarray(vectors[rows])
    return np.resize(vectors, (max(len(vectors), centroids), vectors.shape[1]))


with suppress(ImportError):  # FaissStore says what to install
    import faiss


def resized(index: Index, dim: int, where: str) -> Index:
    """With the same kind, metric and settings, of those kinds that ``FaissStore`` accepts; untrained."""
    name, metric = type(index).__name__, index.metric_type
    kinds: Any = faiss
    made: Index
    match name:
        case "IndexIDMap" | "IndexIDMap2":
            made = type(index)(resized(faiss.downcast_index(index.index), dim, where))
        case "IndexRefineFlat":
            made = faiss.IndexRefineFlat(resized(faiss.downcast_index(index.base_index), dim, where))
            made.k_factor = index.k_factor
        case "IndexFlat" | "IndexFlatL2" | "IndexFlatIP":
            made = faiss.IndexFlat(dim, metric)
        case "IndexHNSWFlat":
            made = faiss.IndexHNSWFlat(dim, index.hnsw.nb_neighbors(1), metric)
        case "IndexHNSWSQ":
            storage: Index = faiss.downcast_index(index.storage)
            made = faiss.IndexHNSWSQ(dim, storage.sq.qtype, index.hnsw.nb_neighbors(1), metric)
        case "IndexHNSWPQ":
            inner: Index = faiss.downcast_index(index.storage)
            codes = inner.pq
            made = kinds.IndexHNSWPQ(dim, _parts(codes, dim, where), index.hnsw.nb_neighbors(1), codes.nbits, metric)
        case "IndexScalarQuantizer":
            made = faiss.IndexScalarQuantizer(dim, index.sq.qtype, metric)
        case "IndexPQ":
            made = faiss.IndexPQ(dim, _parts(index.pq, dim, where), index.pq.nbits, metric)
        case "IndexLSH":
            # Without a rotation there is one bit for a coordinate, and no more bits than coordinates.
            bits = index.nbits if index.rotate_data else min(index.nbits, dim)
            made = faiss.IndexLSH(dim, bits, index.rotate_data, index.train_thresholds)
        case "IndexIVFFlat" | "IndexIVFScalarQuantizer" | "IndexIVFPQ":
            made = _lists(index, dim, where)
        case _:
            raise UnfaceError(f"{where}: {name} cannot be built for {dim} dimensions; pass --keep-dimension")
    made.metric_arg = index.metric_arg
    if name.startswith("IndexHNSW"):
        made.hnsw.efConstruction, made.hnsw.efSearch = index.hnsw.efConstruction, index.hnsw.efSearch
    return made


def _lists(index: Index, dim: int, where: str) -> Index:
    coarse = resized(faiss.downcast_index(index.quantizer), dim, where)
    metric = index.metric_type
    made: Index
    match type(index).__name__:
        case "IndexIVFFlat":
            made = faiss.IndexIVFFlat(coarse, dim, index.nlist, metric)
        case "IndexIVFScalarQuantizer":
            made = faiss.IndexIVFScalarQuantizer(coarse, dim, index.nlist, index.sq.qtype, metric, index.by_residual)
        case _:
            made = faiss.IndexIVFPQ(coarse, dim, index.nlist, _parts(index.pq, dim, where), index.pq.nbits, metric)
            made.by_residual = index.by_residual
    made.nprobe = index.nprobe
    made.set_direct_map_type(index.direct_map.type)
    return made


def _parts(codes: Index, dim: int, where: str) -> int:
    """Of a product quantiser, which cuts vectors into parts of equal length."""
    parts = int(codes.M)
    if dim % parts:
        raise UnfaceError(
            f"{where}: its codes are of {parts} equal parts of a vector, which {dim} dimensions do not have;"
            " pass --keep-dimension"
        )
    return parts
