"""One run at a time: a lock of the operating system on this machine, a renewed object in an object store.

On S3 that object is made under a condition, so that of two runs one gets it; see ``s3_lock``.

A run that was killed blocks nobody, or in an object store for a few seconds.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from unface.errors import UnfaceError, reason
from unface.output.links import opened_file, opened_folder
from unface.output.place import OWN, Place
from unface.output.write import OutputError

_LOCK = f"{OWN}/lock"
_RENEWED_S = 5.0
# A lock that was not renewed for this long belongs to a run that was killed.
_ABANDONED_S = 15.0


@contextmanager
def run_lock(place: Place, option: str = "--out") -> Iterator[None]:
    """Refuse a second run that writes to ``place``; ``option`` named the place on the command line."""
    busy = UnfaceError(f"{place.shown}: another process is writing it; wait for it or choose another {option}")
    if place.local:
        held = _folder_lock(place, busy, option)
    elif place.files.type_name == "s3":
        from unface.output.s3_lock import s3_lock  # here, because few outputs are there

        held = s3_lock(place, _LOCK, busy, _RENEWED_S, _ABANDONED_S)
    else:
        held = _object_lock(place, busy)
    with held:
        yield


@contextmanager
def file_lock(path: Path, busy: str) -> Iterator[None]:
    """Lock an existing file, which is neither changed nor removed; ``busy`` is the message if another run holds it."""
    with path.open("rb") as file:
        if not lock_descriptor(file.fileno(), blocking=False):
            raise UnfaceError(busy)
        yield


@contextmanager
def _folder_lock(place: Place, busy: UnfaceError, option: str) -> Iterator[None]:
    try:
        with opened_folder(place.root, OWN, make=True):
            file = os.fdopen(opened_file(place.root, _LOCK, os.O_RDWR | os.O_CREAT), "r+b")
    except OSError as error:
        raise OutputError(f"{place.shown}: cannot be written ({reason(error)}); choose another {option}") from None
    with file:
        try:
            held = lock_descriptor(file.fileno(), blocking=False)
        except OSError as error:
            raise OutputError(
                f"{place.shown}: its file system does not support locks ({reason(error)}); choose another {option}"
            ) from None
        if not held:
            raise busy
        yield


@contextmanager
def _object_lock(place: Place, busy: UnfaceError) -> Iterator[None]:
    """Clocks of two machines are never compared: whoever finds a lock watches whether its holder renews it."""
    pause = threading.Event()
    mine = secrets.token_hex(8)
    seen = place.read(_LOCK)
    waited = 0.0
    while seen is not None and waited < _ABANDONED_S:
        pause.wait(_RENEWED_S / 5)
        waited += _RENEWED_S / 5
        now = place.read(_LOCK)
        if now is not None and now != seen:
            raise busy
        seen = now
    place.write(_LOCK, f"{mine} 0".encode())
    # Of two that began at the same moment the one that wrote last continues.
    pause.wait(_RENEWED_S / 5)
    if place.read(_LOCK) != f"{mine} 0".encode():
        raise busy

    def renew() -> None:
        count = 0
        while not pause.wait(_RENEWED_S):
            count += 1
            with suppress(UnfaceError):  # a store that fails once answers the next time, or the run's files fail too
                place.write(_LOCK, f"{mine} {count}".encode())

    with renewing(renew, pause, lambda: place.drop(_LOCK)):
        yield


@contextmanager
def renewing(renew: Callable[[], None], pause: threading.Event, drop: Callable[[], None]) -> Iterator[None]:
    """Renew a lock in a thread, which ends when ``pause`` is set, and drop it at the end."""
    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        pause.set()
        thread.join()
        with suppress(Exception):  # nobody renews it, which the next run sees
            drop()
