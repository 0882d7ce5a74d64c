"""Files that commands write: never over a finished one unless told to."""

import os
from collections.abc import Sequence
from pathlib import Path

from unface.errors import UnfaceError


def require_new(path: Path, *, force: bool) -> None:
    """Refuse before any work is done for it."""
    if path.is_dir():
        raise UnfaceError(f"{path}: is a folder; name a file")
    if path.exists() and not force:
        raise UnfaceError(f"{path}: exists already; choose another name or pass --force")
    if not path.absolute().parent.is_dir():
        raise UnfaceError(f"{path}: there is no folder {path.absolute().parent}; make it first")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UnfaceError(f"{path}: cannot be written, {path.absolute().parent} does not allow it; choose another name")


def require_distinct(written: Sequence[Path | None], read: Sequence[Path | None]) -> None:
    """Refuse to write one file twice, or over what is read."""
    # Not Path.resolve(), which takes a loop of links for a fault of the program.
    taken = {os.path.realpath(path) for path in read if path is not None}
    for path in written:
        if path is not None:
            if os.path.realpath(path) in taken:
                raise UnfaceError(f"{path}: is named twice; what is written must be a file of its own")
            taken.add(os.path.realpath(path))
