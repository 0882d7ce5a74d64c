"""If these fail, a target is asked in another way than its operator wrote, or its secrets get out."""

import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.validate.live import Face, pictures, served, similarity
from unface.validate import Picture, Refused
from unface.validate.http import HttpTarget
from unface.validate.targets import EncoderTarget, HttpForm, number_of, open_target

QUERIES = pictures(3)


def test_a_function_in_this_folder_gets_person_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_service.py").write_text(
        "def score(person, pictures):\n    return [len(p) + len(person) for p in pictures]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    opened = open_target("my_service:score")
    assert (opened.kind, opened.local, opened.target.name) == ("function", True, "my_service:score")
    np.testing.assert_array_equal(opened.target.score("ab", QUERIES), [8, 8, 8])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise OSError('no disk')", "raised OSError: no disk"),
        ("return [1]", "1 scores for 3"),
        ("return 'abc'", "not a number"),
    ],
)
def test_a_function_that_gives_no_scores_is_refused(
    tmp_path: Path, body: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_service.py").write_text(f"def score(person, pictures):\n    {body}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bad_service", raising=False)
    with pytest.raises(Refused, match=why):
        open_target("bad_service:score").target.score("ab", QUERIES)


def test_a_command_gets_the_picture_on_its_input_and_is_no_shell(tmp_path: Path) -> None:
    program = tmp_path / "score.py"
    program.write_text("import sys\nprint(len(sys.stdin.buffer.read()) + len(sys.argv[1]) / 100)\n")
    target = open_target(f"command:{sys.executable} {program} {{person}}").target
    np.testing.assert_allclose(target.score("a; echo 1", QUERIES[:1]), [6.09])
    assert target.name == f"command:{sys.executable}", "arguments may hold a key"


@pytest.mark.parametrize(
    ("code", "why"),
    [("import sys; sys.exit('no such person')", "exit code 1: no such person"), ("print('yes')", "printed 'yes'")],
)
def test_a_command_without_a_number_is_refused(code: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        open_target(f'command:{sys.executable} -c "{code}"').target.score("p", QUERIES[:1])


def test_person_and_picture_stand_where_the_operator_wrote_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFACE_TEST_TOKEN", "s3cret")
    picture = Picture("x", b"\xff\xd8\xff\xe0 bytes")
    fields = {"photo": "{picture}", "who": "id-{person}"}
    as_json = HttpTarget("https://h/verify", HttpForm(body="json", fields=fields))
    body, kind = as_json._body("a b", picture)
    assert json.loads(body) == {"photo": base64.b64encode(picture.content).decode(), "who": "id-a b"}
    assert kind == "application/json"
    body, kind = HttpTarget("https://h/verify", HttpForm(body="form", fields=fields))._body("a b", picture)
    border = kind.partition("boundary=")[2].encode()
    parts = body.split(b"--" + border)
    assert parts[1].endswith(
        b'name="photo"; filename="picture"\r\nContent-Type: image/jpeg\r\n\r\n' + picture.content + b"\r\n"
    )
    assert parts[2].endswith(b'name="who"\r\n\r\nid-a b\r\n')
    assert parts[3] == b"--\r\n"
    token = HttpForm(headers={"Authorization": "UNFACE_TEST_TOKEN"})
    opened = open_target("https://h/{person}?key=k3y", form=token)
    assert (opened.local, opened.kind) == (False, "http")
    for text in (opened.target.name, opened.sha256, repr(opened)):
        assert "s3cret" not in text
        assert "k3y" not in text


def test_a_name_with_slashes_stays_one_part_of_the_address() -> None:
    face = Face()
    face.service.people.add("../p/0?x")
    with served(face) as url:
        scores = open_target(url).target.score("../p/0?x", QUERIES)
    np.testing.assert_array_equal(scores, [similarity("../p/0?x", picture.content) for picture in QUERIES])


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/{person}", True),
        ("http://127.9.0.1/{person}", True),
        ("http://[::1]:8/{person}", True),
        ("http://localhost.example/{person}", False),
        ("https://faces.example/{person}", False),
    ],
)
def test_only_the_loopback_is_this_machine(url: str, local: bool) -> None:
    assert open_target(url).local is local


def test_two_ways_to_ask_have_two_hashes() -> None:
    url = "https://h/{person}"
    ways = [
        open_target(url),
        open_target(url + "?a"),
        open_target(url, decisions_only=True),
        open_target(url, form=HttpForm(score_path="x")),
    ]
    assert len({way.sha256 for way in ways}) == 4
    assert open_target(url, form=HttpForm(timeout=3)).sha256 == ways[0].sha256


def test_the_built_in_target_is_the_cosine_to_the_enrolled_picture_and_encodes_each_picture_once() -> None:
    vectors = {b"face 0": [1, 0], b"face 1": [0.6, 0.8], b"face 2": [0, 0]}
    encoded: list[bytes] = []

    def embed(given: Sequence[Picture]) -> NDArray[np.float32]:
        encoded.extend(picture.content for picture in given)
        return np.array([vectors[picture.content] for picture in given], np.float32)

    target = EncoderTarget("toy", embed)
    target.enrol({"p": QUERIES[0]})
    np.testing.assert_allclose(target.score("p", QUERIES), [1, 0.6, 0], atol=1e-7)
    target.score("p", QUERIES)
    assert sorted(encoded) == sorted(vectors)
    with pytest.raises(Refused, match="not enrolled"):
        target.score("q", QUERIES)
    decides = EncoderTarget("toy", embed, decisions_only=True, threshold=0.6)
    decides.enrol({"p": QUERIES[0]})
    assert decides.score("p", QUERIES).tolist() == [1, 1, 0], "at the threshold is accepted"
    with refused("validation", "toy", "--decisions-only"):
        EncoderTarget("toy", embed, decisions_only=True)


def test_a_decision_is_no_score_unless_decisions_are_expected() -> None:
    with pytest.raises(Refused, match=r"toy answered with true, a decision and no score; pass --decisions-only"):
        number_of(True, "toy")
    with pytest.raises(Refused, match="a decision"):
        number_of(np.bool_(False), "toy")
    assert (number_of(True, "toy", decisions_only=True), number_of(1, "toy")) == (1.0, 1.0)


def test_a_port_that_is_none_is_named_as_such() -> None:
    with refused("validation", ..., "above 65535"):
        open_target("http://127.0.0.1:99999/{person}")
