"""If these fail, a question is not what the operator wrote down, is sent too early, too often, or counted wrongly."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.validate.live import pictures
from tests.validate.test_http import Clock
from unface._version import __version__
from unface.validate import Lost, NotSent, Picture, Refused
from unface.validate.http import HttpTarget
from unface.validate.ledger import Binding, Ledger, is_begun, opened_ledger
from unface.validate.oracle import LONGEST_WAIT, Pace, Replayed, Session
from unface.validate.targets import HttpForm, number_of, open_target

BINDING = Binding("t", "a", "b", "c", None)
Numbers = NDArray[np.float64]


@dataclass
class Wire:
    """A server that sends given answers in turn and keeps all requests."""

    answers: list[tuple[int, bytes, dict[str, str]]]
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)


@contextmanager
def wired(*answers: tuple[int, bytes] | tuple[int, bytes, dict[str, str]]) -> Iterator[tuple[Wire, str]]:
    wire = Wire([(one[0], one[1], one[2] if len(one) == 3 else {}) for one in answers])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            wire.connections.add(self.client_address[1])
            wire.requests.append((self.command, self.path, dict(self.headers), body))
            status, content, headers = wire.answers.pop(0)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield wire, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def scored(value: float) -> tuple[int, bytes]:
    return 200, json.dumps({"score": value}).encode()


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n", "image/png"),
        (b"RIFF1234WEBP", "image/webp"),
        (b"BM", "application/octet-stream"),
    ],
)
def test_the_bytes_of_a_picture_are_posted_with_their_kind(start: bytes, kind: str) -> None:
    content = start + b"rest"
    with wired(scored(0.25)) as (wire, url):
        target = HttpTarget(url + "/v1/{person}?model=a&who={person}", HttpForm())
        assert target.score("a b/c", [Picture("x", content)]).tolist() == [0.25]
    ((verb, path, headers, body),) = wire.requests
    assert (verb, path) == ("POST", "/v1/a%20b%2Fc?model=a&who=a%20b%2Fc")
    assert body == content
    assert headers["Content-Type"] == kind
    assert headers["Accept"] == "application/json"
    assert headers["User-Agent"] == f"unface/{__version__}"


def test_a_person_in_a_field_a_header_from_the_environment_and_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_TEST_TOKEN", "s3cret")
    fields = {"photo": "{picture}", "who": "{person}"}
    form = HttpForm(body="json", fields=fields, headers={"X-Key": "UNFACE_TEST_TOKEN"})
    with wired(scored(1), scored(0.5)) as (wire, url):
        target = HttpTarget(url, form)
        assert target.score("p1", pictures(2)).tolist() == [1, 0.5]
    assert [path for _, path, _, _ in wire.requests] == ["/", "/"]
    assert all(headers["X-Key"] == "s3cret" for _, _, headers, _ in wire.requests)
    assert [json.loads(body)["who"] for _, _, _, body in wire.requests] == ["p1", "p1"]
    assert len(wire.connections) == 1, "a connection that stays open is used again"


def test_a_connection_that_the_server_closes_is_made_anew() -> None:
    closing = (200, b'{"score": 0.5}', {"Connection": "close"})
    with wired(closing, closing, scored(0.25)) as (wire, url):
        assert HttpTarget(url + "/{person}", HttpForm()).score("p", pictures(3)).tolist() == [0.5, 0.5, 0.25]
    assert len(wire.connections) == 3


@pytest.mark.parametrize(
    ("status", "content", "error", "words"),
    [
        (301, b"", Refused, "redirects .301 Moved Permanently"),
        (399, b"", Refused, "redirects"),
        (401, b'{"error": "no\n  key"}', Refused, r'401 Unauthorized: \{"error": "no key"\}$'),
        (404, b"", Refused, "answers 404 Not Found$"),
        (451, b"\x00\x01", Refused, "answers 451 Unavailable For Legal Reasons$"),
        (400, b"x" * 300, Lost, "answers 400 Bad Request: x{199}…$"),
        (500, b"sorry", Lost, "answers 500 Internal Server Error: sorry$"),
        (199 + 101, b"", Refused, "redirects"),
        (299, b'{"score": "x"}', Refused, "not a number"),
        (200, b"x" * 99, Refused, "'x{39}…', which is not JSON"),
        (200, b'{"b": 1, "a": 2}', Refused, r"no 'score' \(there is a, b\)"),
        (200, json.dumps({f"k{n}": n for n in range(9)}).encode(), Refused, r"there is k0, .*k7\)"),
        (200, b"[1]", Refused, r"there is list\)"),
    ],
)
def test_a_status_decides_whether_the_run_ends_or_one_answer_is_lost(
    status: int, content: bytes, error: type[Exception], words: str
) -> None:
    with wired((status, content)) as (_, url), pytest.raises(error, match=words):
        HttpTarget(url + "/{person}", HttpForm()).score("p", pictures(1))


@pytest.mark.parametrize(
    ("status", "said", "wait"),
    [
        (429, "7", 7.0),
        (503, "0", 0.0),
        (429, "1234567", 1_234_567.0),
        (429, "12345678", None),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", None),
        (429, None, None),
    ],
)
def test_too_many_questions_are_told_with_how_long_to_wait(status: int, said: str | None, wait: float | None) -> None:
    headers = {} if said is None else {"Retry-After": said}
    with wired((status, b"", headers)) as (_, url), pytest.raises(NotSent, match=f"answers {status} ") as raised:
        HttpTarget(url + "/{person}", HttpForm()).score("p", pictures(1))
    assert raised.value.wait == wait


@pytest.mark.parametrize(
    ("path", "score"), [("0", 0.5), ("1.a", 0.25), ("2.0.0", 0.75), ("3", None), ("-1", None), ("1.0", None)]
)
def test_a_path_of_keys_and_positions_leads_to_the_score(path: str, score: float | None) -> None:
    with wired((200, b'[0.5, {"a": 0.25}, [[0.75]]]')) as (_, url):
        target = HttpTarget(url + "/{person}", HttpForm(score_path=path))
        if score is None:
            with pytest.raises(Refused, match=f"no '{path}'"):
                target.score("p", pictures(1))
        else:
            assert target.score("p", pictures(1)).tolist() == [score]


@pytest.mark.parametrize(
    ("value", "number"),
    [(np.float32(0.5), 0.5), (10**12, 1e12), (-(10**12), -1e12), (-np.inf, -np.inf)],
)
def test_a_score_may_be_a_number_of_numpys(value: object, number: float) -> None:
    assert number_of(value, "there") == number
    assert isinstance(number_of(value, "there"), float)
    with pytest.raises(Refused, match=r'^there answered with "x{38}…, which is not a number$'):
        number_of("x" * 99, "there")


@pytest.mark.parametrize("value", [1e300, -1e13, 10**12 + 1, 10**40, np.float64(1e200)])
def test_a_number_that_is_no_score_ends_the_run_by_its_name(value: object) -> None:
    with pytest.raises(Refused, match=r"^there answered with a number beyond 1e\+12, which is no score$"):
        number_of(value, "there")


@pytest.mark.parametrize(("value", "number"), [(True, 1.0), (np.bool_(False), 0.0)])
def test_a_decision_is_a_number_only_where_decisions_are_expected(value: object, number: float) -> None:
    assert number_of(value, "there", decisions_only=True) == number
    with pytest.raises(Refused, match=r"^there answered with (true|false), a decision and no score"):
        number_of(value, "there")


def test_a_target_by_its_text_and_what_cannot_be_one() -> None:
    vectors = {b"face 0": [1.0, 0.0], b"face 1": [0.0, 1.0]}

    def embed(given: Sequence[Picture]) -> NDArray[np.float32]:
        return np.array([vectors[one.content] for one in given], np.float32)

    for text, encoder in (("encoder:sface", "sface"), ("ppfr:dctdp/as-attacked/mine", "mine")):
        asked: list[str] = []

        def made(name: str, asked: list[str] = asked) -> Callable[[Sequence[Picture]], NDArray[np.float32]]:
            asked.append(name)
            return embed

        opened = open_target(text, embed=made)
        assert (opened.kind, opened.local, opened.encoder) == ("built-in", True, encoder)
        assert asked == [text]
        assert opened.target.name == text
        assert opened.target.batch == 64
    assert len(open_target("http://h/{person}").sha256) == 64
    opened = open_target("command:true {person}", form=HttpForm(timeout=5))
    assert (opened.kind, opened.local, opened.target.name, opened.target.batch) == ("command", True, "command:true", 1)
    with pytest.raises(Refused, match="printed ''; expected a number alone"):
        opened.target.score("p", pictures(1))
    with pytest.raises(Refused, match="cannot be started"):
        open_target("command:/no/such/program").target.score("p", pictures(1))
    with pytest.raises(Lost, match=r"gave no score within 0\.05 s"):
        open_target("command:sleep 5", form=HttpForm(timeout=0.05)).target.score("p", pictures(1))


def test_a_pace_counts_questions_from_when_they_may_leave_not_from_when_they_were_wanted() -> None:
    clock = Clock()
    pace = Pace(2.0, clock, clock.sleep)
    pace.wait(4)
    assert clock.slept == []
    pace.wait(1)
    assert clock.slept == [2.0], "four questions at two a second"
    clock.now += 10
    pace.wait(3)
    pace.wait(1)
    assert clock.slept == [2.0, 1.5], "what was not asked in a pause is not made up for"
    Pace(None, clock, clock.sleep).wait(1000)
    for attempt, asked in ((0, None), (3, None), (3, 5.0), (2, 0.0)):
        pace.back_off(attempt, asked)
    assert clock.slept[2:] == [1.0, 8.0, 5.0, 0.0]


class Scripted:
    """Follows a script: a score for each picture, or an error to raise."""

    name, decisions_only, batch = "scripted", False, 3

    def __init__(self, *script: object) -> None:
        self.script, self.asked = list(script), list[tuple[str, list[str]]]()

    def score(self, person: str, given: Sequence[Picture]) -> Numbers:
        self.asked.append((person, [one.name for one in given]))
        told = self.script.pop(0) if self.script else 0.5
        if isinstance(told, Exception):
            raise told
        if isinstance(told, np.ndarray):
            return told
        assert isinstance(told, float)
        return np.full(len(given), told)


@contextmanager
def session(path: Path, *script: object) -> Iterator[tuple[Session, Scripted, Clock]]:
    target, clock = Scripted(*script), Clock()
    with opened_ledger(path, BINDING) as ledger:
        yield Session(target, ledger, Pace(None, clock, clock.sleep)), target, clock


def test_a_budget_is_of_different_pictures_and_what_is_beyond_it_is_not_sent(tmp_path: Path) -> None:
    given = pictures(6)
    with session(tmp_path / "ledger.jsonl", 0.1, 0.2) as (run, target, _):
        person = run.person(4, "p4", 4)
        assert (person.left, person.decisions_only) == (4, False)
        found = person.ask([given[0], given[0], *given])
        assert person.left == 0
        np.testing.assert_allclose(found, [0.1, 0.1, 0.1, 0.1, 0.1, 0.2, np.nan, np.nan])
        assert target.asked == [("p4", ["q0", "q1", "q2"]), ("p4", ["q3"])], "at most three at once"
        assert np.isnan(person.ask(given[4:])).all()
        assert person.ask(given[:1]).tolist() == [0.1]
        assert (len(target.asked), run.ledger.counted) == (2, 4)
        other = run.person(5, "p5", 1)
        assert other.ask(given[:1]).tolist() == [0.5], "the same picture about somebody else is another question"
        assert run.ledger.counted == 5
        run.ended = "over"
        assert (other.left, run.person(6, "p6", 9).left) == (0, 0)
        assert np.isnan(run.person(6, "p6", 9).ask(given)).all()
        assert len(target.asked) == 3


def test_a_question_is_repeated_once_and_only_by_name(tmp_path: Path) -> None:
    given = pictures(4)
    with session(tmp_path / "ledger.jsonl", 0.1, 0.1, 0.7, 0.8) as (run, target, _):
        run.person(0, "p0", 4).ask(given)
        assert run.repeat(0, "p0", given).tolist() == [0.7, 0.7, 0.7, 0.8]
        assert run.repeat(0, "p0", given).tolist() == [0.7, 0.7, 0.7, 0.8]
        assert [names for _, names in target.asked] == 2 * [["q0", "q1", "q2"], ["q3"]]
        assert (run.ledger.counted, run.ledger.score(0, given[0].sha256)) == (8, 0.1)
        run.ended = "over"
        assert np.isnan(run.repeat(1, "p1", given)).all()
        assert len(target.asked) == 4


@pytest.mark.parametrize(("wait", "slept"), [(LONGEST_WAIT, [LONGEST_WAIT]), (LONGEST_WAIT + 1, [])])
def test_a_target_that_asks_for_too_long_a_break_ends_the_run(tmp_path: Path, wait: float, slept: list[float]) -> None:
    with session(tmp_path / "ledger.jsonl", NotSent("later", wait), 0.5) as (run, target, clock):
        found = run.person(0, "p0", 3).ask(pictures(3))
        assert clock.slept == slept
        if slept:
            assert found.tolist() == [0.5] * 3
            assert (run.ended, run.ledger.counted, len(target.asked)) == (None, 3, 2)
        else:
            assert np.isnan(found).all()
            assert (run.ended, run.ledger.counted, run.ledger.ended) == ("later", 0, "later")


def test_a_target_that_is_never_ready_is_tried_seven_times_and_its_questions_are_taken_back(tmp_path: Path) -> None:
    with session(tmp_path / "ledger.jsonl", *(NotSent("busy") for _ in range(9))) as (run, target, clock):
        run.person(0, "p0", 9).ask(pictures(9))
        assert (len(target.asked), clock.slept) == (7, [1, 2, 4, 8, 16, 32])
        assert (run.ended, run.ledger.counted) == ("busy", 0)


def test_answers_lost_in_a_row_are_counted_from_the_last_answer_on(tmp_path: Path) -> None:
    lost = [Lost(f"gone {n}") for n in range(9)]
    with session(tmp_path / "ledger.jsonl", *lost[:4], 0.5, *lost[4:]) as (run, target, _):
        found = run.person(0, "p0", 60).ask(pictures(60))
        assert np.flatnonzero(np.isfinite(found)).tolist() == [12, 13, 14]
        assert run.ended == "5 questions in a row had no answer, the last: gone 8"
        assert (len(target.asked), run.ledger.counted, run.ledger.lost) == (10, 30, 27)
    said = (tmp_path / "ledger.jsonl").read_text()
    assert said.count('"lost": "gone 3"') == 3


@pytest.mark.parametrize(
    ("told", "decides", "why"),
    [
        (np.array([0.1, 0.2]), False, "to 3"),
        (np.array([0.0, 1.0, 0.5]), True, "decisions"),
        (np.array([0.0, np.nan, 1.0]), True, "NaN"),
        (Refused("banned"), False, "banned"),
    ],
)
def test_an_answer_that_cannot_be_right_ends_the_run(tmp_path: Path, told: object, decides: bool, why: str) -> None:
    with session(tmp_path / "ledger.jsonl", told) as (run, target, _):
        target.decisions_only = decides
        found = run.person(0, "p0", 6).ask(pictures(6))
        assert run.ended is not None
        assert why in run.ended
        assert (len(target.asked), run.ledger.counted) == (1, 3)
        assert np.isnan(found[3:]).all()
        assert np.isfinite(found[:3]).sum() == (2 if "NaN" in why else 0)


def test_replayed_answers_cost_each_picture_once() -> None:
    given = pictures(3)
    oracle = Replayed(given, np.array([0.1, 0.2, np.nan]), decisions_only=True)
    assert (oracle.left, oracle.decisions_only, Replayed(given, np.zeros(3)).decisions_only) == (3, True, False)
    np.testing.assert_array_equal(oracle.ask([given[1], given[1], *pictures(1, start=9)]), [0.2, 0.2, np.nan])
    assert oracle.left == 2
    np.testing.assert_array_equal(oracle.ask(given), [0.1, 0.2, np.nan])
    assert oracle.left == 0


def test_a_ledger_keeps_why_a_run_ended_until_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "ledger.jsonl"
    assert not is_begun(path)
    with opened_ledger(path, BINDING) as ledger:
        assert (ledger.path, ledger.counted, ledger.ended) == (path, 0, None)
        assert ledger.count(2, ["x", "y"]) == [0, 1]
        ledger.answer([0, 1], [0.5, float("nan")])
        assert (ledger.answered, ledger.lost) == (1, 1), "NaN is no answer"
        ledger.end("banned")
        assert ledger.ended == "banned"
        assert ledger.sha256() == sha256(path.read_bytes()).hexdigest()
    assert is_begun(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] | {"started": ""} == {
        "schema": "unface.ledger/1", "target": "t", "target_sha256": "a", "enrolled_sha256": "b",
        "queries_sha256": "c", "authorised_by": None, "started": "",
    }  # fmt: skip
    assert lines[1:4] == [
        {"n": 0, "person": 2, "picture": "x"}, {"n": 1, "person": 2, "picture": "y"}, {"n": 0, "score": 0.5},
    ]  # fmt: skip
    assert lines[4] | {"time": ""} == {"ended": "banned", "time": ""}
    with opened_ledger(path, BINDING) as ledger:
        assert ledger.ended is None, "a run that was opened again goes on"
        assert ledger.count(2, ["z"]) == [2]
        assert ledger.score(2, "x") == 0.5
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert not is_begun(empty)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (b'{"n": 1, "person": "0", "picture": "y"}\n', 4),
        (b'{"n": 1, "person": 0, "picture": 5}\n', 4),
        (b'{"n": 1, "person": 0, "picture": "x"}\n', 4),
        (b'{"n": "1", "person": 0, "picture": "y"}\n', 4),
        (b'{"n": 0, "unsent": true}\n', 4),
        (b'{"n": 7, "unsent": true}\n', 4),
        (b'{"n": 0, "score": "1"}\n', 4),
        (b'{"n": 1, "person": 0, "picture": "y"}\nx\n', 5),
    ],
)
def test_a_record_that_cannot_follow_is_damage_and_its_line_is_named(tmp_path: Path, damage: bytes, line: int) -> None:
    path = tmp_path / "ledger.jsonl"
    with opened_ledger(path, BINDING) as ledger:
        ledger.answer(ledger.count(0, ["x"]), [0.5])
    path.write_bytes(path.read_bytes() + damage)
    with refused("validation", ..., f"line {line} "), opened_ledger(path, BINDING):
        pass


def test_a_first_line_that_is_no_ledgers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for first, why in (
        (b"[1]", "line 1 "),
        (b"x", "line 1 "),
        (b'{"schema": "unface.ledger/0", "target_sha256": "a"}', "version"),
    ):
        path.write_bytes(first + b'\n{"n": 0, "person": 0, "picture": "x"}\n{"n": 0, "score": 1}\n')
        with refused("validation", ..., why), opened_ledger(path, BINDING):
            pass


def test_a_disk_that_is_full_is_said_with_the_ledgers_name(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.touch()
    with path.open("rb") as file, refused("output", ..., "ledger.json"):
        Ledger(path, file, []).count(0, ["x"])


def test_a_connection_that_ends_in_the_middle_loses_the_answer_and_says_why() -> None:
    with wired((200, b"{}", {"Content-Length": "50"})) as (_, url):
        target = HttpTarget(url + "/{person}", HttpForm(timeout=0.3))
        with pytest.raises(Lost, match=r"/\{person\}: no answer within 0\.3 s$"):
            target.score("p", pictures(1))
    with wired() as (_, url), pytest.raises(Lost, match=r"/\{person\}: .*(closed|reset)"):
        HttpTarget(url + "/{person}", HttpForm()).score("p", pictures(1))
