"""A FAISS index file, rebuilt from erased vectors with its type, settings and ids."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.data.files import reason, unopened
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.stores.beside import BesideFile
from unface.stores.ports import Erase, Holding
from unface.stores.room import new_array

if TYPE_CHECKING:
    import faiss


class FaissStore:
    """Flat, IVFFlat, HNSWFlat, refined by Flat, and any of them under IDMap; with ``lossy_ok`` SQ, PQ and LSH too.

    FAISS holds a whole index in memory while it builds one, and so does ``stage``: one at a time, with the erased
    vectors in a file meanwhile. Searches go on in the raw file until ``swap``. A killed ``stage`` begins anew.
    """

    def __init__(self, path: Path, *, lossy_ok: bool = False) -> None:
        try:
            import faiss  # noqa: F401
        except ImportError:
            raise UnfaceError("FAISS is not installed; pip install 'unface[stores]'") from None
        self._file = BesideFile(path)
        self._lossy_ok = lossy_ok

    def inspect(self) -> Holding:
        index = self._read(self._file.path, mapped=True)
        self._is_exact(index)
        return self._file.holding(index.ntotal, index.d)

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        import faiss

        from unface.stores.faiss_kinds import refill

        rows = self._rows(mark)
        exact = self._is_exact(self._read(self._file.path, mapped=True))
        if self._file.is_staged(mark) and (exact or rows.exists()):
            return
        with self._file.staging(mark) as unfinished:
            index = self._read(self._file.path)
            try:
                ids, erased = _erased_rows(index, erase, rows, progress)
                refill(index, ids, erased)
                faiss.write_index(index, str(unfinished))
            except RuntimeError as error:
                raise UnfaceError(f"{self._file.name}: cannot be rebuilt ({_said(error)})") from None
            finally:
                # Rows of codes are read again, to see that the codes are theirs.
                if exact or not unfinished.exists():
                    rows.unlink(missing_ok=True)

    def staged(self) -> Iterator[NDArray[np.floating]]:
        """Of an exact index its vectors; of codes the erased vectors that give just these codes."""
        from unface.stores.faiss_kinds import add, batches

        index = self._read(self._file.staged(), mapped=True)
        if self._is_exact(index):
            yield from (vectors for _, vectors in batches(index))
            return
        if self._file.staged() == self._file.path:
            return
        erased = np.load(self._rows(), mmap_mode="r")
        again = self._read(self._file.staged())
        again.reset()
        add(again, np.arange(len(erased)), erased)
        for (_, one), (_, other) in zip(batches(index), batches(again), strict=True):
            if not np.array_equal(one, other):
                raise UnfaceError(f"{self._file.name}: its codes are not those of the erased vectors; run it again")
        step = 1 << 14
        for start in range(0, len(erased), step):
            yield np.array(erased[start : start + step])

    def unmatched(self) -> int:
        from unface.stores.faiss_kinds import ids_of

        raw, staged = (
            np.sort(ids_of(self._read(path, mapped=True))) for path in (self._file.path, self._file.staged())
        )
        if np.array_equal(raw, staged):
            return 0
        return max(len(np.setxor1d(raw, staged)), abs(len(raw) - len(staged)), 1)

    def swap(self, mark: str) -> None:
        self._file.swap(mark)
        self._rows(mark).unlink(missing_ok=True)

    def purge(self) -> list[str]:
        return self._file.purge()

    def _rows(self, mark: str | None = None) -> Path:
        staged = self._file.staged(mark)
        return staged.with_name(f"{staged.name}.rows")

    def _is_exact(self, index: "faiss.Index") -> bool:
        from unface.stores.faiss_kinds import is_exact

        exact = is_exact(index, self._file.name)
        if exact:
            return True
        if not self._lossy_ok:
            raise UnfaceError(
                f"{self._file.name}: {type(index).__name__} keeps codes, so only rounded vectors can be erased, and its"
                " code book was learned from raw ones and must be learned again; build it anew from erased vectors, or"
                " allow this loss (--lossy-ok)"
            )
        return False

    def _read(self, path: Path, *, mapped: bool = False) -> "faiss.Index":
        import faiss

        try:
            with path.open("rb") as file:
                if file.read(2) == b"IB":
                    raise UnfaceError(f"{self._file.name}: a binary index; its bits are no vectors to project")
            return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
        except OSError as error:
            raise unopened(path, error) from None
        except RuntimeError as error:
            told = f"{self._file.name}: not a FAISS index that can be read ({_said(error)}); write or copy it again"
            raise UnfaceError(told) from None


def _erased_rows(
    index: "faiss.Index", erase: Erase, path: Path, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ids of an index in its own order, and its vectors, erased, in a file of which only pages are in memory."""
    from unface.stores.faiss_kinds import batches

    ids = np.empty(index.ntotal, np.int64)
    erased = new_array(path, np.dtype(np.float32), (index.ntotal, index.d))
    progress.start("erase", index.ntotal)
    start = 0
    for numbers, vectors in batches(index):
        rows = slice(start, start + len(vectors))
        ids[rows], erased[rows] = numbers, erase(vectors)
        start += len(vectors)
        progress.advance("erase", len(vectors))
    erased.flush()
    return ids, erased


def _said(error: RuntimeError) -> str:
    """FAISS puts function and file before what it has to say."""
    return reason(RuntimeError(str(error).rpartition(": ")[2]))
