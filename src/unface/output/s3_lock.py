"""The lock of an output on S3: an object that only one run can make (If-None-Match) or take over (If-Match).

pyarrow writes objects without conditions, so the lock alone is written by obstore.
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from unface.errors import UnfaceError
from unface.output.lock import renewing
from unface.output.place import Place, why
from unface.output.write import OutputError

_PATIENCE: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}


@contextmanager
def s3_lock(place: Place, name: str, busy: UnfaceError, renewed_s: float, abandoned_s: float) -> Iterator[None]:
    """Clocks of two machines are never compared: whoever finds a lock watches whether its holder renews it."""
    try:
        from obstore.exceptions import PreconditionError
    except ImportError:
        raise UnfaceError(
            f"{place.shown}: a lock on S3 needs obstore, not installed; pip install 'unface[s3]'"
        ) from None
    lock = _Lock(place, name)
    pause, lost = threading.Event(), threading.Event()
    with lock.failing():
        tag = lock.taken(busy, pause, renewed_s / 5, abandoned_s)

    def renew() -> None:
        held, count = tag, 0
        while not pause.wait(renewed_s):
            count += 1
            try:
                held = lock.put(count, {"e_tag": held})
            except PreconditionError:  # this process was stopped for so long that another took it over
                lost.set()
                return
            except Exception:  # a store that fails once answers the next time, or the run's files fail too
                continue

    with renewing(renew, pause, lock.drop):
        yield
    if lost.is_set():
        raise UnfaceError(f"{place.shown}: another process took it over while this one was paused; run it again")


class _Lock:
    """One object, and the token of this run in it."""

    def __init__(self, place: Place, name: str) -> None:
        import obstore
        from obstore.store import S3Store

        self._client: Any = obstore
        self._place = place
        bucket, _, self._key = place.path(name).partition("/")
        self._mine = secrets.token_hex(8)
        with self.failing():
            self._store: Any = S3Store(bucket, retry_config=_PATIENCE, **_settings(place.address))

    @contextmanager
    def failing(self) -> Iterator[None]:
        try:
            yield
        except UnfaceError:
            raise
        except Exception as error:
            shown = self._place.shown
            raise OutputError(f"{shown}: its lock cannot be written ({why(error, self._place.address)})") from None

    def put(self, count: int, mode: str | dict[str, str]) -> str:
        """Its new tag; AlreadyExistsError or PreconditionError if it is not as ``mode`` says."""
        tag: str = self._client.put(self._store, self._key, f"{self._mine} {count}".encode(), mode=mode)["e_tag"]
        return tag

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
        content = bytes(self._client.get(self._store, self._key).bytes())
        if content.startswith(self._mine.encode()):
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
