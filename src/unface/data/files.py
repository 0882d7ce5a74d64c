"""Opening files: what kind one is by its first bytes, and its failures as one line."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unface.errors import UnfaceError

_PARQUET = b"PAR1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # a zip with members, and one without
_NPY = b"\x93NUMPY"


def kind_of(path: Path) -> str:
    """``"directory"``, ``"parquet"`` or ``"npz"``, by content and never by suffix; anything else is refused."""
    name = short_name(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return "directory"
        # A pipe or a device would wait, or never end.
        if not stat.S_ISREG(mode):
            raise UnfaceError(f"{name}: neither a file nor a directory")
        with path.open("rb") as file:
            start = file.read(len(_NPY))
    except (OSError, ValueError) as error:
        raise unopened(path, error) from None
    if start.startswith(_PARQUET):
        return "parquet"
    if start.startswith(_ZIP):
        return "npz"
    if start == _NPY:
        raise UnfaceError(
            f"{name}: one .npy array; save it with its identities: np.savez(path, vectors=…, identities=…)"
        )
    if not start:
        raise UnfaceError(f"{name}: the file is empty; expected Parquet or .npz")
    raise UnfaceError(f"{name}: neither Parquet nor .npz by its first bytes; convert it to one of them")


def parquet_files(directory: Path) -> list[Path]:
    """The Parquet files right in a directory, sorted by name; at least one."""
    try:
        entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
        found = [entry for entry in entries if _is_part(entry)]
    except OSError as error:
        raise unopened(directory, error) from None
    if not found:
        raise UnfaceError(f"{short_name(directory)}: no .parquet files in this directory")
    return found


def short_name(path: Path) -> str:
    """The file name alone (paths tell too much), on one line whatever is in it."""
    name = path.name or os.fspath(path)
    return name if name.isprintable() else ascii(name)


def unopened(path: Path, error: Exception) -> UnfaceError:
    """What the operating system said, in our form."""
    known: dict[type[Exception], str] = {
        FileNotFoundError: "no such file or directory",
        PermissionError: "permission denied; check who may read it",
    }
    return UnfaceError(f"{short_name(path)}: {known.get(type(error)) or f'cannot be opened ({reason(error)})'}")


def reason(error: Exception) -> str:
    """A library's message, fit for the inside of our line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    words = " ".join(text.split())[:160]
    return "".join(letter if letter.isprintable() else "?" for letter in words) or type(error).__name__


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write under, renamed to ``path`` when all is well: nobody ever finds half a file."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            yield unfinished
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise UnfaceError(f"{short_name(path)}: cannot be written ({reason(error)})") from None


def _is_part(entry: Path) -> bool:
    # Writers leave `_SUCCESS`, `_metadata` and `.crc` files next to the parts.
    return entry.suffix.lower() == ".parquet" and not entry.name.startswith((".", "_")) and entry.is_file()
