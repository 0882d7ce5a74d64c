"""One file whose erased copy is staged beside it, takes its place by a rename, and leaves the raw one to be purged."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unface.data.files import SEE_TO_IT, reason, short_name, unopened, written_whole
from unface.errors import UnfaceError
from unface.stores.ports import Holding


class _Stamp(BaseModel):
    """By which a file that somebody wrote to in the meantime is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int
    written_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "_Stamp":
        seen = path.stat()
        return cls(size=seen.st_size, written_ns=seen.st_mtime_ns, inode=seen.st_ino)


class _Sidecar(BaseModel):
    """``faces.index.unface.json``: what lies staged, or what took the raw file's place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["unface.beside/1"] = Field("unface.beside/1", alias="schema")
    projection_sha256: str
    erased_sha256: str
    """Of the staged file's bytes; the rename keeps them, so they tell an erased file from a raw one after any crash."""
    raw: _Stamp
    swapped: bool = False


class BesideFile:
    """The files of one store: ``name``, ``.name.unface-<mark>`` while staged, ``name.raw``, ``name.unface.json``.

    Which of them was killed at what point can be told from what is there: a staged file counts once the sidecar has
    its hash, and the live file is erased if and only if it has that hash.
    """

    def __init__(self, path: Path) -> None:
        # A link would be replaced itself, and what it points to would stay raw.
        self.path = path.resolve()
        self.name = short_name(path)
        self.raw = self.path.with_name(f"{self.path.name}.raw")
        self._sidecar = self.path.with_name(f"{self.path.name}.unface.json")

    def holding(self, rows: int, dim: int) -> Holding:
        """Of so many vectors, with what the files beside it tell."""
        mark = self.sanitised_with()
        return Holding(self.name, rows, dim, mark, raw_kept=mark is not None and self.raw.exists())

    def sanitised_with(self) -> str | None:
        """Hash of the projection that the live file went through; refuses what cannot be told or would be lost."""
        told = self._told()
        if told is not None and _sha256(self.path) == told.erased_sha256:
            return told.projection_sha256
        if told is not None and told.swapped:
            raise UnfaceError(
                f"{self.name}: was written to since it was sanitised, so it may hold raw and erased vectors;"
                f" start from raw ones, and remove {self._sidecar.name}"
            )
        if self.raw.exists() and not _same_bytes(self.raw, self.path):
            raise UnfaceError(f"{self.name}: {self.raw.name} is in the way; move it elsewhere")
        return None

    def is_staged(self, mark: str) -> bool:
        """Whether all of it lies staged with this mark, from the raw file as it is now."""
        told = self._told()
        return (
            told is not None
            and told.projection_sha256 == mark
            and told.raw == _Stamp.of(self.path)
            and self.staged(mark).exists()
            and _sha256(self.staged(mark)) == told.erased_sha256
        )

    def staged(self, mark: str | None = None) -> Path:
        """Where erased vectors lie until they are swapped in; without a mark, where those staged last are now."""
        if mark is None:
            told = self._told()
            if told is None:
                raise UnfaceError(f"{self.name}: nothing lies staged; run it again")
            mark = told.projection_sha256
            if not self.staged(mark).exists():
                return self.path
        return self.path.with_name(f"{self._prefix}{mark[:8]}")

    @contextmanager
    def staging(self, mark: str) -> Iterator[Path]:
        """A name to write the erased copy under; it counts as staged when the block, which reads the raw file, ends."""
        with self._in_words("staged beside it"), self._alone():
            if self.sanitised_with() is not None:
                raise UnfaceError(f"{self.name}: another run came between; run it again")
            self.discard()
            before = _Stamp.of(self.path)
            unfinished = self.path.with_name(f"{self._prefix}{mark[:8]}.part")
            try:
                yield unfinished
                _belong_alike(self.path, unfinished)
                _settle(unfinished)
                unfinished.replace(self.staged(mark))
            finally:
                unfinished.unlink(missing_ok=True)
            erased_sha256 = _sha256(self.staged(mark))
            self._tell(
                _Sidecar(schema="unface.beside/1", projection_sha256=mark, erased_sha256=erased_sha256, raw=before)
            )

    def swap(self, mark: str) -> None:
        """The raw file under a second name first, then the erased one over its name: there is a whole one always."""
        with self._in_words("swapped"), self._alone():
            told = self._told()
            if told is None or not self.is_staged(mark):
                raise UnfaceError(f"{self.name}: was written to while it was staged; stop writers and run it again")
            if not self.raw.exists():
                _second_name(self.path, self.raw)
            self.staged(mark).replace(self.path)
            _settle(self.path.parent)
            self._tell(told.model_copy(update={"swapped": True}))

    def purge(self) -> list[str]:
        """Remove whatever staging left, and the raw file last: while it is there, a purge that was cut off is seen."""
        with self._in_words("purged"), self._alone():
            if self.sanitised_with() is None:
                raise UnfaceError(f"{self.name}: not sanitised yet; its raw vectors are all there is")
            told = [f"{self.name}: snapshots, backups and freed blocks of its file system are not reached"]
            self.discard()
            if self.raw.exists():
                others = self.raw.stat().st_nlink - 1
                if others:
                    told.insert(0, f"{self.name}: the raw file has {others} more names (hard links) elsewhere")
                self.raw.unlink()
            _settle(self.path.parent)
        return told

    def discard(self) -> None:
        """Remove staged files, finished or not, of any projection."""
        for entry in list(self.path.parent.iterdir()):
            if entry.name.startswith(self._prefix):
                entry.unlink()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A second run would clear away what the first is writing, or take the half of it for the whole."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UnfaceError(f"{self.name}: another run is at work on it; wait for its end") from None
            yield

    @contextmanager
    def _in_words(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnfaceError(f"{self.name}: cannot be {done} ({reason(error)}); {SEE_TO_IT}") from None

    @property
    def _prefix(self) -> str:
        return f".{self.path.name}.unface-"

    def _told(self) -> _Sidecar | None:
        try:
            return _Sidecar.model_validate_json(self._sidecar.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unopened(self._sidecar, error) from None
        except ValidationError:
            raise UnfaceError(
                f"{self._sidecar.name}: not as unface wrote it; remove it if {self.name} holds raw vectors"
            ) from None

    def _tell(self, sidecar: _Sidecar) -> None:
        with written_whole(self._sidecar) as unfinished:
            unfinished.write_text(sidecar.model_dump_json(by_alias=True, indent=2) + "\n", encoding="utf-8")
        _settle(self.path.parent)


def _belong_alike(path: Path, other: Path) -> None:
    """Whoever could read the one, and nobody else, can read the other."""
    wanted, found = path.stat(), other.stat()
    if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid):
        os.chown(other, wanted.st_uid, wanted.st_gid)
    shutil.copymode(path, other)


def _second_name(path: Path, second: Path) -> None:
    try:
        os.link(path, second)
    except OSError:
        # Some file systems have no hard links; a copy under its last name only when it is whole.
        unfinished = second.with_name(f".{path.name}.unface-raw.part")
        shutil.copy2(path, unfinished)
        _settle(unfinished)
        unfinished.replace(second)


def _same_bytes(one: Path, other: Path) -> bool:
    return one.samefile(other) or (one.stat().st_size == other.stat().st_size and _sha256(one) == _sha256(other))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _settle(path: Path) -> None:
    """Onto the disk, so that a power cut does not undo it after what depends on it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
