"""If these fail, a history loses or doubles a result, or the trend on a page shows other numbers than it holds."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.command import unface
from tests.kit.documents import page
from tests.kit.results import INVALID, audited, erased, point, raw
from unface.errors import UnfaceError
from unface.result.audit import AuditResult
from unface.result.history import PastReading, add_to_history, past_result, read_history

GATE = ("--tar-max", 0.05, "--far", 1e-4)


def of_tar(value: float) -> AuditResult:
    return audited(raw(point(value, value - 0.01, value + 0.01)), erased())


def test_a_result_is_one_line_whatever_is_run_on_it_and_a_verdict_stays(tmp_path: Path) -> None:
    file, history = of_tar(0.3).save(tmp_path / "audit"), tmp_path / "history.jsonl"
    for _ in range(2):
        assert unface("report", file, "--history", history, "--force", "--quiet").code == 0
    assert [line.verdict for line in read_history(history)] == [None]
    assert unface("gate", file, *GATE, "--history", history, "--quiet").code == 0
    unface("report", file, "--history", history, "--force", "--quiet")
    (line,) = read_history(history)
    assert (line.verdict, line.subject, line.kind) == ("passed", "faces.parquet", "unface.audit/2")
    assert [(one.where, one.value, one.low, one.high) for one in line.readings if one.headline] == [
        ("vectors", 0.3, 0.29, 0.31),
        ("isp", 0.008, 0.006, 0.009),
    ]
    assert json.loads(history.read_text())["schema"] == "unface.history/1"
    unface("gate", file, "--tar-max", 0.001, "--far", 1e-4, "--history", history, "--quiet")
    assert [line.verdict for line in read_history(history)] == ["failed"]


def test_two_commands_at_once_both_leave_their_line(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    results = [of_tar(number / 50) for number in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: add_to_history(history, one), results))
    assert {line.readings[0].value for line in read_history(history)} == {number / 50 for number in range(1, 25)}
    assert [path.name for path in tmp_path.iterdir()] == ["history.jsonl"]


@pytest.mark.parametrize("text", ["x\n", "{}\n", '{"schema": "unface.history/1"}\n', "[" * 100_000])
def test_a_line_that_is_none_is_refused_and_the_file_stays_as_it_is(tmp_path: Path, text: str) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(text)
    with pytest.raises(UnfaceError, match="line 1 "):
        add_to_history(history, of_tar(0.3))
    assert history.read_text() == text


def test_the_page_shows_the_trend_of_its_headline_and_leaves_invalid_results_out(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    assert 'id="trend"' not in page(of_tar(0.3), None, add_to_history(history, of_tar(0.3)))
    bad = audited(raw(point(0.9, 0.8, 0.95)), findings=[INVALID])
    add_to_history(history, bad)
    assert 'id="trend"' not in page(of_tar(0.3), None, read_history(history))
    lines = add_to_history(history, of_tar(0.2), "failed")
    html = page(of_tar(0.2), None, lines)
    assert html.count('id="trend"') == 1
    section = html[html.index('<section id="trend"') :]
    section = re.sub(r'<span class="one">([^<]*)</span>', r"\1", section[: section.index("</section>")])
    assert "90.0" not in section
    assert section.index("20.0 [19.0, 21.0]") < section.index("30.0 [29.0, 31.0]")
    assert "failed" in section
    assert re.findall(r"<text[^>]*>([12])</text>", section) == ["1", "2"], "each result has one number on the axis"


def test_a_line_holds_what_was_measured_when_by_what_and_the_hash_of_its_file(tmp_path: Path) -> None:
    refused = point(None, resolution="refused", worst=False, far=1e-5)
    result = audited(raw(point(0.3, 0.29, 0.31), refused))
    line = past_result(result, "passed")
    assert line.sha256 == hashlib.sha256(result.save(tmp_path).read_bytes()).hexdigest()
    assert line.model_dump(by_alias=True, exclude={"sha256", "readings"}) == {
        "schema": "unface.history/1",
        "kind": "unface.audit/2",
        "subject": "faces.parquet",
        "started": "2025-01-01T00:00:00+00:00",
        "unface": "0",
        "valid": True,
        "verdict": "passed",
    }
    first, *others = line.readings
    assert first == PastReading(
        what="TAR", where="vectors", at="worst k, FAR 1e-4", headline=True, value=0.3, low=0.29, high=0.31, level=0.95
    )
    assert [one.at for one in others] == ["k = 4, FAR 1e-4"], "what was refused has no number"
    assert past_result(result).verdict is None
    assert not past_result(audited(raw(), findings=[INVALID])).valid


def test_a_verdict_is_put_on_its_own_line_and_the_order_stays(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    results = [of_tar(tar) for tar in (0.1, 0.2, 0.3)]
    for number, one in enumerate(results, 1):
        assert len(add_to_history(history, one)) == number
    lines = add_to_history(history, results[1], "failed")
    assert lines == read_history(history)
    assert [(line.readings[0].value, line.verdict) for line in lines] == [(0.1, None), (0.2, "failed"), (0.3, None)]
    text = history.read_text()
    assert text.count("\n") == 3
    assert text.startswith('{"schema":"unface.history/1","kind":"unface.audit/2",')
    before = history.stat().st_ino
    assert add_to_history(history, results[1]) == add_to_history(history, results[1], "failed") == lines
    assert history.stat().st_ino == before, "nothing new is not written again"
    history.write_text(f"\n  \n{text}\n")
    assert read_history(history) == lines, "empty lines are none"
    history.write_text(f"\n{text}x\n")
    assert refusal(lambda: read_history(history)).startswith(f"{history}: line 5 ")


def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_history(tmp_path / "none.jsonl") == []
    assert refusal(lambda: read_history(tmp_path)).startswith(f"{tmp_path}: ")
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    assert refusal(lambda: read_history(tmp_path / "x")).startswith(f"{tmp_path / 'x'}: ")
    nowhere, history = tmp_path / "none" / "h.jsonl", tmp_path / "h.jsonl"
    assert refusal(lambda: add_to_history(nowhere, of_tar(0.3))).startswith(f"{nowhere}: ")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refusal(lambda: add_to_history(history, of_tar(0.3))).startswith(f"{history}: ")
    assert not history.exists()


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(UnfaceError) as caught:
        act()
    return str(caught.value)
