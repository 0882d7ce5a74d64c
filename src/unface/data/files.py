"""Opening files: what kind one is by its first bytes, and its failures as one line."""

import re
import stat
from pathlib import Path

from unface.errors import UnfaceError, reason, short_name
from unface.output.place import files_below, is_data
from unface.output.write import SEE_TO_IT
from unface.output.write import staged as written_whole

__all__ = [  # SEE_TO_IT, reason, short_name and written_whole are defined elsewhere: import them from there
    "PARQUET",
    "SEE_TO_IT",
    "ZIP",
    "first_bytes",
    "kind_of",
    "parquet_files",
    "reason",
    "short_name",
    "unopened",
    "without_parquet",
    "written_whole",
]

PARQUET = b"PAR1"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # with members, and without
_NPY = b"\x93NUMPY"
_GZIP = b"\x1f\x8b"
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")


def kind_of(path: Path) -> str:
    """``"directory"``, ``"parquet"`` or ``"npz"``, by content and never by suffix; anything else is refused."""
    name, start = short_name(path), first_bytes(path)
    if start is None:
        return "directory"
    if start.startswith(PARQUET):
        return "parquet"
    if start.startswith(ZIP):
        return "npz"
    if start == _NPY:
        raise UnfaceError(
            f"{name}: one .npy array; save it with its identities: np.savez(path, vectors=…, identities=…), "
            f"or name it as a store, npy:{name}"
        )
    if not start:
        raise UnfaceError(f"{name}: the file is empty; expected Parquet or .npz")
    if start.startswith(_GZIP):
        raise UnfaceError(f"{name}: compressed by gzip; unpack it first")
    if start.startswith(_PICTURES):
        raise UnfaceError(f"{name}: a picture, not vectors; encode pictures first (unface encode)")
    raise UnfaceError(f"{name}: neither Parquet nor .npz by its first bytes; convert it to one of them")


def first_bytes(path: Path) -> bytes | None:
    """As many as tell a file's kind; None of a directory."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return None
        # A pipe or a device would wait, or never end.
        if not stat.S_ISREG(mode):
            raise UnfaceError(f"{short_name(path)}: neither a file nor a directory")
        with path.open("rb") as file:
            return file.read(len(_NPY))
    except (OSError, ValueError) as error:
        raise unopened(path, error) from None


def parquet_files(directory: Path) -> list[Path]:
    """The Parquet files of a directory and of those in it, sorted by name as everywhere; at least one."""
    try:
        found = sorted(entry.name for entry in files_below(str(directory)) if is_data(entry.name))
    except OSError as error:
        raise unopened(directory, error) from None
    if not found:
        raise without_parquet(short_name(directory))
    return [directory / name for name in found]


def without_parquet(name: str) -> UnfaceError:
    """The sentence about a directory in which there is nothing to read."""
    return UnfaceError(
        f"{name}: no .parquet files in this directory; give the one they are in, or encode pictures first"
    )


def unopened(path: Path, error: Exception) -> UnfaceError:
    """What the operating system said, in our form."""
    if isinstance(error, FileNotFoundError) and (url := re.match(r"([a-z][a-z0-9+.-]+):/", str(path))):
        what = f"{url[1]}: URLs are for fit and apply; copy it to this machine first"
        return UnfaceError(f"{short_name(path)}: no such file, and {what}")
    known: dict[type[Exception], str] = {
        FileNotFoundError: "no such file or directory",
        PermissionError: "permission denied; check who may read it",
        IsADirectoryError: "is a folder; name a file in it",
    }
    return UnfaceError(f"{short_name(path)}: {known.get(type(error)) or f'cannot be opened ({reason(error)})'}")
