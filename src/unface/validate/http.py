"""A face system behind HTTP: one POST for each picture, no redirects, no proxies, nothing sent twice.

What did not arrive, may have arrived, and was refused are kept apart, since only the first may be sent again. A service
may be hostile: it gets one deadline for each question however it drips, and what it says is quoted without our keys.
"""

import base64
import json
import os
import re
import secrets
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NoReturn
from urllib.parse import quote, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from unface._version import __version__
from unface.errors import UnfaceError, is_unescaped, reason, secrets_of, without_secrets
from unface.validate.ports import Lost, NotSent, Picture, PutOff, Refused
from unface.validate.targets import HttpForm, Quoting, number_of

_LARGEST_ANSWER = 1 << 20
_LATER = (429, 503)
_OVER = (401, 402, 403, 404, 405, 407, 410, 451)
_TOKEN = re.compile(r"[!#$%&'*+.^`|~\w-]+", re.ASCII)
_SIGNATURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"RIFF": "image/webp"}


class HttpTarget:
    """POST of a picture to a URL with ``{person}`` in it, or in a field."""

    batch = 1

    def __init__(self, url: str, form: HttpForm, *, decisions_only: bool = False) -> None:
        if is_unescaped(url):
            raise UnfaceError(
                f"{without_secrets(url)}: holds a password or a port above 65535; correct the URL, and put a password "
                "into --header-env"
            )
        parts = urlsplit(url)
        if parts.username or parts.password:
            raise UnfaceError(f"{without_secrets(url)}: holds a user or password; put it into --header-env instead")
        if parts.hostname is None:
            raise UnfaceError(f"{without_secrets(url)}: has no host; write https://HOST/PATH")
        _require_sendable(Quoting()(without_secrets(url)), parts.hostname, url)
        named = [url, *form.fields.values()]
        if not any("{person}" in text for text in named):
            raise UnfaceError(f"{without_secrets(url)}: does not say who is compared; put {{person}} in URL or --field")
        if form.body not in ("picture", "form", "json"):
            raise UnfaceError(f"--body {form.body}: expected picture, form or json")
        if (form.body == "picture") == any("{picture}" in text for text in form.fields.values()):
            raise UnfaceError("--body form and json need one --field NAME={picture}; --body picture has no fields")
        for name in form.fields:
            if not name.isprintable() or '"' in name:
                raise UnfaceError(f"--field {name!a}: a name has no quotes and no control characters; correct it")
        self.name, self.decisions_only = without_secrets(url), decisions_only
        self._parts, self._form = parts, form
        self._headers = {name: _from_environment(name, variable) for name, variable in form.headers.items()}
        keys = [key for key in (*secrets_of(url), *form.fields.values()) if "{" not in key]
        self._quoted = Quoting([*self._headers.values(), *keys, *map(unquote, keys)])
        self._connection: _Holding | None = None

    def reach(self) -> None:
        """See ``Reachable``."""
        self._connected()

    def score(self, person: str, pictures: Sequence[Picture]) -> NDArray[np.float64]:
        """See ``Target``."""
        return self.score_announced(person, pictures, lambda: None)

    def score_announced(
        self, person: str, pictures: Sequence[Picture], leaving: Callable[[], None]
    ) -> NDArray[np.float64]:
        """See ``Announced``."""
        return np.array([self._one(person, picture, leaving) for picture in pictures], dtype=np.float64)

    def _one(self, person: str, picture: Picture, leaving: Callable[[], None]) -> float:
        response, content = self._post(person, picture, leaving)
        status = self._quoted(f"{response.status} {response.reason}")
        if response.status in _LATER:
            raise PutOff(f"{self.name} answers {status}, too many questions", _retry_after(response.headers))
        if 200 <= response.status < 300:
            return self._number(content)
        said = self._quoted(content)
        said = f": {said}" if said else ""
        if 300 <= response.status < 400:
            raise Refused(f"{self.name} redirects ({status}); give the address that it leads to")
        if response.status in _OVER:
            raise Refused(f"{self.name} answers {status}{said}")
        raise Lost(f"{self.name} answers {status}{said}")

    def _post(self, person: str, picture: Picture, leaving: Callable[[], None]) -> tuple[HTTPResponse, bytes]:
        body, kind = self._body(person, picture)
        name = quote(person, safe="", errors="surrogateescape")
        path = (self._parts.path or "/").replace("{person}", name)
        query = self._parts.query.replace("{person}", name)
        headers = {"User-Agent": f"unface/{__version__}", "Accept": "application/json", "Content-Type": kind}
        connection = self._connected()
        connection.request("POST", f"{path}?{query}".rstrip("?"), body=body, headers={**headers, **self._headers})
        leaving()
        try:
            with connection.cut_after(self._form.timeout):
                with suppress(BrokenPipeError, ConnectionResetError):
                    # A server that refuses early answers before it has read everything.
                    connection.send_held()
                response = connection.getresponse()
                content = response.read(_LARGEST_ANSWER)
        except (OSError, HTTPException) as error:
            self._lost(error)
        missing = response.length if len(content) < _LARGEST_ANSWER else 0
        if response.will_close or not response.isclosed():
            self._close()
        if missing:
            raise Lost(f"{self.name}: the answer ended {missing:,} bytes early")
        return response, content

    def _connected(self) -> "_Holding":
        """A connection that is open; one that the server closed meanwhile shows as readable, and is made anew."""
        if self._connection is not None and self._connection.sock is not None:
            if not select.select([self._connection.sock], [], [], 0)[0]:
                return self._connection
            self._close()
        kind = _HoldingTls if self._parts.scheme == "https" else _Holding
        made = kind(str(self._parts.hostname), self._parts.port, timeout=self._form.timeout)
        try:
            with made.cut_after(self._form.timeout):
                made.connect()
        except OSError as error:
            made.hang_up()
            raise NotSent(f"{self.name}: no connection ({self._why(error)})") from None
        self._connection = made
        return made

    def _lost(self, error: Exception) -> NoReturn:
        self._close()
        raise Lost(f"{self.name}: {self._why(error)}") from None

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._form.timeout:g} s"
        return self._quoted(reason(error))

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.hang_up()
            self._connection = None

    def _body(self, person: str, picture: Picture) -> tuple[bytes, str]:
        kind = next((kind for start, kind in _SIGNATURES.items() if picture.content.startswith(start)), None)
        kind = kind or "application/octet-stream"
        fields = {name: text.replace("{person}", person) for name, text in self._form.fields.items()}
        if self._form.body == "picture":
            return picture.content, kind
        if self._form.body == "json":
            text = base64.b64encode(picture.content).decode()
            return json.dumps({name: value.replace("{picture}", text) for name, value in fields.items()}).encode(), (
                "application/json"
            )
        border = f"unface-{secrets.token_hex(16)}"
        parts = []
        for name, value in fields.items():
            is_picture = value == "{picture}"
            head = f'--{border}\r\nContent-Disposition: form-data; name="{name}"'
            head += f'; filename="picture"\r\nContent-Type: {kind}' if is_picture else ""
            content = picture.content if is_picture else value.encode(errors="surrogateescape")
            parts.append(f"{head}\r\n\r\n".encode() + content + b"\r\n")
        return b"".join(parts) + f"--{border}--\r\n".encode(), f"multipart/form-data; boundary={border}"

    def _number(self, content: bytes) -> float:
        if len(content) >= _LARGEST_ANSWER:
            raise Refused(f"{self.name} answered with {_LARGEST_ANSWER:,} bytes or more, which is no score")
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            raise Refused(f"{self.name} answered {self._quoted(content, 40)!r}, which is not JSON") from None
        for key in self._form.score_path.split("."):
            there = value
            if isinstance(there, dict) and key in there:
                value = there[key]
            elif isinstance(there, list) and key.isdecimal() and int(key) < len(there):
                value = there[int(key)]
            else:
                keys = ", ".join(sorted(there)[:8]) if isinstance(there, dict) else type(there).__name__
                raise Refused(
                    f"{self.name}: the answer has no {self._form.score_path!r} (there is {self._quoted(keys)}); "
                    "correct --score-path"
                )
        return number_of(value, self.name, self._quoted, decisions_only=self.decisions_only)


