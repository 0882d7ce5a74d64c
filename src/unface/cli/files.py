"""Files that commands write: never over a finished one unless told to."""

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


def require_distinct(written: Sequence[Path | None], read: Sequence[Path | None]) -> None:
    """Refuse to write one file twice, or over what is read."""
    taken = {path.resolve() for path in read if path is not None}
    for path in written:
        if path is not None:
            if path.resolve() in taken:
                raise UnfaceError(f"{path}: is named twice; what is written must be a file of its own")
            taken.add(path.resolve())
