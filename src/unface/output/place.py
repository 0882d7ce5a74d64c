"""A place for files: a folder of this machine, or a URL of an object store. Files appear in it whole or not at all."""

import hashlib
import os
import posixpath
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from unface import errors
from unface.errors import UnfaceError, reason, short_name
from unface.output.taken import is_link, opened_file, opened_folder
from unface.output.write import PRIVATE_FILE, OutputError

OWN = "_unface"
"""The folder of an output in which its manifest, records and unfinished files lie."""
UNFINISHED = f"{OWN}/unfinished"
_AHEAD_BYTES = 16 << 20


@dataclass(frozen=True)
class Entry:
    """One file of a place; ``changed_ns`` is None if its file system does not record it."""

    name: str
    bytes: int
    changed_ns: int | None


@dataclass(frozen=True, eq=False)
class Place:
    """Files by names relative to ``root``, with "/" between folders. ``address`` finds it again in another process."""

    files: fs.FileSystem
    root: str
    address: str
    title: str = ""
    """The name in messages, if not that of the address."""
    private: bool = False
    """On this machine: what is written is readable by its owner alone."""

    @property
    def local(self) -> bool:
        return isinstance(self.files, fs.LocalFileSystem)

    @property
    def shown(self) -> str:
        """For messages: the last part of a path, or a URL without passwords and keys."""
        return self.title or (self.whole if "://" in self.address else short_name(Path(self.address)))

    @property
    def whole(self) -> str:
        """What identifies the place: the whole path, or the URL without passwords and keys."""
        return without_secrets(self.address) if "://" in self.address else self.root

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def parquet_files(self, *, links: bool = True) -> list[Entry]:
        """Parquet files in it and in its folders, by name; names that begin with a dot or "_" are not data.

        Without ``links`` a link anywhere in it is refused: an output is what was written here.
        """
        self.require_folder()
        data = [entry for entry in self.listed("", links=links) if is_data(entry.name)]
        for entry in data:
            if any("\ud800" <= letter <= "\udfff" for letter in entry.name):
                raise UnfaceError(f"{entry.name!a}: its name is not UTF-8; rename it")
        return data

    def require_folder(self) -> None:
        """Refuse a file; what does not exist yet may become a folder."""
        if self._info("").type in (fs.FileType.File, fs.FileType.Unknown):
            raise UnfaceError(f"{self.shown}: is a file; give a folder")

    def listed(self, folder: str, *, links: bool = False) -> list[Entry]:
        """Every file below a folder, by name; nothing if there is no such folder. Links are refused or followed."""
        start = self.path(folder)
        with self._reading(folder):
            if self.local:
                if not links:
                    try:
                        with opened_folder(self.root, folder):
                            pass
                    except FileNotFoundError:
                        return []
                refused = None if links else f"{self.shown}/{folder}".rstrip("/")
                return sorted(files_below(start, refused=refused), key=lambda entry: entry.name)
            infos = self.files.get_file_info(fs.FileSelector(start, recursive=True, allow_not_found=True))
        files = [info for info in infos if info.type != fs.FileType.Directory]
        cut = len(start.rstrip("/")) + 1
        entries = (Entry(info.path[cut:], info.size or 0, info.mtime_ns) for info in files)
        return sorted(entries, key=lambda entry: entry.name)

    def look(self, name: str) -> Entry | None:
        """One file, None if it does not exist."""
        info = self._info(name)
        return None if info.type == fs.FileType.NotFound else Entry(name, info.size or 0, info.mtime_ns)

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        """For reading at any position."""
        with self._reading(name):
            file = self.files.open_input_file(self.path(name))
        with file:
            yield file

    def read(self, name: str) -> bytes | None:
        """All of a small file that a run wrote here, None if it does not exist."""
        try:
            if self.local:
                with os.fdopen(opened_file(self.root, name, os.O_RDONLY), "rb") as own:
                    return own.read()
            with self.files.open_input_stream(self.path(name)) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        except UnfaceError:
            raise
        except Exception as error:
            raise self._unread(name, error) from None
        return content

    def sha256(self, name: str) -> str:
        with self._reading(name), self.files.open_input_stream(self.path(name)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def written(self, name: str) -> Iterator["Sink"]:
        """A file to write to, renamed to ``name`` at the end of the block."""
        token = secrets.token_hex(8)
        with self._local_file(name, token) if self.local else self._object(name, token) as sink:
            yield sink

    @contextmanager
    def _local_file(self, name: str, token: str) -> Iterator["Sink"]:
        folder, _, leaf = name.rpartition("/")
        mode = PRIVATE_FILE if self.private else 0o666
        with ExitStack() as stack:
            with self._writing(name):
                aside = stack.enter_context(opened_folder(self.root, UNFINISHED, make=True, private=self.private))
                new = os.open(token, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=aside)
                sink = Sink(os.fdopen(new, "wb"), self._called(name), on_disk=True)
            try:
                yield sink
                with self._writing(name):
                    sink.finish()
                    target = stack.enter_context(opened_folder(self.root, folder, make=True, private=self.private))
                    self._refuse_link(name, leaf, target)
                    # Content and name survive a power cut.
                    os.replace(token, leaf, src_dir_fd=aside, dst_dir_fd=target)
                    os.fsync(target)
            finally:
                # On a full disk closing fails as well, and what was written must be removed all the same.
                with suppress(Exception):
                    sink.abandon()
                with suppress(OSError):
                    os.unlink(token, dir_fd=aside)

    @contextmanager
    def _object(self, name: str, token: str) -> Iterator["Sink"]:
        unfinished = self.path(f"{UNFINISHED}/{token}")
        with self._writing(name):
            self._make_folder(unfinished)
            sink = Sink(self.files.open_output_stream(unfinished), self._called(name))
        try:
            yield sink
            with self._writing(name):
                sink.finish()
                self._make_folder(self.path(name))
                self.files.move(unfinished, self.path(name))
        finally:
            with suppress(Exception):
                sink.abandon()
            with suppress(Exception):
                self.files.delete_file(unfinished)

    def write(self, name: str, content: bytes) -> None:
        """A small file."""
        with self.written(name) as sink:
            sink.write(content)

    def drop(self, name: str) -> None:
        """Remove a file, if it exists."""
        with self._writing(name, "removed"), suppress(FileNotFoundError):
            if not self.local:
                self.files.delete_file(self.path(name))
                return
            folder, _, leaf = name.rpartition("/")
            with opened_folder(self.root, folder) as within:
                os.unlink(leaf, dir_fd=within)

    def drop_unfinished(self) -> None:
        """Remove what killed runs left behind."""
        for left in self.listed(UNFINISHED):
            self.drop(f"{UNFINISHED}/{left.name}")

    def require_no_links(self, name: str) -> None:
        """Refuse a file or folder of this machine that is a link or lies behind one; it need not exist."""
        folder, _, leaf = name.rpartition("/")
        with self._writing(name), suppress(FileNotFoundError), opened_folder(self.root, folder) as within:
            self._refuse_link(name, leaf, within)

    def _refuse_link(self, name: str, leaf: str, folder: int) -> None:
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode):
                raise is_link(f"{self.shown}/{name}")

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
        # Any exception: file systems of fsspec pass on what the libraries behind them raise.
        try:
            yield
        except UnfaceError:
            raise
        except Exception as error:
            raise OutputError(f"{self._called(name)}: cannot be {done} ({why(error, self.address)})") from None


