"""Taking single files out of a package on the Python index that pip is set to use; nothing is installed or run.

The index is read as PEP 503 pages or PEP 691 JSON. Of a wheel only the wanted members are fetched, by HTTP ranges;
docs/decisions.md says why this is not left to pip or to another library.
"""

import base64
import configparser
import io
import json
import lzma
import os
import re
import shutil
import ssl
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from unface._version import __version__
from unface.models.card import Package, Part
from unface.models.store import BLOCK, Mismatch

_PUBLIC = "https://pypi.org/simple"
_SECTIONS = ("global", "install", "download")
_ADDRESS = "index-url"
_MORE = "extra-" + _ADDRESS
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_LARGEST_PAGE = 64 << 20  # bytes of one package's page
_BUFFER = 1 << 18
_SECONDS = 60.0
_FAILURES = (OSError, HTTPException)  # what any request may end in; URLError and timeouts are OSErrors
# RuntimeError is how zipfile says that a member is encrypted or packed in a way it does not know.
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)

Take = Callable[[Part, Iterator[bytes]], None]


class NotOnIndex(Exception):
    """No index has it; the text says what each one answered."""


def take_members(package: Package, wanted: Mapping[str, Part], take: Take, scratch: Callable[[], IO[bytes]]) -> None:
    """Hand each wanted member of the package's wheel or source archive to ``take``, which checks its hash.

    ``scratch`` opens a temporary file, for a wheel on a server that sends no ranges.
    """
    file = _find(package)
    try:
        if file.name.endswith(".tar.gz"):
            with file.web.open(file.address) as answer:
                _take_from_tar(answer, wanted, take)
            return
        with file.web.seekable(file.address) as opened:
            if not isinstance(opened, HTTPResponse):
                _take_from_wheel(opened, wanted, take)
                return
            with scratch() as archive:
                shutil.copyfileobj(opened, archive)
                _take_from_wheel(archive, wanted, take)
    except _BROKEN as error:
        raise Mismatch(f"{file.name} is no whole archive ({type(error).__name__})") from None
    except _FAILURES as error:
        raise NotOnIndex(f"{file.name} cannot be fetched ({_words(error)})") from None


@dataclass(frozen=True)
class Settings:
    """Addresses in the order they are asked, and the certificates to trust (None: the system's)."""

    addresses: tuple[str, ...]
    certificates: str | None


def index_settings() -> Settings:
    """What pip would use: its files, later ones winning, then its environment variables."""
    chosen: dict[str, str] = {}
    for path in _pip_files():
        # pip does not expand '%' either, and a password may hold one.
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip itself says what is wrong with it
        for section in _SECTIONS:
            if parser.has_section(section):
                chosen |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    for key in (_ADDRESS, _MORE, "cert"):
        value = os.environ.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            chosen[key] = value
    addresses = [chosen.get(_ADDRESS, _PUBLIC).strip(), *chosen.get(_MORE, "").split()]
    return Settings(tuple(address.rstrip("/") for address in addresses if address), chosen.get("cert"))


def _pip_files() -> list[Path]:
    named = os.environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path.home()
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    shared = os.environ.get("XDG_CONFIG_HOME")
    places = [
        Path("/etc") / name,
        home / ".pip" / name,
        home / "Library" / "Application Support" / "pip" / name,
        (Path(shared) if shared else home / ".config") / "pip" / name,
        *([Path(os.environ["APPDATA"]) / "pip" / name] if "APPDATA" in os.environ else []),
        Path(sys.prefix) / name,
        *([Path(named)] if named else []),
    ]
    return [place for place in places if place.is_file()]


class _File(NamedTuple):
    """A file of a package, and how to ask for it."""

    web: "_Web"
    address: str
    name: str


def _find(package: Package) -> _File:
    """The file of exactly this version, a wheel before a source archive."""
    settings, answers = index_settings(), []
    for address in settings.addresses:
        if urlsplit(address).scheme not in ("http", "https"):
            continue  # folders that pip reads as an index hold what is installed here, not weights
        web, page = _Web(settings.certificates, address), f"{address}/{_normal(package.package)}/"
        host = urlsplit(address).hostname or "?"
        try:
            files = _files(web, page)
        except (*_FAILURES, ValueError) as error:
            absent = isinstance(error, HTTPError) and error.code == 404
            answers.append(
                f"{host} has no {package.package}" if absent else f"{host} cannot be asked ({_words(error)})"
            )
            continue
        fitting = sorted((not name.endswith(".whl"), name) for name in files if fits(name, package))
        if fitting:
            name = fitting[0][1]
            return _File(web, urljoin(page, files[name]), name)
        answers.append(f"{host} has no {package.package}=={package.version}")
    raise NotOnIndex(", ".join(answers) or "no index is set")


