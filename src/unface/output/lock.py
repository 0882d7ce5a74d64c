"""One run at a time: a lock of the operating system on this machine, a renewed object in an object store.

On S3 only one run can make that object (If-None-Match) or take it over (If-Match). pyarrow writes objects without
conditions, so the lock alone is written by obstore.

A run that was killed blocks nobody, or in an object store for a few seconds.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from filelock import lock_descriptor

from unface.errors import UnfaceError, reason
from unface.output.place import OWN, Place, why
from unface.output.taken import opened_file, opened_folder
from unface.output.write import OutputError

_LOCK = f"{OWN}/lock"
_RENEWED_S = 5.0
# A lock that was not renewed for this long belongs to a run that was killed.
_ABANDONED_S = 15.0


Held = Callable[[], None]
"""Refuses to go on where another run took the lock over meanwhile."""


@contextmanager
def run_lock(place: Place, option: str = "--out") -> Iterator[Held]:
    """Refuse a second run that writes to ``place``; ``option`` named the place on the command line.

    A lock in an object store is lost by a run that is paused, or cut off from the store, for 15 seconds: what must not
    be written then is written after the yielded function was called.
    """
    busy = UnfaceError(f"{place.shown}: another process is writing it; wait for it or choose another {option}")
    if place.local:
        held = _folder_lock(place, busy, option)
    elif place.files.type_name == "s3":
        held = s3_lock(place, _LOCK, busy, _RENEWED_S, _ABANDONED_S)
    else:
        held = _object_lock(place, busy)
    with held as still_held:
        yield still_held


def _always() -> None:
    """What the operating system locks is not lost."""


@contextmanager
def file_lock(path: Path, busy: str) -> Iterator[None]:
    """Lock an existing file, which is neither changed nor removed; ``busy`` is the message if another run holds it."""
    with path.open("rb") as file:
        if not lock_descriptor(file.fileno(), blocking=False):
            raise UnfaceError(busy)
        yield


@contextmanager
def _folder_lock(place: Place, busy: UnfaceError, option: str) -> Iterator[Held]:
    try:
        with opened_folder(place.root, OWN, make=True, private=place.private):
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
        yield _always


@contextmanager
def _object_lock(place: Place, busy: UnfaceError) -> Iterator[Held]:
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
        yield _always


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


_PATIENCE: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}


@contextmanager
def s3_lock(place: Place, name: str, busy: UnfaceError, renewed_s: float, abandoned_s: float) -> Iterator[Held]:
    """Clocks of two machines are never compared: whoever finds a lock watches whether its holder renews it."""
    try:
        from obstore.exceptions import PreconditionError
    except ImportError:
        raise UnfaceError(
            f"{place.shown}: a lock on S3 needs obstore, not installed; pip install 'unface[s3]'"
        ) from None
    lock = _Lock(place, name, renewed_s)
    pause, lost = threading.Event(), threading.Event()
    with lock.failing():
        tag = lock.taken(busy, pause, renewed_s / 5, abandoned_s)

    def renew() -> None:
        held, count = tag, 0
        while not pause.wait(renewed_s):
            count += 1
            # A store that fails once answers the next time, or the run's files fail too.
            with suppress(Exception):
                try:
                    held = lock.put(count, {"e_tag": held}, brisk=True)
                except PreconditionError:
                    # Either an answer was lost on the way, and the request repeated, or this process was stopped for so
                    # long that another took the lock over.
                    mine = lock.own_tag()
                    if mine is None:
                        lost.set()
                        return
                    held = mine

    def still_held() -> None:
        if lost.is_set():
            raise UnfaceError(f"{place.shown}: another process took it over while this one was paused; run it again")

    with renewing(renew, pause, lock.drop):
        yield still_held
    still_held()


class _Lock:
    """One object, and the token of this run in it."""

    def __init__(self, place: Place, name: str, renewed_s: float) -> None:
        import obstore
        from obstore.store import S3Store

        self._client: Any = obstore
        self._place = place
        bucket, _, self._key = place.path(name).partition("/")
        self._mine = secrets.token_hex(8)
        with self.failing():
            settings = _settings(place.address)
            self._store: Any = S3Store(bucket, retry_config=_PATIENCE, **settings)
            # A renewal that hangs is given up before the lock looks abandoned, and tried anew.
            settings["client_options"] = settings.get("client_options", {}) | {"timeout": timedelta(seconds=renewed_s)}
            brisk: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=renewed_s)}
            self._brisk: Any = S3Store(bucket, retry_config=brisk, **settings)

    @contextmanager
    def failing(self) -> Iterator[None]:
        try:
            yield
        except UnfaceError:
            raise
        except Exception as error:
            shown = self._place.shown
            raise OutputError(f"{shown}: its lock cannot be written ({why(error, self._place.address)})") from None

    def put(self, count: int, mode: str | dict[str, str], *, brisk: bool = False) -> str:
        """Its new tag; AlreadyExistsError or PreconditionError if it is not as ``mode`` says."""
        store = self._brisk if brisk else self._store
        tag: str = self._client.put(store, self._key, f"{self._mine} {count}".encode(), mode=mode)["e_tag"]
        return tag

    def own_tag(self) -> str | None:
        """Its tag, if this run wrote it last; None if another did, or it is gone."""
        try:
            there = self._client.get(self._brisk, self._key)
        except FileNotFoundError:
            return None
        tag: str = there.meta["e_tag"]
        return tag if bytes(there.bytes()).startswith(self._mine.encode()) else None

    def taken(self, busy: UnfaceError, pause: threading.Event, step_s: float, abandoned_s: float) -> str:
        """The tag of the lock, made or taken over; refused if another run holds it."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        seen, waited = None, 0.0
        while True:
            try:
                tag = self.put(0, "create")
                break
            except AlreadyExistsError:
                pass
            try:
                there = self._client.head(self._store, self._key)["e_tag"]
            except FileNotFoundError:
                continue  # its holder has just ended
            if seen not in (None, there):
                raise busy
            if waited >= abandoned_s:
                try:
                    return self.put(0, {"e_tag": there})
                except (PreconditionError, FileNotFoundError):
                    raise busy from None
            seen = there
            pause.wait(step_s)
            waited += step_s
        # A store that knows no conditions would let everybody in.
        with suppress(AlreadyExistsError):
            self.put(0, "create")
            self.drop()
            raise UnfaceError(
                f"{self._place.shown}: this store ignores If-None-Match, so two runs could write at once; use another"
            )
        return tag

    def drop(self) -> None:
        tag = self.own_tag()
        if tag is not None:
            # S3 deletes without conditions: renewed first, so that nobody finds it abandoned just before it is deleted.
            self.put(0, {"e_tag": tag})
            self._client.delete(self._store, self._key)


def _settings(address: str) -> dict[str, Any]:
    """What pyarrow takes from a URL and from the environment, for obstore."""
    parts = urlsplit(address)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if override := asked.get("endpoint_override"):
        endpoint = override if "://" in override else f"{asked.get('scheme', 'https')}://{override}"
    settings: dict[str, Any] = {}
    if endpoint:
        settings["endpoint"] = endpoint
        settings["client_options"] = {"allow_http": endpoint.startswith("http://")}
    if region := asked.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        settings["region"] = region
    if parts.username and parts.password:
        settings["access_key_id"], settings["secret_access_key"] = unquote(parts.username), unquote(parts.password)
    elif "AWS_ACCESS_KEY_ID" not in os.environ:
        # Profiles are read by boto3 alone; without it a role of the machine is asked for.
        with suppress(ImportError):
            from obstore.auth.boto3 import Boto3CredentialProvider

            settings["credential_provider"] = Boto3CredentialProvider()
    return settings
