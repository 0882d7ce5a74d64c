"""A live face service on the loopback for tests: the example server, with faults that tests switch on."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from examples.face_server import Service, handler_of

from unface.validate import Picture


def pictures(count: int, start: int = 0) -> list[Picture]:
    return [Picture(f"q{number}", f"face {number}".encode()) for number in range(start, start + count)]


def similarity(person: str, picture: bytes) -> float:
    """A number from 0 to 1 that depends on both alone."""
    return int.from_bytes(sha256(person.encode() + picture).digest()[:4]) / 2**32


class Face:
    """The server's own account: every question that reached the recogniser, in order."""

    def __init__(self, **hardening: object) -> None:
        self.seen: list[tuple[str, bytes]] = []
        self.service = Service(self.compare, {"p0", "p1", "p2", "p3"}, **hardening)  # type: ignore[arg-type]
        self.fault: Callable[[int], bytes | None] = lambda number: None
        """Of the n-th question from one: None answers as usual, b"" drops the connection, else the answer's body."""

    def compare(self, person: str, picture: bytes) -> float:
        self.seen.append((person, picture))
        return similarity(person, picture)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no news."""


@contextmanager
def served(face: Face) -> Iterator[str]:
    """The address while it runs."""

    class Handler(handler_of(face.service)):  # type: ignore[misc]
        def reply(self, status: int, said: dict[str, object]) -> None:
            fault = face.fault(len(face.seen)) if status == 200 else None
            if fault is None:
                super().reply(status, said)
            elif fault:
                self.send_response(200)
                self.send_header("Content-Length", str(len(fault)))
                self.end_headers()
                self.wfile.write(fault)
            else:
                self.close_connection = True

    assert issubclass(Handler, BaseHTTPRequestHandler)
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/score/{{person}}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(value: object) -> bytes:
    return json.dumps(value).encode()
