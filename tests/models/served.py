"""A Python index on this machine, good or bad as a test asks, and small packages and cards to go with it."""

import base64
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from unface.models import Card, Package, card

CONTENT = bytes(range(256)) * 2000
MEMBER = "tiny/models/net.onnx"
JSON_PAGE = "application/vnd.pypi.simple.v1+json"


@dataclass
class Index:
    """What the server has and how it behaves; ``asked`` is what it was asked for."""

    files: dict[str, bytes | Path] = field(default_factory=dict)
    ranges: bool = True
    pages: str = "json"  # or "html"
    login: str = ""
    cut: int = 0  # bytes left out at the end of each file, as when a connection breaks
    elsewhere: str = ""  # the files' own server, if it is another one
    redirect: str = ""  # the same, but found out only when a file is asked for
    address: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # path, Range, Authorization
    sent: int = 0

    def page(self) -> tuple[str, bytes]:
        links = {name: f"{self.elsewhere or '../..'}/files/{name}#sha256=0" for name in self.files}
        if self.pages == "json":
            files = [{"filename": name, "url": link, "hashes": {}} for name, link in links.items()]
            return JSON_PAGE, json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
        anchors = "".join(f'<a href="{link}">{name}</a><br>' for name, link in links.items())
        return "text/html", f"<!DOCTYPE html><html><body>{anchors}</body></html>".encode()


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    """The index at ``index.address`` for the duration of a test."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
            expected = "Basic " + base64.b64encode(index.login.encode()).decode()
            if index.login and self.headers.get("Authorization") != expected:
                self.send_error(401)
            elif self.path.startswith("/files/") and index.redirect:
                self.answer(302, b"", {"Location": index.redirect + self.path})
            elif self.path.startswith("/files/") and self.path.removeprefix("/files/") in index.files:
                held = index.files[self.path.removeprefix("/files/")]
                self.give(held if isinstance(held, bytes) else held.read_bytes())
            elif self.path in {f"/index/{package_of(name)}/" for name in index.files}:
                kind, page = index.page()
                self.answer(200, page, {"Content-Type": kind})
            else:
                self.send_error(404)

        def give(self, content: bytes) -> None:
            asked = self.headers.get("Range", "").removeprefix("bytes=")
            if not asked or not index.ranges:
                self.answer(200, content, {}, cut=index.cut)
                return
            start, _, end = asked.partition("-")
            last = min(int(end or len(content)), len(content) - 1)
            told = {"Content-Range": f"bytes {start}-{last}/{len(content)}"}
            self.answer(206, content[int(start) : last + 1], told, cut=index.cut if not end else 0)

        def answer(self, status: int, content: bytes, headers: Mapping[str, str], cut: int = 0) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for start in range(0, len(content) - cut, 1 << 16):
                    self.wfile.write(content[start : min(start + (1 << 16), len(content) - cut)])
                    index.sent += 1 << 16
            except OSError:
                pass  # the other side has read enough
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()


def package_of(file: str) -> str:
    """The name in an address of the package that a file belongs to."""
    return re.split(r"-\d", file)[0].replace("_", "-").lower()


def wheel(members: Mapping[str, bytes] | None = None) -> bytes:
    """A zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members or {MEMBER: CONTENT}).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def source_archive(members: Mapping[str, bytes]) -> bytes:
    """A .tar.gz with these members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def tiny_card(
    content: bytes = CONTENT, *, member: str = MEMBER, version: str = "1.0", tag: str = "", research_only: bool = False
) -> Card:
    """A card whose file is a member of the package tiny-net."""
    digest = hashlib.sha256(content).hexdigest()
    model = card("sface")
    return replace(
        model,
        name="tiny",
        file=member.rpartition("/")[2],
        bytes=len(content),
        sha256=digest,
        licence=replace(model.licence, research_only=research_only),
        sources=(Package("tiny-net", version, member, len(content), digest, tag),),
    )
