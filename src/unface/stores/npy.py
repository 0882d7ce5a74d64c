"""A .npy file of vectors, read and written in blocks through memory maps, so it may be larger than memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.data.collection import Collection
from unface.data.embeddings import Columns
from unface.data.files import unopened
from unface.errors import UnfaceError, short_name
from unface.progress import Progress
from unface.stores.beside import BesideFile, new_array
from unface.stores.identity_file import IdentityFile
from unface.stores.ports import Erase, Holding, released_dim

_BLOCK_BYTES = 1 << 24


class NpyStore:
    """(n, d) float16, float32 or float64, which it stays. A killed ``stage`` begins again."""

    def __init__(self, path: Path, identities: str | None = None) -> None:
        self._file, self._identities = BesideFile(path), identities

    @contextmanager
    def reading(self, columns: Columns) -> Iterator[Collection]:
        """Identities are in a file beside it, row by row."""
        raw = _open(self._file.path)
        people = IdentityFile.of(self._identities, columns, self._file.name)

        def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.floating]]]:
            for rows in _blocks(raw):
                yield np.arange(rows.start, min(rows.stop, len(raw))), np.array(raw[rows])

        yield people.collection(len(raw), raw.shape[1], batches, self._file.sanitised_with())

    def inspect(self) -> Holding:
        rows, dim = _open(self._file.path).shape
        return self._file.holding(rows, dim)

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        return self._file.foresee(purge=purge, built=f"an array of {released_dim} columns")

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        if self._file.is_staged(mark):
            return
        with self._file.staging(mark) as unfinished:
            raw = _open(self._file.path)
            column_by_column = raw.flags.f_contiguous and not raw.flags.c_contiguous
            progress.start("erase", len(raw))
            shape = (len(raw), released_dim(erase, raw.shape[1]))
            out = new_array(unfinished, raw.dtype, shape, column_by_column=column_by_column)
            for rows in _blocks(raw):
                out[rows] = erase(raw[rows])
                progress.advance("erase", len(raw[rows]))
            out.flush()

    def staged(self) -> Iterator[NDArray[np.floating]]:
        vectors = _open(self._file.staged())
        for rows in _blocks(vectors):
            yield np.array(vectors[rows])

    def unmatched(self) -> int:
        return abs(len(_open(self._file.path)) - len(_open(self._file.staged())))

    def swap(self, mark: str) -> None:
        self._file.swap(mark)

    def purge(self) -> list[str]:
        return self._file.purge()


def _open(path: Path) -> "np.memmap[tuple[int, ...], np.dtype[np.floating]]":
    """A read-only memory map; refuses all but one array of vectors."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise unopened(path, error) from None
    # NumPy parses a header as Python, whose tokeniser and parser raise nearly anything; its own message advises to load
    # the file as a pickle, which would execute it.
    except Exception:
        raise UnfaceError(f"{short_name(path)}: not a .npy array of numbers; give one that numpy.save wrote") from None
    if not isinstance(array, np.memmap):
        raise UnfaceError(f"{short_name(path)}: a .npz archive; give it to `unface apply` as a file")
    if array.ndim != 2 or array.dtype.name not in {"float16", "float32", "float64"}:
        raise UnfaceError(
            f"{short_name(path)}: {array.dtype} of shape {array.shape};"
            " expected float16, float32 or float64 of shape (n, d)"
        )
    trailing = path.stat().st_size - array.offset - array.nbytes
    if trailing > 0:
        raise UnfaceError(
            f"{short_name(path)}: {trailing:,} bytes after its array would be lost; save one array in a file"
        )
    return array


def _blocks(vectors: NDArray[np.floating]) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // max(1, 8 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        yield slice(start, start + step)
