"""A store that is one file: its erased copy is staged beside it and renamed over it; the raw file stays for a purge."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.lib.format import open_memmap
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface.data.files import unopened
from unface.errors import UnfaceError, reason, short_name
from unface.output.lock import file_lock
from unface.output.taken import refuse_link
from unface.output.write import SEE_TO_IT, new_file, publish, sync, write_file
from unface.stores.ports import Holding


class _Stamp(BaseModel):
    """Differs after somebody has written to the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int
    written_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "_Stamp":
        stat = path.stat()
        return cls(size=stat.st_size, written_ns=stat.st_mtime_ns, inode=stat.st_ino)


class _Sidecar(BaseModel):
    """``faces.index.unface.json``: what is staged, or what has replaced the raw file."""

    # Earlier versions also wrote ``swapped``, after the swap: a run that was killed in between left it wrong.
    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["unface.beside/1"] = Field("unface.beside/1", alias="schema")
    projection_sha256: str
    erased_sha256: str
    """Of the staged file's bytes; renaming keeps them, so they tell an erased file from a raw one after any crash."""
    raw: _Stamp


class BesideFile:
    """The files of one store: ``name``, ``.name.unface-<mark>`` while staged, ``name.raw``, ``name.unface.json``.

    Wherever a run was killed, the files show how far it came: a staged file counts once the sidecar has its hash, and
    the live file is erased if it has that hash. The rename that swaps also takes the staged name away, so nothing has
    to be written afterwards: a sidecar without its staged file means that the live file was erased once.
    """

    def __init__(self, path: Path) -> None:
        # A link itself would be replaced, and its target would stay raw.
        self.path = path.resolve()
        self.name = short_name(path)
        self.raw = self.path.with_name(f"{self.path.name}.raw")
        self._sidecar = self.path.with_name(f"{self.path.name}.unface.json")
        self._staged_prefix = f".{self.path.name}.unface-"

    def holding(self, rows: int, dim: int) -> Holding:
        """For this many vectors; the rest is read from the files beside."""
        mark = self.sanitised_with()
        return Holding(self.name, rows, dim, mark, raw_kept=mark is not None and self.raw.exists(), resizable=True)

    def foresee(self, *, purge: bool, built: str) -> list[str]:
        """The steps of a run; ``built`` says what the new file is."""
        raw = "which is then removed" if purge else "which stays until --purge"
        return [
            f"Stage: {built}, in a new file beside {self.name}, which stays in use.",
            "Read back: every vector of the new file is checked.",
            f"Swap: one rename puts it in the place of {self.name}. Programs that have it open must open it again.",
            f"Raw vectors: the old file becomes {self.raw.name}, {raw}. {self._sidecar.name} records the projection.",
        ]

    def sanitised_with(self) -> str | None:
        """Hash of the projection that erased the live file; refuses if it is unclear or data would be lost."""
        sidecar = self._read_sidecar()
        # A link to the live file would pass for the raw one.
        refuse_link(self.raw)
        if sidecar is not None and _sha256(self.path) == sidecar.erased_sha256:
            return sidecar.projection_sha256
        if sidecar is not None and self._was_swapped(sidecar):
            raise UnfaceError(
                f"{self.name}: was written to since it was sanitised, so it may hold raw and erased vectors;"
                f" start from raw ones, and remove {self._sidecar.name}"
            )
        if self.raw.exists() and not _same_bytes(self.raw, self.path):
            raise UnfaceError(f"{self.name}: {self.raw.name} is in the way; move it elsewhere")
        return None

    def is_staged(self, mark: str) -> bool:
        """Whether it is staged completely with this mark, from the raw file as it is now."""
        sidecar = self._read_sidecar()
        refuse_link(self.staged(mark))
        return (
            sidecar is not None
            and sidecar.projection_sha256 == mark
            and sidecar.raw == _Stamp.of(self.path)
            and self.staged(mark).exists()
            and _sha256(self.staged(mark)) == sidecar.erased_sha256
        )

    def staged(self, mark: str | None = None) -> Path:
        """The staged file of a mark; without one, where the vectors that were staged last are now."""
        if mark is None:
            sidecar = self._read_sidecar()
            if sidecar is None:
                raise UnfaceError(f"{self.name}: nothing is staged; run it again")
            mark = sidecar.projection_sha256
            if not self.staged(mark).exists():
                return self.path
        return self.path.with_name(f"{self._staged_prefix}{mark[:8]}")

    @contextmanager
    def staging(self, mark: str) -> Iterator[Path]:
        """A name for the erased copy, staged when the block ends. The raw file must be read inside the block."""
        with self._one_line_errors("staged beside it"), self._locked():
            if self.sanitised_with() is not None:
                raise UnfaceError(f"{self.name}: another run changed it in the meantime; run it again")
            # The sidecar first: without its staged file it would say that the raw file is an erased one.
            self._sidecar.unlink(missing_ok=True)
            sync(self.path.parent)
            self._remove_staged()
            before = _Stamp.of(self.path)
            unfinished = self.path.with_name(f"{self._staged_prefix}{mark[:8]}.part")
            try:
                yield unfinished
                # The same people can read it as the raw file.
                raw, new = self.path.stat(), unfinished.stat()
                if (raw.st_uid, raw.st_gid) != (new.st_uid, new.st_gid):
                    os.chown(unfinished, raw.st_uid, raw.st_gid)
                shutil.copymode(self.path, unfinished)
                publish(unfinished, self.staged(mark))
            finally:
                unfinished.unlink(missing_ok=True)
            erased_sha256 = _sha256(self.staged(mark))
            self._write_sidecar(
                _Sidecar(schema="unface.beside/1", projection_sha256=mark, erased_sha256=erased_sha256, raw=before)
            )

    def swap(self, mark: str) -> None:
        """Give the raw file a second name, then rename the erased one over it: a complete file is always there."""
        with self._one_line_errors("swapped"), self._locked():
            if not self.is_staged(mark):
                raise UnfaceError(f"{self.name}: was written to while it was staged; stop writers and run it again")
            # Before the rename, so that a run that is killed after it has left nothing to do.
            self._remove_staged(but=self.staged(mark))
            if not self.raw.exists():
                self._keep_raw()
            publish(self.staged(mark), self.path)

    def purge(self) -> list[str]:
        """The raw file is removed last: while it is there, an interrupted purge can be recognised."""
        with self._one_line_errors("purged"), self._locked():
            if self.sanitised_with() is None:
                raise UnfaceError(f"{self.name}: not sanitised yet; there is nothing to purge")
            notes = [f"{self.name}: snapshots, backups and freed blocks of its file system may still hold raw vectors"]
            self._remove_staged()
            if self.raw.exists():
                others = self.raw.stat().st_nlink - 1
                if others:
                    notes.insert(0, f"{self.name}: the raw file has {others} more names (hard links) elsewhere")
                self.raw.unlink()
            sync(self.path.parent)
        return notes

    def _was_swapped(self, sidecar: _Sidecar) -> bool:
        """Whether the staged file was renamed over the raw one; the raw one may have been put back since."""
        return not self.staged(sidecar.projection_sha256).exists() and sidecar.raw != _Stamp.of(self.path)

    def _keep_raw(self) -> None:
        try:
            os.link(self.path, self.raw)
        except OSError:
            # Some file systems have no hard links; the copy gets its final name only when it is complete.
            unfinished = self.path.with_name(f"{self._staged_prefix}raw.part")
            new_file(unfinished, private=True)
            shutil.copy2(self.path, unfinished)
            publish(unfinished, self.raw)

    def _remove_staged(self, but: Path | None = None) -> None:
        """Files of any projection, finished or not, and vectors that were kept to check them."""
        for entry in list(self.path.parent.iterdir()):
            if entry.name.startswith(self._staged_prefix) and entry != but:
                entry.unlink()

    def _locked(self) -> AbstractContextManager[None]:
        """A second run would remove what the first is writing, or take half of it for the whole."""
        return file_lock(self.path, f"{self.name}: another run is working on it; wait for it to finish")

    @contextmanager
    def _one_line_errors(self, step: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnfaceError(f"{self.name}: cannot be {step} ({reason(error)}); {SEE_TO_IT}") from None

    def _read_sidecar(self) -> _Sidecar | None:
        refuse_link(self._sidecar)
        try:
            return _Sidecar.model_validate_json(self._sidecar.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unopened(self._sidecar, error) from None
        except ValidationError:
            raise UnfaceError(
                f"{self._sidecar.name}: not a valid sidecar file; remove it if {self.name} holds raw vectors"
            ) from None

    def _write_sidecar(self, sidecar: _Sidecar) -> None:
        write_file(self._sidecar, (sidecar.model_dump_json(by_alias=True, indent=2) + "\n").encode())


def new_array(
    path: Path, dtype: np.dtype[np.floating], shape: tuple[int, ...], *, column_by_column: bool = False
) -> "np.memmap[tuple[int, ...], np.dtype[np.floating]]":
    """A new .npy file as a memory map, all of its disk space allocated; nobody else can read it yet.

    A memory map that meets a full disk would end the process; here that is an OSError before the first row.
    """
    new_file(path, private=True)
    array = open_memmap(path, "w+", dtype, shape, column_by_column)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _same_bytes(one: Path, other: Path) -> bool:
    return one.samefile(other) or (one.stat().st_size == other.stat().st_size and _sha256(one) == _sha256(other))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
