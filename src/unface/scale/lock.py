"""One run on one output: held by the system where that is a folder, by an object that is renewed where it is not."""

import fcntl
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.scale.place import OWN, Place
from unface.scale.sink import OutputError

_LOCK = f"{OWN}/lock"
_RENEWED_S = 5.0
# One that was not renewed for so long was left by a run that was killed.
_ABANDONED_S = 15.0


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Refuse while another run writes there. A lock of a killed run holds nobody up, or for some seconds."""
    with _held_folder(place) if place.local else _held_object(place):
        yield


@contextmanager
def _held_folder(place: Place) -> Iterator[None]:
    path = Path(place.path(_LOCK))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise OutputError(f"{place.shown}: cannot be written ({reason(error)}); choose another OUT") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(place) from None
        except OSError as error:
            told = f"{place.shown}: its file system knows no locks ({reason(error)}); choose another OUT"
            raise OutputError(told) from None
        yield


@contextmanager
def _held_object(place: Place) -> Iterator[None]:
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
            raise _taken(place)
        seen = now
    place.write(_LOCK, f"{mine} 0".encode())
    # Of two that began in the same moment the one that wrote last goes on.
    pause.wait(_RENEWED_S / 5)
    if place.read(_LOCK) != f"{mine} 0".encode():
        raise _taken(place)

    def renew() -> None:
        count = 0
        while not pause.wait(_RENEWED_S):
            count += 1
            with suppress(UnfaceError):  # a store that does not answer once does so the next time, or files fail too
                place.write(_LOCK, f"{mine} {count}".encode())

    renewing = threading.Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        pause.set()
        renewing.join()
        with suppress(UnfaceError):  # nobody renews it: the next run sees that
            place.drop(_LOCK)


def _taken(place: Place) -> UnfaceError:
    return UnfaceError(f"{place.shown}: another process is writing it; wait for it or choose another OUT")
