"""A face system behind HTTP: one POST for each picture, no redirects, no proxies, nothing sent twice.

What did not arrive, may have arrived, and was refused are kept apart, since only the first may be sent again.
"""

import base64
import json
import os
import secrets
import select
from collections.abc import Callable, Sequence
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NoReturn
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from unface._version import __version__
from unface.errors import UnfaceError, is_unescaped, reason, without_secrets
from unface.validate.ports import Lost, NotSent, Picture, Refused
from unface.validate.targets import HttpForm, number_of

_LARGEST_ANSWER = 1 << 20
_LATER = (429, 503)
_OVER = (401, 402, 403, 404, 405, 407, 410, 451)
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
        named = [url, *form.fields.values()]
        if not any("{person}" in text for text in named):
            raise UnfaceError(f"{without_secrets(url)}: does not say who is compared; put {{person}} in URL or --field")
        if form.body not in ("picture", "form", "json"):
            raise UnfaceError(f"--body {form.body}: expected picture, form or json")
        if (form.body == "picture") == any("{picture}" in text for text in form.fields.values()):
            raise UnfaceError("--body form and json need one --field NAME={picture}; --body picture has no fields")
        self.name, self.decisions_only = without_secrets(url), decisions_only
        self._parts, self._form = parts, form
        self._headers = {name: _from_environment(name, variable) for name, variable in form.headers.items()}
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
        if response.status in _LATER:
            raise NotSent(
                f"{self.name} answers {_status(response)}, too many questions", _retry_after(response.headers)
            )
        if 200 <= response.status < 300:
            return self._number(content)
        said = " ".join(content[:200].decode(errors="replace").split())
        said = f": {said}" if said.isprintable() and said else ""
        if 300 <= response.status < 400:
            raise Refused(f"{self.name} redirects ({_status(response)}); give the address that it leads to")
        if response.status in _OVER:
            raise Refused(f"{self.name} answers {_status(response)}{said}")
        raise Lost(f"{self.name} answers {_status(response)}{said}")

    def _post(self, person: str, picture: Picture, leaving: Callable[[], None]) -> tuple[HTTPResponse, bytes]:
        body, kind = self._body(person, picture)
        path = (self._parts.path or "/").replace("{person}", quote(person, safe=""))
        query = self._parts.query.replace("{person}", quote(person, safe=""))
        headers = {"User-Agent": f"unface/{__version__}", "Accept": "application/json", "Content-Type": kind}
        connection = self._connected()
        connection.request("POST", f"{path}?{query}".rstrip("?"), body=body, headers={**headers, **self._headers})
        leaving()
        try:
            connection.send_held()
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that refuses early answers before it has read everything
        except (OSError, HTTPException) as error:
            self._lost(error)
        try:
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER)
        except (OSError, HTTPException) as error:
            self._lost(error)
        if response.will_close or not response.isclosed():
            self._close()
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
            made.connect()
        except OSError as error:
            made.close()
            raise NotSent(f"{self.name}: no connection ({reason(error)})") from None
        self._connection = made
        return made

    def _lost(self, error: Exception) -> NoReturn:
        self._close()
        why = f"no answer within {self._form.timeout:g} s" if isinstance(error, TimeoutError) else reason(error)
        raise Lost(f"{self.name}: {why}") from None

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
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
            parts.append(f"{head}\r\n\r\n".encode() + (picture.content if is_picture else value.encode()) + b"\r\n")
        return b"".join(parts) + f"--{border}--\r\n".encode(), f"multipart/form-data; boundary={border}"

    def _number(self, content: bytes) -> float:
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            start = content[:40].decode(errors="replace")
            raise Refused(f"{self.name} answered {start!r}, which is not JSON") from None
        for key in self._form.score_path.split("."):
            there = value
            if isinstance(there, dict) and key in there:
                value = there[key]
            elif isinstance(there, list) and key.isdecimal() and int(key) < len(there):
                value = there[int(key)]
            else:
                keys = ", ".join(sorted(map(str, there))[:8]) if isinstance(there, dict) else type(there).__name__
                raise Refused(
                    f"{self.name}: the answer has no {self._form.score_path!r} (there is {keys}); correct --score-path"
                )
        return number_of(value, self.name, decisions_only=self.decisions_only)


class _Holding(HTTPConnection):
    """Sends a request in one piece, so that it is counted right before all of it leaves."""

    _held: bytes = b""

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Keep it."""
        self._held += data

    def send_held(self) -> None:
        """Send what was kept."""
        held, self._held = self._held, b""
        self.sock.sendall(held)


class _HoldingTls(_Holding, HTTPSConnection):
    pass


def _from_environment(header: str, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise UnfaceError(f"--header-env {header}={variable}: the environment variable {variable} is not set")
    return value


def _retry_after(headers: Message) -> float | None:
    said = headers.get("Retry-After", "")
    return float(said) if said.isdecimal() and len(said) < 8 else None


def _status(response: HTTPResponse) -> str:
    return f"{response.status} {response.reason}".strip()