def place_at(address: str | os.PathLike[str], title: str = "") -> Place:
    """A path, or a URL that pyarrow knows (s3, gs, hdfs, file, …) or fsspec."""
    text = os.fspath(address)
    if "://" not in text:
        root = os.path.abspath(text)  # noqa: PTH100  (resolving links would give files other names)
        return Place(fs.LocalFileSystem(), root, root, title)
    try:
        files, root = _file_system(text)
    except Exception as error:
        raise UnfaceError(f"{without_secrets(text)}: cannot be opened as a URL ({why(error, text)})") from None
    root = root.rstrip("/") or root
    return Place(files, root, root if isinstance(files, fs.LocalFileSystem) else text, title)


@lru_cache(maxsize=16)
def _file_system(url: str) -> tuple[fs.FileSystem, str]:
    try:
        known: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(url)
        return known
    except pa.ArrowInvalid as unknown:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise unknown from None
    other, root = url_to_fs(url)
    if "file" in other.protocol:
        return fs.LocalFileSystem(), root
    return fs.PyFileSystem(fs.FSSpecHandler(other)), root


def is_data(name: str) -> bool:
    """Whether a file in a collection holds rows. Writers leave `_SUCCESS`, `_metadata` and `.crc` files beside them."""
    return name.lower().endswith(".parquet") and not any(part.startswith((".", "_")) for part in name.split("/"))


