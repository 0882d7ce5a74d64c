"""Refusals before any work is done: the output exists already, cannot be written, or would overwrite an input."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from unface.errors import UnfaceError
from unface.output.write import unfinished_files


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
