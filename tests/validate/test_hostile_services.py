"""If these fail, a service under attack strikes back: it holds the run for ever, or has our key printed and saved."""

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.refusals.table import refused
from tests.validate.live import pictures
from unface.validate.ledger import Binding, opened_ledger
from unface.validate.oracle import Pace, Session
from unface.validate.targets import HttpForm, open_target

KEY = 'k3y/with+"marks"&<signs>'
"""Every escape changes it."""
OK = b"HTTP/1.1 200 OK\r\n"
Answers = Callable[[socket.socket], None]


@contextmanager
def answering(answer: Answers, questions: list[bytes] | None = None) -> Iterator[str]:
    """A service that reads one question of each connection and then does what it wants."""
    server = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def one(client: socket.socket) -> None:
        with client, suppress(OSError):
            question = b""
            while b"\r\n\r\n" not in question:
                question += client.recv(1 << 16)
            if questions is not None:
                questions.append(question)
            answer(client)

    def serve() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                client, _ = server.accept()
                threading.Thread(target=one, args=(client,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/{{person}}"
    finally:
        stopped.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def for_ever(start: bytes, again: bytes) -> Answers:
    """Never silent for as long as a time limit, and never done."""

    def answer(client: socket.socket) -> None:
        client.sendall(start)
        while True:
            client.sendall(again)
            time.sleep(0.02)

    return answer


def once(content: bytes) -> Answers:
    return lambda client: client.sendall(content)


def asked(folder: Path, url: str, form: HttpForm | None = None, count: int = 1) -> tuple[Session, str]:
    """The session and all that was saved, after so many questions."""
    path = folder / "ledger.jsonl"
    with opened_ledger(path, Binding("t", "", "", "", None)) as ledger:
        session = Session(open_target(url, form=form).target, ledger, Pace(sleep=lambda _: None))
        session.person(0, "p0", count).ask(pictures(count))
    return session, path.read_text()


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"", b"H"),
        (OK, b"X"),
        (OK + b"Content-Length: 1000000\r\n\r\n", b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (OK + b"\r\n", b" "),
    ],
    ids=["status", "headers", "body", "continue", "trailers", "chunks", "until-closed"],
)
def test_a_service_that_drips_loses_its_question_at_the_deadline(tmp_path: Path, start: bytes, again: bytes) -> None:
    with answering(for_ever(start, again)) as url:
        began = time.monotonic()
        session, saved = asked(tmp_path, url, HttpForm(timeout=0.3))
        took = time.monotonic() - began
    assert (session.ledger.counted, session.ledger.lost) == (1, 1)
    assert "no answer within 0.3 s" in saved
    assert took < 30


def test_an_answer_that_is_cut_short_is_lost_and_no_score(tmp_path: Path) -> None:
    with answering(once(OK + b'Content-Length: 40\r\n\r\n{"score": 1}')) as url:
        session, _ = asked(tmp_path, url)
    assert (session.ledger.lost, session.ended) == (1, None)


def test_an_answer_without_end_is_no_score(tmp_path: Path) -> None:
    with answering(once(OK + b"\r\n" + b" " * (1 << 21))) as url:
        session, _ = asked(tmp_path, url)
    assert session.ended is not None
    assert "1,048,576 bytes" in session.ended


ENCODED = {
    "plain": KEY,
    "bearer": f"Bearer {KEY}",
    "json": json.dumps(KEY),
    "html": escape(KEY),
    "url": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64-of-the-header": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64-for-urls": base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
}
PLACES: dict[str, Callable[[str], bytes]] = {
    "reason": lambda said: f"HTTP/1.1 403 {said}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode(),
    "refusal": lambda said: body(403, said),
    "error": lambda said: body(500, said),
    "no-json": lambda said: body(200, said),
    "after-much": lambda said: body(403, "x" * 190 + said),
    "name": lambda said: body(200, json.dumps({said: 1})),
    "text": lambda said: body(200, json.dumps({"score": said})),
    "nested": lambda said: body(200, json.dumps({"score": {"your key": [said]}})),
    "version": lambda said: f"{said} 200 OK\r\n\r\n".encode(),
}


