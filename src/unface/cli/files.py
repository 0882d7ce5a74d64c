"""Files that commands write: never over a finished one unless told to."""

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


def require_distinct(*paths: Path | None) -> None:
    """Refuse to read and write, or to write twice, one file."""
    seen: set[Path] = set()
    for path in paths:
        if path is not None:
            if path.resolve() in seen:
                raise UnfaceError(f"{path}: is named twice; what is read and what is written must be different files")
            seen.add(path.resolve())
