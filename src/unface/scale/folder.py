"""Files below a folder of this machine: links are followed, never in a circle, and one that leads nowhere is told."""

import os
import stat
from collections.abc import Iterator

from unface.errors import UnfaceError

Inode = tuple[int, int]


def files_below(folder: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """Names relative to the folder, with "/" between folders; None for a link to nothing, which is still a name.

    Pipes, sockets and devices hold no rows, and reading one could wait for ever. Where there is no folder, no files.
    """
    try:
        top = os.stat(folder)  # noqa: PTH116  (strings throughout: a collection has many files)
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from _walked(folder, "", ((top.st_dev, top.st_ino),))


def _walked(folder: str, before: str, above: tuple[Inode, ...]) -> Iterator[tuple[str, os.stat_result | None]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = before + entry.name
            try:
                found = entry.stat()
            except FileNotFoundError:
                yield name, None
                continue
            if stat.S_ISDIR(found.st_mode):
                here = (found.st_dev, found.st_ino)
                if here in above:
                    # Its files would be there twice, and again below that.
                    raise UnfaceError(f"{name}: links to a folder that it lies in; remove that link")
                yield from _walked(entry.path, f"{name}/", (*above, here))
            elif stat.S_ISREG(found.st_mode):
                yield name, found