def body(status: int, said: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(said.encode())}\r\n\r\n{said}".encode()


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_service_that_sends_our_key_back_has_it_hidden(
    tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", f"Bearer {KEY}")
    form = HttpForm(headers={"Authorization": "KEY"})
    forms = {*ENCODED.values(), KEY, json.dumps(KEY)[1:-1]}
    for place, content in PLACES.items():
        (tmp_path / place).mkdir()
        with answering(once(content(ENCODED[encoding]))) as url:
            session, saved = asked(tmp_path / place, url, form, count=5)
        assert session.ended is not None, place
        shown = session.ended + saved
        assert not [each for each in forms if each in shown or each[:12] in shown], place


def test_a_key_of_the_address_or_a_field_is_hidden_too(tmp_path: Path) -> None:
    form = HttpForm(body="form", fields={"f": "{picture}", "token": "t0ken-in-field"})
    with answering(once(body(403, "you sent t0ken-in-field and k3y in/address"))) as url:
        session, saved = asked(tmp_path, f"{url}?key=k3y%20in%2Faddress", form)
    assert session.ended is not None
    assert session.ended.endswith(": you sent … and …")
    assert "t0ken" not in saved


def test_what_a_service_says_is_one_short_line_however_odd(tmp_path: Path) -> None:
    odd = json.dumps({"k" * (1 << 19): 1, "\ud800\u202e\x1b[31m": 2})
    with answering(once(body(200, odd))) as url:
        session, _ = asked(tmp_path, url)
    assert session.ended is not None
    assert session.ended.isprintable()
    assert len(session.ended) < 400


@pytest.mark.parametrize(
    ("status", "header"), [(429, b""), (503, b"Retry-After: 1\r\n")], ids=["too-many", "unavailable"]
)
def test_every_sending_that_was_put_off_is_in_the_ledger(tmp_path: Path, status: int, header: bytes) -> None:
    """The pictures left this machine: the operator sees seven of them, and so does who reads the ledger."""
    arrived: list[bytes] = []
    with answering(
        once(f"HTTP/1.1 {status} Later\r\nConnection: close\r\nContent-Length: 0\r\n".encode() + header + b"\r\n"),
        arrived,
    ) as url:
        session, saved = asked(tmp_path, url)
    assert len(arrived) == 7
    assert (session.ledger.counted, session.ledger.put_off) == (0, 7)
    assert saved.count('"put_off"') == 7
    with opened_ledger(tmp_path / "ledger.jsonl", Binding("t", "", "", "", None)) as again:
        assert again.put_off == 7


@pytest.mark.parametrize(
    ("value", "fault"),
    [("s3cret\n", "line break"), (" s3cret", "space"), ("s3\r\ncret", "character"), ("s3crét", "character")],
)
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    value: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", value)
    with refused("validation", "--header-env X-Key=KEY") as caught:
        open_target("http://h/{person}", form=HttpForm(headers={"X-Key": "KEY"}))
    assert fault in str(caught.value)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("header", ["X Key", "X-Key\n", "X:Key", ""])
def test_a_header_that_has_no_name_is_refused(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "s3cret")
    with refused("validation", ...):
        open_target("http://h/{person}", form=HttpForm(headers={header: "KEY"}))


@pytest.mark.parametrize(
    "url",
    [
        "http://h/a b/{person}",
        "http://h/\x7f/{person}",
        "http://h/ä/{person}",
        "http://h/{person}?q=ä",
        "http://a..b/{person}",
        "http://.h/{person}",
        f"http://{'a' * 64}/{{person}}",
        f"http://{'ä' * 64}.de/{{person}}",
        "http://a b/{person}",
        "http://\x7f/{person}",
    ],
)
def test_an_address_that_cannot_be_sent_is_refused(url: str) -> None:
    with refused("validation", ...):
        open_target(url)


@pytest.mark.parametrize("url", ["http://[::1]:1/{person}", "http://münchen.example/{person}", "http://h./{person}"])
def test_an_address_that_can_be_sent_is_taken(url: str) -> None:
    assert open_target(url).kind == "http"


def test_a_person_whose_name_is_no_text_is_asked_about_by_its_bytes(tmp_path: Path) -> None:
    arrived: list[bytes] = []
    name = b"p\xff".decode(errors="surrogateescape")
    with answering(once(body(200, '{"score": 0.5}')), arrived) as url:
        target = open_target(url).target
        assert target.score(name, pictures(1)).tolist() == [0.5]
    assert arrived[0].startswith(b"POST /p%FF HTTP/1.1\r\n")
