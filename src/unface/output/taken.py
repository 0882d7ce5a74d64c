"""Refusals before any work is done: the output exists already, cannot be written, or would overwrite an input.

Folders that a run writes to are opened one name after the other: a symbolic link in them is refused, never followed.
Whoever can leave a link in an output could otherwise make a run empty, overwrite or remove files elsewhere. The folder
that the user named may be a link itself.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from unface.errors import UnfaceError, short_name
from unface.output.write import PRIVATE_FOLDER, OutputError, unfinished_files


def require_new_file(path: Path, *, force: bool, option: str = "--out", make_folder: bool = False) -> None:
    """Refuse a file that exists (unless ``force``) or whose folder cannot be written.

    The folder must exist unless the writer makes it (``make_folder``). ``option`` is what named the file.
    """
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; {option} takes a file")
    if path.exists() and not force:
        raise UnfaceError(f"{path}: exists already; choose another {option} or pass --force")
    folder = path.absolute().parent
    if not make_folder and not folder.is_dir():
        raise UnfaceError(f"{path}: there is no folder {folder}; make it first")
    _require_writable(path, folder, option)


def require_new_files(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Refuse a folder that cannot be written or, unless ``force``, holds one of these files."""
    require_folder(folder)
    for name in names:
        if (folder / name).exists() and not force:
            raise UnfaceError(f"{folder / name}: exists already; choose another --out or pass --force")


def require_no_result(folder: Path, file: str, *beside: str, force: bool) -> None:
    """Refuse a folder that holds a finished result.

    The result file is renamed last: what lies beside an unfinished one is what a killed run left.
    """
    require_new_files(folder, (file,) if unfinished_files(folder, file) else (file, *beside), force=force)


def require_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, or cannot be made."""
    if folder.exists() and not folder.is_dir():
        raise UnfaceError(f"{folder}: is a file; --out takes a folder")
    if folder.is_symlink() and not folder.exists():
        raise UnfaceError(f"{folder}: is a link that leads nowhere; choose another --out")
    _require_writable(folder, folder, "--out")


def require_distinct(written: Sequence[Path | None], read: Sequence[str | Path | None]) -> None:
    """Refuse to write one file twice, or over what is read."""
    # Not Path.resolve(), which raises on a loop of links.
    taken = {os.path.realpath(path) for path in read if path is not None}
    for path in written:
        if path is not None:
            if os.path.realpath(path) in taken:
                raise UnfaceError(f"{path}: is named twice; what is written must be a file of its own")
            taken.add(os.path.realpath(path))


def _require_writable(path: Path, folder: Path, option: str) -> None:
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        why = "does not allow it" if nearest.is_dir() else "is a file"
        raise UnfaceError(f"{path}: cannot be written, {nearest} {why}; choose another {option}")


@contextmanager
def opened_folder(root: str, name: str, *, make: bool = False, private: bool = False) -> Iterator[int]:
    """A descriptor of the folder ``name`` below ``root``, with "/" between folders; for ``dir_fd``.

    It stays that folder, whatever its name leads to meanwhile. ``make`` makes folders that are missing; below ``root``,
    ``private`` ones are open to their owner alone.
    """
    if make:
        Path(root).mkdir(parents=True, exist_ok=True)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        below = ""
        for part in name.split("/") if name else ():
            below = f"{below}/{part}" if below else part
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, PRIVATE_FOLDER if private else 0o777, dir_fd=folder)
            with _refused(root, below, part, folder):
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def opened_file(root: str, name: str, flags: int) -> int:
    """A descriptor of the file ``name`` below ``root``, whose folders exist; refuses what is not a plain file."""
    folder, _, leaf = name.rpartition("/")
    with opened_folder(root, folder) as within:
        with _refused(root, name, leaf, within):
            # Without waiting: opening a pipe would wait for its other end.
            file = os.open(leaf, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=within)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "not a file")
    return file


def refuse_link(path: Path, shown: str | None = None) -> None:
    """Refuse a path that is a link, to whatever; ``shown`` is its name in the message."""
    if path.is_symlink():
        raise is_link(shown or short_name(path))


def is_link(shown: str) -> OutputError:
    """The refusal itself."""
    return OutputError(f"{shown}: is a symbolic link; unface follows no links in what it writes to; remove it")


@contextmanager
def _refused(root: str, name: str, leaf: str, folder: int) -> Iterator[None]:
    """Systems report a link that is not followed by different errors: look whether it is one."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode):
                raise is_link(f"{short_name(Path(root))}/{name}") from None
        raise
