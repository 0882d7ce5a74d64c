"""Folders that a run writes to, opened one name after the other: a symbolic link in them is refused, never followed.

Whoever can leave a link in an output could otherwise make a run empty, overwrite or remove files elsewhere. The folder
that the user named may be a link itself.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unface.errors import short_name
from unface.output.write import OutputError


@contextmanager
def opened_folder(root: str, name: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder ``name`` below ``root``, with "/" between folders; for ``dir_fd``.

    It stays that folder, whatever its name leads to meanwhile. ``make`` makes folders that are missing.
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
                    os.mkdir(part, dir_fd=folder)
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
