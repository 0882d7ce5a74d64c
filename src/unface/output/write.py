"""Files that appear whole or not at all: written under a temporary name, flushed to disk, then renamed.

Modes follow the process's umask; ``private`` files are readable by their owner alone from the first byte on.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from unface.errors import UnfaceError, reason, short_name

SEE_TO_IT = "see to that and give the same command again"
"""What to do about a full disk, or a missing permission."""


class OutputError(UnfaceError):
    """Writing failed (full disk, no permission). No single input is at fault, so other outputs would fail too."""


@contextmanager
def staged(path: Path, *, private: bool = False, option: str | None = None) -> Iterator[Path]:
    """A temporary name for a file, renamed to ``path`` at the end of the block; replaces what is there.

    ``option`` is the command-line option that named ``path``: a failure then advises another value for it.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with _failure_in_one_line(path, option):
        try:
            new_file(unfinished, private=private)
            yield unfinished
            publish(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)


def write_file(path: Path, content: bytes, *, option: str | None = None) -> None:
    """One file; see ``staged``."""
    with staged(path, option=option) as unfinished:
        unfinished.write_bytes(content)


def write_files(folder: Path, texts: Mapping[str, str], private: Mapping[str, str | None]) -> None:
    """Several files of one result: none is renamed before all are written.

    ``private`` files contain names of people. One that is None is removed if an earlier run left it.
    """
    unfinished: dict[str, Path] = {}
    with _failure_in_one_line(folder, "--out"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in (*private.items(), *texts.items()):
                if text is not None:
                    unfinished[name] = folder / f".{name}.{secrets.token_hex(4)}.tmp"
                    mode = 0o600 if name in private else 0o666
                    handle = os.open(unfinished[name], os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
                    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                        file.write(text)
                    sync(unfinished[name])
            for name, path in unfinished.items():
                path.replace(folder / name)
            for name in private.keys() - unfinished.keys():
                (folder / name).unlink(missing_ok=True)
            sync(folder)
        finally:
            for path in unfinished.values():
                path.unlink(missing_ok=True)


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder in ``parent``, so that what is written in it can be renamed into place; removed at the end."""
    folder = parent / f".{secrets.token_hex(8)}.tmp"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(unfinished: Path, path: Path) -> None:
    """Rename a file or a folder to ``path``, replacing what is there; content and name survive a power cut."""
    if unfinished.is_dir():
        for entry in unfinished.rglob("*"):
            sync(entry)
        if path.is_dir():
            shutil.rmtree(path)  # a folder cannot be renamed over one that holds anything
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def new_file(path: Path, *, private: bool = False) -> None:
    """An empty file to write to: never one that is there already, and never through a link."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _failure_in_one_line(path: Path, option: str | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        name, advice = (path, f"choose another {option}") if option else (short_name(path), SEE_TO_IT)
        raise OutputError(f"{name}: cannot be written ({reason(error)}); {advice}") from None