class Writable(Protocol):
    """Files of Python and of Arrow."""

    def write(self, data: bytes | memoryview) -> object: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...


class Sink:
    """A file being written that counts and hashes its bytes; ``on_disk`` it starts flushing them early."""

    def __init__(self, file: Writable, called: str, *, on_disk: bool = False) -> None:
        self._file, self._called, self._digest, self._on_disk = file, called, hashlib.sha256(), on_disk
        self._begun = 0
        self.bytes = 0
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        try:
            self._file.write(data)
        except Exception as error:
            raise OutputError(f"{self._called}: cannot be written ({reason(error)})") from None
        self._digest.update(data)
        size = len(data) if isinstance(data, bytes) else data.nbytes
        self.bytes += size
        if self._on_disk and self.bytes - self._begun >= _AHEAD_BYTES:
            self._begin_writing()
        return size

    def sha256(self) -> str:
        return self._digest.hexdigest()

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Does nothing: a writer that closes it has ended, which does not mean that it succeeded."""

    def finish(self) -> None:
        self._file.flush()
        if self._on_disk:
            os.fsync(self._file.fileno())
        self.abandon()

    def abandon(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()

    def _begin_writing(self) -> None:
        """Without waiting: the disk works while the next bytes are made, and the flush at the end is short."""
        if hasattr(os, "posix_fadvise"):
            # Linux drops no page that is not on disk yet, but begins to write it.
            with suppress(OSError):
                os.posix_fadvise(self._file.fileno(), self._begun, self.bytes - self._begun, os.POSIX_FADV_DONTNEED)
        self._begun = self.bytes


def files_below(
    folder: str, before: str = "", above: tuple[tuple[int, int], ...] = (), *, refused: str | None = None
) -> Iterator[Entry]:
    """Files below a local folder, named relative to it, with "/" between folders; nothing if there is no such folder.

    Links are followed, never in a circle, or with a name for the folder ``refused``; a link to nothing is an entry of
    no bytes. Pipes, sockets and devices hold no rows, and reading one could wait for ever.
    """
    try:
        top = os.stat(folder)  # noqa: PTH116  (strings throughout: a collection has many files)
    except (FileNotFoundError, NotADirectoryError):
        return
    here = (top.st_dev, top.st_ino)
    if here in above:
        # Its files would be there twice, and again below that.
        raise UnfaceError(f"{before.rstrip('/')}: links to a folder that contains it; remove that link")
    with os.scandir(folder) as children:
        for child in children:
            name = before + child.name
            if refused is not None and child.is_symlink():
                raise is_link(f"{refused}/{name}")
            try:
                status = child.stat()
            except FileNotFoundError:
                yield Entry(name, 0, None)
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from files_below(child.path, f"{name}/", (*above, here), refused=refused)
            elif stat.S_ISREG(status.st_mode):
                yield Entry(name, status.st_size, status.st_mtime_ns)


def without_secrets(url: str) -> str:
    """Scheme, host and path, normalised: anything else may be a password or a key."""
    scheme, _, rest = errors.without_secrets(url).partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}{posixpath.normpath(slash + path) if path.strip('/') else ''}".rstrip("/")


def why(error: Exception, address: str) -> str:
    """What failed, for a message about ``address``: without passwords, keys and the paths in Arrow's messages."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if "://" not in address:
        return reason(error)
    text = errors.redact(str(error).replace(address, without_secrets(address)), *errors.secrets_of(address))
    return reason(Exception(text or type(error).__name__))
