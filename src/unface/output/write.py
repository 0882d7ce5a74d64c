"""Files that appear whole or not at all: written under a temporary name, flushed to disk, then renamed.

An unfinished file is locked while it is written: one that nobody holds was left by a killed process, and the next to
write the same file removes it. Modes follow the process's umask; ``private`` files are readable by their owner alone
from the first byte on.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from unface.errors import UnfaceError, reason, short_name

SEE_TO_IT = "see to that and give the same command again"
"""What to do about a full disk, or a missing permission."""
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_TOKEN = 4  # bytes, in the names of unfinished files


class OutputError(UnfaceError):
    """Writing failed (full disk, no permission). No single input is at fault, so other outputs would fail too."""

    code = "output"


@contextmanager
def staged(path: Path, *, private: bool = False, option: str | None = None, replace: bool = True) -> Iterator[Path]:
    """A temporary name for a file, renamed to ``path`` at the end of the block.

    It replaces what is there, or without ``replace`` refuses that: another run may have begun and ended meanwhile.
    ``option`` is the command-line option that named ``path``: a failure then advises another value for it.
    """
    with _failure_in_one_line(path, option), _unfinished(path, private=private) as unfinished:
        yield unfinished
        if not replace:
            sync(unfinished)
            _require_free(unfinished, path)
        publish(unfinished, path)


def _require_free(unfinished: Path, path: Path) -> None:
    """Take the name in one step, so that of two runs only one gets it."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise OutputError(
            f"{short_name(path)}: another run has written it meanwhile; choose another OUT or pass --force"
        ) from None
    except OSError:
        pass  # a file system without hard links: renaming decides


def write_file(path: Path, content: bytes, *, private: bool = False, option: str | None = None) -> None:
    """One file; see ``staged``."""
    with staged(path, private=private, option=option) as unfinished:
        unfinished.write_bytes(content)


def write_files(folder: Path, texts: Mapping[str, str], private: Mapping[str, str | None]) -> None:
    """Several files of one result: none is renamed before all are written.

    ``private`` files contain names of people. One that is None is removed if an earlier run left it.
    """
    with _failure_in_one_line(folder, "--out"), folder_for_output(folder), ExitStack() as stack:
        unfinished: dict[str, Path] = {}
        for name, text in (*private.items(), *texts.items()):
            if text is None:
                _remove_abandoned(folder, name)
                continue
            unfinished[name] = stack.enter_context(_unfinished(folder / name, private=name in private))
            with unfinished[name].open("w", encoding="utf-8", newline="") as file:
                file.write(text)
            sync(unfinished[name])
        for name, path in unfinished.items():
            path.replace(folder / name)
        for name in private.keys() - unfinished.keys():
            (folder / name).unlink(missing_ok=True)
        sync(folder)


@contextmanager
def folder_for_output(folder: Path, *, private: bool = False) -> Iterator[None]:
    """Make a folder, and those above it; a ``private`` one is open to its owner alone.

    If the block fails, folders that were made here and hold nothing are removed again.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(PRIVATE_FOLDER if private else 0o777, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for one in made:
                one.rmdir()
        raise


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder in ``parent``, so that what is written in it can be renamed into place; removed at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(parent)
    with ExitStack() as held:
        folder = _held(held, lambda: parent / f".{secrets.token_hex(_TOKEN)}.tmp", Path.mkdir)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _unfinished(path: Path, *, private: bool) -> Iterator[Path]:
    """A new file beside ``path`` to be renamed to it; removed at the end, and if the process is killed, by the next."""
    _remove_abandoned(path.parent, path.name)
    with ExitStack() as held:
        unfinished = _held(
            held,
            lambda: path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN)}.tmp"),
            partial(new_file, private=private),
        )
        try:
            yield unfinished
        finally:
            unfinished.unlink(missing_ok=True)


def _held(held: ExitStack, name: Callable[[], Path], make: Callable[[Path], None]) -> Path:
    """Make a file or folder and lock it until ``held`` ends: the system drops the lock of a process that is killed."""
    from filelock import lock_descriptor  # here, because reading a result needs no lock

    while True:
        path = name()
        make(path)
        try:
            descriptor = _opened(path)
            held.callback(os.close, descriptor)
            if not lock_descriptor(descriptor, blocking=False):
                continue
        except FileNotFoundError:
            continue
        except OSError:
            return path  # no locks here, so nothing is removed as abandoned either
        if _leads_to(path, descriptor):
            return path
        # Another run found it before it was locked, took it for an abandoned one and removed it.


def unfinished_files(folder: Path, name: str | None = None) -> list[Path]:
    """What is being written for ``name`` in a folder, or was when its maker was killed; without it, scratch folders."""
    begin = "." if name is None else f".{name}."
    pattern = re.compile(re.escape(begin) + rf"[0-9a-f]{{{2 * _TOKEN}}}\.tmp")
    with suppress(OSError):
        return [entry for entry in folder.iterdir() if pattern.fullmatch(entry.name)]
    return []


def _remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove unfinished files for ``name`` in a folder, or scratch folders, whose makers were killed."""
    from filelock import lock_descriptor  # here, because reading a result needs no lock

    for left in unfinished_files(folder, name):
        with suppress(OSError), ExitStack() as stack:
            descriptor = _opened(left)
            stack.callback(os.close, descriptor)
            if lock_descriptor(descriptor, blocking=False) and _leads_to(left, descriptor):
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()


def _opened(path: Path) -> int:
    """For a lock; a link is not followed, and a pipe is not waited for."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


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
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE if private else 0o666))


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
