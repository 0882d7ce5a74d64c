"""Readers of what the newer commands write: result files, quiz answers, ledgers, and manifests of releases.

A result is read to the end: judged by every rule, compared, added to a history, drawn as a page and as a table.
"""

import io
import json
import math
import zlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from markupsafe import Markup
from rich.console import Console

from tests.fuzz.mutate import Reader
from unface.errors import UnfaceError
from unface.gate import (
    compare,
    decide,
    diff_markdown,
    gate_markdown,
    junit_xml,
    make_policy,
    print_diff,
    print_gate,
    sarif,
)
from unface.result.history import add_to_history
from unface.result.readings import Readable, read_result

_RULES: dict[str, list[dict[str, object]]] = {
    "inversion": [
        {"inverted_max": 0.05, "far": 1e-3},
        {"inverted_max": 0.5, "far": 1e-3, "space": "isp", "attack": "alsuv", "pictures": "same", "coarse": "allow"},
    ],
    "validation": [
        {"success_max": 0.05, "far": 1e-3, "queries": 100},
        {"success_max": 0.9, "far": 1e-2, "queries": 10, "attack": "scores"},
    ],
    "release": [
        {"exposed_max": 0.1},
        {"copies_max": 0.2, "far": 1e-4},
        {"risk_max": 0.2, "k": 2, "pictures": "other"},
    ],
    "protection": [{"utility_min": 0.8, "pairs": "lfw"}, {"risk_max": 0.5, "k": 2, "pictures": "same"}],
    "certificate": [{"recognised_max": 0.05}],
}


def _toml(rules: list[dict[str, object]]) -> bytes:
    tables = ["".join(f"{key} = {json.dumps(value)}\n" for key, value in rule.items()) for rule in rules]
    return "\n[[require]]\n".join(['[gate]\nfindings = "no-warnings"\n', *tables]).encode()


POLICIES = [_toml(rules) for rules in _RULES.values()]


def _policy(kind: str, findings: str) -> Any:
    return make_policy({"gate": {"findings": findings}, "require": _RULES[kind]}, lambda table, key: f"{table}: {key}")


@cache
def _whole(kind: str) -> Readable:
    """A result with something of everything that its pages and tables show."""
    from tests.kit.results import WARNING, result

    changes = {"findings": [WARNING]} if kind in ("inversion", "validation") else {}
    return cast(Readable, result(kind, **changes))  # type: ignore[arg-type]


def _report(kind: str) -> ModuleType:
    from unface.report import certificate, inversion, protection, release, validation

    return {
        "certificate": certificate,
        "inversion": inversion,
        "protection": protection,
        "release": release,
        "validation": validation,
    }[kind]


def _read_result(kind: str, path: Path) -> None:
    result, _ = read_result(path)
    if type(result) is not type(_whole(kind)):
        raise UnfaceError("another kind of result")
    console = Console(file=io.StringIO(), width=80)
    report = _report(kind)
    decision = decide(result, _policy(kind, "no-warnings"))
    decide(result, _policy("release", "allow"))
    json.dumps(decision.as_dict())
    junit_xml(decision)
    sarif(decision, path)
    gate_markdown(decision)
    print_gate(decision, console)
    for old, new in ((_whole(kind), result), (result, _whole(kind))):
        found = compare(old, new, {}, {}, margin=0.01)
        diff_markdown(found)
        json.dumps(found.as_dict())
        print_diff(found, console)
    history = path.with_name("history.jsonl")
    history.unlink(missing_ok=True)
    add_to_history(history, result, str(decision.verdict))
    # Charts take most of the time, and only draw numbers: one page in eight has them, and the undamaged one, which
    # loads their library before memory is limited.
    draw, content = getattr(report, "draw", None), path.read_bytes()
    if draw is not None and content != _whole(kind).file_text().encode() and zlib.crc32(content) % 8:
        report.draw = lambda *given, **more: Markup()  # type: ignore[attr-defined]
    try:
        getattr(report, f"render_{kind}")(result, decision=decision)
    finally:
        if draw is not None:
            report.draw = draw  # type: ignore[attr-defined]
    getattr(report, f"print_{kind}")(result, console)


