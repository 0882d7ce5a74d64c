"""Reading over HTTP with nothing but the standard library: whole, or only the bytes that are asked for."""

import base64
import io
import ssl
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPResponse
from typing import IO
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from unface._version import __version__

_SECONDS = 60.0
_BUFFER = 1 << 18
FAILURES = (OSError, HTTPException)  # what any request may end in; URLError and timeouts are OSErrors


@dataclass(frozen=True)
class Web:
    """How to ask: with which certificates, and which address's name and password."""

    certificates: str | None = None
    login: str = ""  # an address with "name:password@"; sent to that host alone

    def open(self, address: str, **headers: str) -> HTTPResponse:
        """The answer to a GET, redirects followed; HTTPError for anything but 2xx."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise OSError(f"{parts.scheme or 'no'} address where http or https is expected")
        request = Request(_bare(address), headers={"User-Agent": f"unface/{__version__}", **headers})
        who = _login(address) or (_login(self.login) if urlsplit(self.login).hostname == parts.hostname else None)
        if who:
            request.add_unredirected_header("Authorization", f"Basic {who}")  # not told to where a redirect leads
        answer = _opener(self.certificates).open(request, timeout=_SECONDS)
        if not isinstance(answer, HTTPResponse):
            raise OSError("a redirect led away from http")
        return answer

    def seekable(self, address: str) -> IO[bytes] | HTTPResponse:
        """The file as if it lay here, if the server sends ranges; else the answer that holds the whole of it."""
        answer = self.open(address, Range="bytes=0-0", **{"Accept-Encoding": "identity"})
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if not total.isdigit():
            return answer
        answer.close()
        return io.BufferedReader(_Ranges(self, address, int(total)), _BUFFER)


@cache
def _opener(certificates: str | None) -> OpenerDirector:
    return build_opener(HTTPSHandler(context=ssl.create_default_context(cafile=certificates)))


def host_of(address: str) -> str:
    """What may be said of an address aloud."""
    return urlsplit(address).hostname or urlsplit(address).scheme or "?"


def told(error: Exception) -> str:
    """A failure in a few words, without addresses in it."""
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    cause = getattr(error, "reason", None)
    inner = cause if isinstance(cause, Exception) else error
    words = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(words).split())[:120]


class _Ranges(io.RawIOBase):
    """A file on a server; reading on is one request, reading elsewhere another."""

    def __init__(self, web: Web, address: str, size: int) -> None:
        self._web, self._address, self._size = web, address, size
        self._at = 0
        self._answer: HTTPResponse | None = None
        self._answer_at = -1

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("before the beginning of the file")
        self._at = start + offset
        return self._at

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # the stub's type differs between versions
        if self._at >= self._size or not len(buffer):
            return 0
        if self._answer is None or self._answer_at != self._at:
            self._ask()
        assert self._answer is not None
        count = self._answer.readinto(buffer)
        if not count:
            raise OSError("the server stopped in the middle of the file")
        self._at += count
        self._answer_at = self._at
        return count

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
        super().close()

    def _ask(self) -> None:
        if self._answer is not None:
            self._answer.close()
        answer = self._web.open(self._address, Range=f"bytes={self._at}-", **{"Accept-Encoding": "identity"})
        if answer.status != 206 or not answer.headers.get("Content-Range", "").startswith(f"bytes {self._at}-"):
            answer.close()
            raise OSError("the server sent other bytes than were asked for")
        self._answer, self._answer_at = answer, self._at


def _login(address: str) -> str | None:
    parts = urlsplit(address)
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode("ascii")


def _bare(address: str) -> str:
    """The address without name, password and fragment."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