class _Holding(HTTPConnection):
    """Sends a request in one piece, so that it is counted right before all of it leaves; and can be cut."""

    _held: bytes = b""
    _wire: socket.socket | None = None

    def connect(self) -> None:
        """Keep a second handle on the connection, with which it can be cut while TLS is still being agreed on."""
        self._create_connection = self._opened
        super().connect()

    def hang_up(self) -> None:
        """Close both handles; ``close`` is called by the library too, while an answer is still being read."""
        self.close()
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Keep it."""
        self._held += data

    def send_held(self) -> None:
        """Send what was kept."""
        held, self._held = self._held, b""
        self.sock.sendall(held)

    @contextmanager
    def cut_after(self, seconds: float) -> Iterator[None]:
        """Raise TimeoutError when this time is over; a socket's own limit begins anew with every byte that arrives."""
        over = threading.Event()

        def cut() -> None:
            over.set()
            if self._wire is not None:
                with suppress(OSError):
                    self._wire.shutdown(socket.SHUT_RDWR)

        watchdog = threading.Timer(seconds, cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        except (OSError, HTTPException):
            if over.is_set():
                raise TimeoutError from None
            raise
        finally:
            watchdog.cancel()
        if over.is_set():
            raise TimeoutError

    def _opened(self, *given: object, **named: object) -> socket.socket:
        made = socket.create_connection(*given, **named)  # type: ignore[arg-type]
        self._wire = made.dup()
        return made


class _HoldingTls(_Holding, HTTPSConnection):
    pass


def _require_sendable(shown: str, host: str, url: str) -> None:
    """Refuse an address that cannot be written into a request."""
    odd = next((letter for letter in url if not "!" <= letter <= "~"), None)
    if odd is not None and odd.lower() not in host:
        raise UnfaceError(f"{shown}: has {odd!a}, which must be escaped (%20 for a space); correct the URL")
    try:
        sendable = all(0 < len(label) <= 63 for label in host.encode("idna").decode().rstrip(".").split("."))
    except UnicodeError:
        sendable = False
    if not sendable or not host.isprintable() or " " in host:
        raise UnfaceError(f"{shown}: {host!a} is no name of a host; correct the URL")


def _from_environment(header: str, variable: str) -> str:
    named = f"--header-env {Quoting()(header)}={variable}"
    if not _TOKEN.fullmatch(header):
        raise UnfaceError(f"{named}: {header!a} is no name of a header; correct it")
    value = os.environ.get(variable)
    if not value:
        raise UnfaceError(f"{named}: the environment variable {variable} is not set")
    if not (value.isprintable() and value.isascii()) or value != value.strip():
        clean = value.strip().isprintable() and value.isascii()
        fault = "begins or ends with a space or line break" if clean else "has a character"
        raise UnfaceError(f"{named}: the value of {variable} {fault} that a header cannot hold; set it without")
    return value


def _retry_after(headers: Message) -> float | None:
    said = headers.get("Retry-After", "")
    return float(said) if said.isdecimal() and len(said) < 8 else None