def _result_reader(kind: str) -> Reader:
    return Reader(
        lambda _: [_whole(kind).file_text().encode()],
        lambda path: _read_result(kind, path),
        is_text=True,
        is_json=True,
    )


def _histories(folder: Path) -> list[bytes]:
    path = folder / "history.jsonl"
    path.unlink(missing_ok=True)
    for kind in ("validation", "release"):
        add_to_history(path, _whole(kind), "passed")
    return [path.read_bytes()]


def _read_history(path: Path) -> None:
    from unface.report.validation import render_validation

    past = add_to_history(path, _whole("validation"), "failed")
    render_validation(_whole("validation"), past)  # type: ignore[arg-type]


_KINDS = ("reconstruction", "real", "nobody")
_RIGHT = (0, 1, 4)


def _quizzes(_: Path) -> list[bytes]:
    """The key that stays at home, and what the page saves."""
    items = [{"kind": kind, "right": right} for kind, right in zip(_KINDS * 3, _RIGHT * 3, strict=True)]
    key = {"schema": "unface.quiz-key/1", "quiz": "ab" * 32, "items": items}
    answers = {"schema": "unface.quiz-answers/1", "quiz": "ab" * 32, "answers": list(_RIGHT * 3)}
    return [json.dumps(key).encode(), json.dumps(answers).encode()]


def _score_quiz(path: Path) -> None:
    from unface.validate.quiz import score_quiz

    key, answers = (path.with_name(f"whole-{name}") for name in ("key", "answers"))
    for file, content in zip((key, answers), _quizzes(path.parent), strict=True):
        file.write_bytes(content)
    if b"quiz-key" in path.read_bytes():
        score_quiz(path, [answers, answers])
    else:
        score_quiz(key, [path, answers])


@cache
def _binding() -> Any:
    from unface.validate.ledger import Binding

    return Binding("door", "ab", "cd", "ef", None)


def _ledgers(folder: Path) -> list[bytes]:
    from unface.validate.ledger import opened_ledger

    path = folder / "ledger.jsonl"
    path.unlink(missing_ok=True)
    with opened_ledger(path, _binding()) as ledger:
        ledger.answer(ledger.count(0, ["a", "b", "c"]), [0.5, 0.25, 1.0])
        ledger.lose(ledger.count(1, ["a"]), "timed out")
        ledger.unsend(ledger.count(1, ["b"]))
        ledger.end("403 Forbidden")
    return [path.read_bytes()]


def _read_ledger(path: Path) -> None:
    from unface.validate.ledger import opened_ledger

    with opened_ledger(path, _binding()) as ledger:
        assert ledger.answered <= ledger.counted
        for person in range(2):
            for picture in "abc":
                score = ledger.score(person, picture)
                assert math.isnan(score) or ledger.was_asked(person, picture)
        ledger.answer(ledger.count(7, ["new"]), [0.5])


def _manifests(_: Path) -> list[bytes]:
    manifest = {
        "schema": "unface.facemae-release/1",
        "model": {"sha256": "ab", "size": 16, "preset": "tiny", "loss": "irm"},
        "mask": {"ratio": 0.5, "seed_commitment": "cd"},
        "files_sha256": "ef",
        "pictures": 16,
        "people": 8,
    }
    return [json.dumps(manifest).encode()]


def _read_manifest(path: Path) -> None:
    from unface.protect.facemae_deploy import RELEASE, read_manifest

    folder = path.with_name("release")
    folder.mkdir(exist_ok=True)
    (folder / RELEASE).write_bytes(path.read_bytes())
    read_manifest(folder)


RESULT_READERS = {
    **{kind: _result_reader(kind) for kind in _RULES},
    "history": Reader(_histories, _read_history, is_text=True, is_lines=True),
    "quiz": Reader(_quizzes, _score_quiz, is_text=True, is_json=True),
    "ledger": Reader(_ledgers, _read_ledger, is_text=True, is_lines=True),
    "facemae-manifest": Reader(_manifests, _read_manifest, is_text=True, is_json=True),
}
