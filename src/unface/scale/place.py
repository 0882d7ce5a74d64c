"""Where a collection of files lies: a folder of this machine, or a URL of an object store; files appear whole."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from unface.data.files import short_name
from unface.errors import UnfaceError
from unface.scale.address import why, without_secrets
from unface.scale.folder import files_below
from unface.scale.sink import OutputError, Sink, Writable

OWN = "_unface"
"""The folder of an output in which its manifest, records and unfinished files lie."""
_UNFINISHED = f"{OWN}/unfinished"


@dataclass(frozen=True)
class Found:
    """One file of a collection; ``changed_ns`` is None where its file system does not say."""

    name: str
    bytes: int
    changed_ns: int | None


@dataclass(frozen=True, eq=False)
class Place:
    """Files by names relative to ``root``, with "/" between folders. ``address`` finds it again in another process."""

    files: fs.FileSystem
    root: str
    address: str

    @property
    def local(self) -> bool:
        return isinstance(self.files, fs.LocalFileSystem)

    @property
    def shown(self) -> str:
        """For sentences: the last name of a path, which tells enough; of a URL all but passwords and keys."""
        return self.whole if "://" in self.address else short_name(Path(self.address))

    @property
    def whole(self) -> str:
        """What makes it this place and no other: the path, or the URL without passwords and keys."""
        return without_secrets(self.address) if "://" in self.address else self.root

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def parquet_files(self) -> list[Found]:
        """Parquet files in it and in its folders, by name; those that begin with a dot or "_" are not data."""
        self.require_folder()
        data = [found for found in self.listed("") if _is_data(found.name)]
        for found in data:
            if any("\ud800" <= letter <= "\udfff" for letter in found.name):
                raise UnfaceError(f"{found.name!a}: its name is not UTF-8; rename it")
        return data

    def require_folder(self) -> None:
        """Refuse a file; what is not there may yet become a folder."""
        if self._info("").type in (fs.FileType.File, fs.FileType.Unknown):
            raise UnfaceError(f"{self.shown}: is a file; give a folder")

    def listed(self, folder: str) -> list[Found]:
        """Every file below a folder, by name; none where there is no such folder."""
        start = self.path(folder)
        with self._reading(folder):
            if self.local:
                below = (_stated(name, seen) for name, seen in files_below(start))
                return sorted(below, key=lambda found: found.name)
            entries = self.files.get_file_info(fs.FileSelector(start, recursive=True, allow_not_found=True))
        files = [entry for entry in entries if entry.type != fs.FileType.Directory]
        cut = len(start.rstrip("/")) + 1
        return sorted((_found(entry, entry.path[cut:]) for entry in files), key=lambda found: found.name)

    def look(self, name: str) -> Found | None:
        """One file, None where it is not there."""
        entry = self._info(name)
        return None if entry.type == fs.FileType.NotFound else _found(entry, name)

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        """To read at any place of it."""
        with self._reading(name):
            file = self.files.open_input_file(self.path(name))
        with file:
            yield file

    def read(self, name: str) -> bytes | None:
        """All of a small file, None where it is not there."""
        try:
            with self.files.open_input_stream(self.path(name)) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._unread(name, error) from None
        return content

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self._reading(name), self.files.open_input_stream(self.path(name)) as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    @contextmanager
    def written(self, name: str) -> Iterator[Sink]:
        """To write under another name, which becomes ``name`` when all is well: nobody ever finds half a file."""
        unfinished = self.path(f"{_UNFINISHED}/{secrets.token_hex(8)}")
        with self._writing(name):
            self._make_folder(unfinished)
            sink = Sink(self._new(unfinished), self._called(name), on_disk=self.local)
        try:
            yield sink
            with self._writing(name):
                sink.finish()
                self._make_folder(self.path(name))
                self._rename(unfinished, self.path(name))
        finally:
            # On a full disk closing fails as well, and what was written must go all the same.
            with suppress(Exception):
                sink.abandon()
            with suppress(Exception):
                self.files.delete_file(unfinished)

    def write(self, name: str, content: bytes) -> None:
        """A small file, by a rename."""
        with self.written(name) as sink:
            sink.write(content)

    def drop(self, name: str) -> None:
        """A file, if it is there."""
        with self._writing(name, "removed"), suppress(FileNotFoundError):
            self.files.delete_file(self.path(name))

    def drop_unfinished(self) -> None:
        """What runs that were killed left behind."""
        for left in self.listed(_UNFINISHED):
            self.drop(f"{_UNFINISHED}/{left.name}")

    def _new(self, path: str) -> Writable:
        if self.local:
            return Path(path).open("wb")
        new: Writable = self.files.open_output_stream(path)
        return new

    def _rename(self, old: str, new: str) -> None:
        if not self.local:
            self.files.move(old, new)
            return
        Path(old).replace(new)
        # The new name itself must survive a power cut, before a record says that it is there.
        folder = os.open(Path(new).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _make_folder(self, path: str) -> None:
        self.files.create_dir(path.rpartition("/")[0], recursive=True)

    def _info(self, name: str) -> fs.FileInfo:
        with self._reading(name):
            return self.files.get_file_info(self.path(name))

    def _called(self, name: str) -> str:
        shown = name or self.shown
        return shown if shown.isprintable() else ascii(shown)

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except UnfaceError:
            raise
        except FileNotFoundError:
            raise UnfaceError(f"{self._called(name)}: no such file or directory") from None
        except Exception as error:
            raise self._unread(name, error) from None

    def _unread(self, name: str, error: Exception) -> UnfaceError:
        return UnfaceError(f"{self._called(name)}: cannot be opened ({why(error, self.address)})")

    @contextmanager
    def _writing(self, name: str, done: str = "written") -> Iterator[None]:
        # Anything: file systems of fsspec let through what the libraries behind them raise.
        try:
            yield
        except UnfaceError:
            raise
        except Exception as error:
            raise OutputError(f"{self._called(name)}: cannot be {done} ({why(error, self.address)})") from None


def place_at(address: str | os.PathLike[str]) -> Place:
    """A path, or a URL that pyarrow knows (s3, gs, hdfs, file, …) or fsspec."""
    text = os.fspath(address)
    if "://" not in text:
        root = os.path.abspath(text)  # noqa: PTH100  (resolving links would give files other names)
        return Place(fs.LocalFileSystem(), root, root)
    try:
        files, root = _file_system(text)
    except Exception as error:
        raise UnfaceError(f"{without_secrets(text)}: cannot be opened as a URL ({why(error, text)})") from None
    root = root.rstrip("/") or root
    return Place(files, root, root if isinstance(files, fs.LocalFileSystem) else text)


@lru_cache(maxsize=16)
def _file_system(url: str) -> tuple[fs.FileSystem, str]:
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(url)
        return found
    except pa.ArrowInvalid as unknown:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise unknown from None
    other, root = url_to_fs(url)
    if "file" in other.protocol:
        return fs.LocalFileSystem(), root
    return fs.PyFileSystem(fs.FSSpecHandler(other)), root


def _found(entry: fs.FileInfo, name: str) -> Found:
    return Found(name, entry.size or 0, entry.mtime_ns)


def _stated(name: str, seen: os.stat_result | None) -> Found:
    return Found(name, 0, None) if seen is None else Found(name, seen.st_size, seen.st_mtime_ns)


def _is_data(name: str) -> bool:
    return name.lower().endswith(".parquet") and not any(part.startswith((".", "_")) for part in name.split("/"))