def _files(web: "_Web", page: str) -> dict[str, str]:
    """Name and address, which may be relative, of each file on a package's page."""
    with web.open(page, Accept=_ACCEPT) as answer:
        kind = answer.headers.get_content_type()
        text = answer.read(_LARGEST_PAGE).decode("utf-8")
    if kind.endswith("json"):
        return {str(file["filename"]): str(file["url"]) for file in json.loads(text)["files"]}
    links = _Links()
    links.feed(text)
    return {unquote(urlsplit(link).path.rpartition("/")[2]): link for link in links.addresses}


class _Links(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if link and tag == "a":
            self.addresses.append(link)


def fits(name: str, package: Package) -> bool:
    """Whether a file's name is that of the package's wheel or source archive, of this version and Python tag."""
    if name.endswith(".whl"):
        parts = name.removesuffix(".whl").split("-")
        right = len(parts) >= 5 and _normal(parts[0]) == _normal(package.package) and parts[1] == package.version
        return right and package.python_tag in name
    stem, _, version = name.removesuffix(".tar.gz").rpartition("-")
    return name.endswith(".tar.gz") and _normal(stem) == _normal(package.package) and version == package.version


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _take_from_wheel(archive: IO[bytes], wanted: Mapping[str, Part], take: Take) -> None:
    """From a zip file that need only be seekable, so it may lie on a server."""
    with zipfile.ZipFile(archive) as opened:
        _refuse_outsiders(opened.namelist())
        for name, part in wanted.items():
            try:
                entry = opened.getinfo(name)
            except KeyError:
                raise Mismatch(f"the archive holds no {name}") from None
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if entry.is_dir() or kind not in (0, stat.S_IFREG):
                raise Mismatch(f"{name} is no plain file")
            if part.bytes and entry.file_size != part.bytes:
                raise Mismatch(f"{part.file} has {entry.file_size:,} bytes, {part.bytes:,} expected")
            with opened.open(entry) as member:
                take(part, _blocks(member))


def _take_from_tar(archive: IO[bytes], wanted: Mapping[str, Part], take: Take) -> None:
    """From a .tar.gz, which can only be read through from its beginning."""
    left = dict(wanted)
    with tarfile.open(fileobj=archive, mode="r|gz") as opened:
        for entry in opened:
            _refuse_outsiders([entry.name])
            if entry.name not in left:
                continue
            member = opened.extractfile(entry) if entry.isreg() else None
            if member is None:
                raise Mismatch(f"{entry.name} is no plain file")
            take(left.pop(entry.name), _blocks(member))
    if left:
        raise Mismatch(f"the archive holds no {next(iter(left))}")


def _refuse_outsiders(names: list[str]) -> None:
    """An archive with a path that leads out of it was made to do harm, so nothing is taken from it."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or any(part.endswith(":") for part in path.parts[:1]):
            raise Mismatch(f"the archive holds {name!a}, which leads out of it")


def _blocks(member: IO[bytes]) -> Iterator[bytes]:
    while block := member.read(BLOCK):
        yield block


@dataclass(frozen=True)
class _Web:
    """How to ask: with which certificates, and which address's name and password."""

    certificates: str | None
    login: str  # an address with "name:password@"; sent to that host alone

    def open(self, address: str, **headers: str) -> HTTPResponse:
        """The answer to a GET, redirects followed; HTTPError for anything but 2xx."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise OSError(f"{parts.scheme or 'no'} address where http or https is expected")
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        request = Request(bare, headers={"User-Agent": f"unface/{__version__}", **headers})
        known = parts if parts.username is not None else urlsplit(self.login)
        if known.username is not None and known.hostname == parts.hostname:
            pair = f"{unquote(known.username)}:{unquote(known.password or '')}"
            # Not sent to where a redirect leads.
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")
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


class _Ranges(io.RawIOBase):
    """A file on a server; reading on is one request, reading elsewhere another."""

    def __init__(self, web: _Web, address: str, size: int) -> None:
        self._web, self._address, self._size = web, address, size
        self._at = 0
        self._answer: HTTPResponse | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, origin: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[origin]
        if at < 0:
            raise OSError("before the beginning of the file")
        if at != self._at:
            self._hang_up()
        self._at = at
        return at

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # the stub's type differs between versions
        if self._at >= self._size or not len(buffer):
            return 0
        if self._answer is None:
            answer = self._web.open(self._address, Range=f"bytes={self._at}-", **{"Accept-Encoding": "identity"})
            if answer.status != 206 or not answer.headers.get("Content-Range", "").startswith(f"bytes {self._at}-"):
                answer.close()
                raise OSError("the server sent other bytes than were asked for")
            self._answer = answer
        count = self._answer.readinto(buffer)
        if not count:
            raise OSError("the server stopped in the middle of the file")
        self._at += count
        return count

    def close(self) -> None:
        self._hang_up()
        super().close()

    def _hang_up(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def _words(error: Exception) -> str:
    """A failure in a few words, without addresses in it."""
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    cause = getattr(error, "reason", None)
    inner = cause if isinstance(cause, Exception) else error
    words = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(words).split())[:120]
