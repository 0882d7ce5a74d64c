"""A small face-verification service on the standard library, as an example of how to harden one.

    python examples/face_server.py PEOPLE_FOLDER [--port 8000] [--digits 1] [--decisions 0.4] [--limit 100] [--rate 5]

It enrols the first picture of each person in PEOPLE_FOLDER and answers `POST /score/<person>` with {"score": 0.31}.
Each hardening is one line in `Service.answer`: rounding, decisions in place of scores, a limit of questions for each
client, and a limit for each second. `unface validate` says what each of them buys.
Needs `pip install 'unface[images]'`.
"""

import argparse
import json
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

LARGEST = 10 << 20  # bytes of a picture


@dataclass
class Service:
    """What the service knows and how it answers. ``compare(person, picture)`` is the face recogniser."""

    compare: Callable[[str, bytes], float]
    people: set[str]
    digits: int | None = None
    """Round scores to this many decimals. It buys little: validate it before you rely on it."""
    threshold: float | None = None
    """Answer accepted (1) or rejected (0) instead of a score. It costs an attacker many more questions."""
    limit: int | None = None
    """Questions that one client may ask; then it is banned. The most effective of all, if clients cannot be made up."""
    rate: float | None = None
    """Questions a second for each client; more are answered with 429. It only makes an attack take longer."""
    clock: Callable[[], float] = time.monotonic
    asked: Counter[str] = field(default_factory=Counter)
    _recent: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _lock: Lock = field(default_factory=Lock)

    def answer(self, client: str, person: str, picture: bytes) -> tuple[int, dict[str, object]]:
        """Status and JSON; a question counts if it gets as far as the recogniser."""
        if person not in self.people:
            return 404, {"error": "nobody of that name is enrolled"}
        with self._lock:
            if self.limit is not None and self.asked[client] >= self.limit:
                return 403, {"error": "too many questions: this client is banned"}
            if self.rate is not None:
                now, recent = self.clock(), self._recent[client]
                while recent and recent[0] <= now - 1:
                    recent.popleft()
                if len(recent) >= self.rate:
                    return 429, {"error": "too many questions at once"}
                recent.append(now)
            self.asked[client] += 1
        score = self.compare(person, picture)
        if self.threshold is not None:
            return 200, {"accepted": score >= self.threshold, "score": float(score >= self.threshold)}
        return 200, {"score": round(score, self.digits) if self.digits is not None else score}


def handler_of(service: Service) -> type[BaseHTTPRequestHandler]:
    """The HTTP side: reads a picture, asks the service, writes JSON."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer in one piece; in two it waits for the client's acknowledgement

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > LARGEST:
                self.close_connection = True
                self.reply(413, {"error": "send a picture of at most 10 MB with its length"})
                return
            picture = self.rfile.read(int(length))
            root, _, person = self.path.removeprefix("/").partition("/")
            if root != "score":
                self.reply(404, {"error": "ask for /score/<person>"})
                return
            try:
                status, said = service.answer(self.client_address[0], unquote(person), picture)
            except ValueError as error:
                status, said = 422, {"error": str(error)}
            self.reply(status, said)

        def reply(self, status: int, said: dict[str, object]) -> None:
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Who asked what is nobody's business but the service's."""

    return Handler


class Recogniser:
    """Cosine of the main faces of two pictures, by an encoder of unface."""

    def __init__(self, encoder: str, folder: Path) -> None:
        from unface.data import read_images
        from unface.faces import load_detector
        from unface.judge import load_recogniser

        self._recogniser, self._detector = load_recogniser(encoder), load_detector()
        self._enrolled: dict[str, NDArray[np.float32]] = {}
        for image in read_images(folder):
            if image.identity not in self._enrolled:
                self._enrolled[image.identity] = self._vector(image.read())

    @property
    def people(self) -> set[str]:
        return set(self._enrolled)

    def __call__(self, person: str, picture: bytes) -> float:
        return float(self._vector(picture) @ self._enrolled[person])

    def _vector(self, picture: bytes) -> NDArray[np.float32]:
        from unface.data import decode
        from unface.judge import face_frames

        frames = face_frames(decode(picture), self._detector, [self._recogniser.wanted])
        if frames is None:
            raise ValueError("no face in the picture")
        vector: NDArray[np.float32] = self._recogniser.embed([frames[0]])[0]
        return vector


def main() -> None:
    """Enrol and serve on the loopback alone."""
    parser = argparse.ArgumentParser(description="A small face-verification service, to be validated.")
    parser.add_argument("folder", type=Path, help="<person>/<picture>; the first picture of each is enrolled")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--encoder", default="sface")
    parser.add_argument("--digits", type=int, help="decimals of a score")
    parser.add_argument("--decisions", type=float, metavar="THRESHOLD", help="answer 1 or 0 instead of a score")
    parser.add_argument("--limit", type=int, help="questions of one client before it is banned")
    parser.add_argument("--rate", type=float, help="questions a second of one client")
    given = parser.parse_args()
    recogniser = Recogniser(given.encoder, given.folder)
    service = Service(recogniser, recogniser.people, given.digits, given.decisions, given.limit, given.rate)
    server = ThreadingHTTPServer(("127.0.0.1", given.port), handler_of(service))
    print(f"{len(service.people)} people enrolled; http://127.0.0.1:{server.server_port}/score/<person>", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
