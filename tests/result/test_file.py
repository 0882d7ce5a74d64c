"""If these fail, a result is not found, is taken for another kind, or a file is refused without saying why."""

import csv
import json
import re
import time
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.kit.command import unface
from tests.kit.golden import declare, golden
from tests.kit.results import audited, cell, certificate, inversion, protection, raw, release, validation
from tests.refusals.table import require_refusal
from unface import __version__
from unface.errors import UnfaceError
from unface.result.certificate import CertificateResult
from unface.result.file import (
    AUDIT,
    KINDS,
    Clock,
    Listing,
    ResultFile,
    find_result,
    note,
    parsed_json,
    read_json,
    read_toml,
    warning,
)
from unface.result.inversion import InversionResult
from unface.result.readings import Reading, counts_beside, read_result
from unface.result.release import ReleaseResult

declare(*(f"result/{name}.txt" for name in ("changed", "not-one", "no-toml")))

RESULTS: list[ResultFile] = [
    audited(raw()),
    validation(),
    release(),
    inversion(cell("alsuv", 30)),
    certificate(),
    protection(),
]
FILES = [kind.file for kind in KINDS.values()]


def refusal(read: Any, *given: object) -> str:
    with pytest.raises(UnfaceError) as caught:
        read(*given)
    return str(caught.value)


@pytest.mark.parametrize("result", RESULTS, ids=FILES)
def test_every_kind_is_saved_found_and_loaded_by_its_own_name(tmp_path: Path, result: ResultFile) -> None:
    kind, out = result.file_kind(), tmp_path / "new" / "out"
    assert KINDS[result.schema_name()] is kind
    assert kind.model is type(result)
    path = result.save(str(out))
    assert path == out / kind.file
    assert [one.name for one in out.iterdir()] == [kind.file], "no page unless there is one"
    text = path.read_text(encoding="utf-8")
    assert text == result.file_text()
    assert text.startswith('{\n  "schema": "' + result.schema_name() + '",\n')
    assert text.endswith("\n}\n")
    assert find_result(out) == find_result(path) == (path, kind)
    read: tuple[object, Path] = read_result(out)
    assert read == (type(result).load(str(path)), path)
    assert kind.load(path).file_text() == text
    other = path.rename(out / "renamed.json")
    assert find_result(other) == (other, kind), "by what it holds"
    again: tuple[object, Path] = read_result(other)
    assert again == (kind.load(other), other)


@pytest.mark.parametrize("result", RESULTS, ids=FILES)
def test_a_page_lies_beside_its_file_and_both_are_guarded(tmp_path: Path, result: ResultFile) -> None:
    kind = result.file_kind()
    result.require_new(tmp_path, force=False)
    result.save(tmp_path, "<p>")
    page = result.page_in(tmp_path)
    assert page == tmp_path / kind.page
    assert page.read_text(encoding="utf-8") == "<p>"
    for there in (kind.file, kind.page):
        assert refusal(lambda: result.require_new(tmp_path, force=False)).startswith(f"{tmp_path / there}: ")
        result.require_new(tmp_path, force=True)
        (tmp_path / there).unlink()
    result.require_new(tmp_path, force=False)


def test_a_file_of_another_kind_or_version_a_folder_and_a_changed_file_are_refused_in_one_line(tmp_path: Path) -> None:
    path, load = release().save(tmp_path), ReleaseResult.load
    content = json.loads(path.read_text(encoding="utf-8"))
    nobody = content | {"training": content["training"] | {"people": None}}
    rows = content | {"training": content["training"] | {"rows": "many"}}
    test = content["views"][0]["membership"]["test"]
    drawn = json.loads(json.dumps(content).replace(json.dumps(test), json.dumps(test | {"exact": False})))
    elsewhere = json.loads(inversion(cell("alsuv", 30, "My ISP")).file_text()) | {"spaces": []}
    narrow = json.loads(certificate().file_text())
    narrow["pictures"]["psnr"]["level"] = 1.0
    said = [refusal(load, tmp_path)]
    for kind, changed in (
        (ReleaseResult, []),
        (ReleaseResult, {}),
        (ReleaseResult, content | {"schema": "unface.release/9"}),
        (ReleaseResult, nobody),
        (ReleaseResult, rows),
        (ReleaseResult, drawn),
        (InversionResult, elsewhere),
        (CertificateResult, narrow),
    ):
        path.write_text(json.dumps(changed), encoding="utf-8")
        said.append(refusal(kind.load, path))
    for text in ("{", path.read_text(encoding="utf-8").replace('"people"', '"\\ud800"', 1)):
        path.write_text(text, encoding="utf-8")
        said.append(refusal(load, path))
    path.unlink()
    said.append(refusal(load, path))
    assert all(one.startswith(f"{tmp_path}") and "\n" not in one for one in said)
    golden("\n".join(said), "result/changed.txt")


def test_what_is_no_other_kind_is_taken_for_an_audit(tmp_path: Path) -> None:
    assert refusal(find_result, tmp_path).startswith(f"{tmp_path}: ")
    for text in (b"{}", b"\xff\xfe", b'{"schema": "unface.audit/2"}', b" " * 200 + b'"unface.release/1"'):
        (tmp_path / "audit.json").write_bytes(text)
        assert find_result(tmp_path) == find_result(tmp_path / "audit.json") == (tmp_path / "audit.json", AUDIT)
    assert find_result(tmp_path / "none.json") == (tmp_path / "none.json", AUDIT)
    (tmp_path / "release.json").write_bytes(b"\xff\xfe")
    found = validation().save(tmp_path)
    assert find_result(tmp_path)[0] == found, "before the audit, and whatever the others hold"


def test_a_comparison_needs_one_result_and_says_which_there_are(tmp_path: Path) -> None:
    said = [refusal(read_result, tmp_path)]
    audited(raw()).save(tmp_path)
    protection().save(tmp_path)
    said.append(refusal(read_result, tmp_path))
    assert all(name in said[-1] for name in FILES)
    path = tmp_path / "x.json"
    for text in ("{", "[]", '{"schema": 2}', '{"schema": "audit"}', '{"schema": "unface.inversion/7"}'):
        path.write_text(text, encoding="utf-8")
        said.append(refusal(read_result, path))
    assert all(one.startswith(str(tmp_path)) for one in said)
    golden("\n".join(said), "result/not-one.txt")


def test_counts_of_people_are_read_from_the_listing_beside_a_result_or_not_at_all(tmp_path: Path) -> None:
    file, listing = tmp_path / "audit.json", tmp_path / "exposed.csv"
    assert counts_beside(file) == {}
    listing.write_text("space,identity,mated_pairs,accepted\nraw,Zoë,10,3\nraw,Bob,8,0\nisp,Zoë,10,1\n", "utf-8")
    assert counts_beside(file) == {"raw": {"Zoë": (3, 10), "Bob": (0, 8)}, "isp": {"Zoë": (1, 10)}}
    for text in (b"space,identity\nraw,Ann\n", b"space,identity,mated_pairs,accepted\nraw,Ann,10\n", b"\xff\n\xff"):
        listing.write_bytes(text)
        assert counts_beside(file) == {}
    listing.write_text("space,identity,mated_pairs,accepted\nraw,Ann,ten,3\n", "utf-8")
    assert counts_beside(file) == {}


def test_a_reading_is_named_by_where_what_and_at() -> None:
    one = Reading("TAR", "isp", "k = 4", None)
    assert (one.key, one.name) == (("TAR", "isp", "k = 4"), "isp: TAR, k = 4")
    assert Reading("recovered", "", "10 questions", None).name == "recovered, 10 questions"


@pytest.mark.parametrize("value", ["9223372036854775807", "-9223372036854775808", "1e300", "true", "'x'"])
def test_toml_holds_64_bits_and_no_more(tmp_path: Path, value: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f"a = {value}\nb = [{value}]\n[c]\nd = [{{e = {value}}}]\n", "utf-8")
    found: Any = read_toml(path)
    assert found["a"] == found["b"][0] == found["c"]["d"][0]["e"]
    for beyond in ("9223372036854775808", "-9223372036854775809", "9" * 5000):
        for text in (f"a = {beyond}", f"a = [0, [{beyond}]]", f"[a]\nb = {beyond}"):
            path.write_text(text, "utf-8")
            assert refusal(read_toml, path).startswith(f"{path}: ")


def test_what_is_no_toml_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    said = [refusal(read_toml, path), refusal(read_toml, tmp_path)]
    for text in (b"a = '\xff'", b"a = ", b"a = " + b"[" * 100_000):
        path.write_bytes(text)
        said.append(refusal(read_toml, path))
    assert all("\n" not in one for one in said)
    golden("\n".join(said), "result/no-toml.txt")


def test_half_a_character_is_no_json_and_a_whole_one_is(tmp_path: Path) -> None:
    assert parsed_json('{"a": "\\ud83d\\ude00", "b": "Zoë", "c": "\\u00e9"}') == {"a": "😀", "b": "Zoë", "c": "é"}
    for half in ('"\\ud800"', '"\\uD800"', '"x\\udfff"', '{"\\uDC00": 1}'):
        with pytest.raises(ValueError, match="surrogates"):
            parsed_json(half)
        (tmp_path / "x.json").write_text(half, "utf-8")
        assert refusal(read_json, tmp_path / "x.json", "unface").startswith(f"{tmp_path / 'x.json'}: ")


def test_a_listing_is_text_for_a_spreadsheet_and_none_without_rows() -> None:
    assert Listing(("id",), [], "nobody").csv() is None
    rows: list[tuple[str, ...]] = [
        ("=1", "+1", "-1", "@a"),
        ("a=1", "1+1", "a-1", "b@a"),
        ('say "x"', "a,b", "", "Zoë"),
    ]
    assert Listing(("a", "b", "c", "d"), rows, "names").csv() == (
        'a,b,c,d\n\'=1,\'+1,\'-1,\'@a\na=1,1+1,a-1,b@a\n"say ""x""","a,b",,Zoë\n'
    )


def test_a_clock_tells_version_start_and_seconds_to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([100.0, 107.12345])
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    run = Clock().run()
    assert (run.unface, run.seconds) == (__version__, 7.123)
    started = datetime.fromisoformat(run.started)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run.started)
    assert 0 <= (datetime.now(UTC) - started).total_seconds() < 60


def test_warnings_and_notes_are_findings_of_that_severity() -> None:
    assert [(one.severity, one.about, one.text) for one in (warning("a", "b"), note("c", "d"))] == [
        ("warning", "a", "b"),
        ("note", "c", "d"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r'("numerator".*?"identities": )\d+', r"\g<1>0", "people"),
        (r'("numerator".*?"identities": )', r"\g<1>-", "people"),
        (r'("rows": )', r"\g<1>-", "is no count"),
        (r'("numerator".*?"identities": )', r"\g<1>" + "9" * 401, "404 digits"),
        (r'("numerator".*?)("identities": )', r"\1\g<2>1, \2", "'identities' twice"),
        (r'"schema": ', '"schema": "x", "schema": ', "'schema' twice"),
    ],
    ids=["nobody", "negative", "negative-rows", "long", "twice", "schema-twice"],
)
@pytest.mark.parametrize("command", ["gate", "report"])
def test_a_file_with_an_impossible_count_is_refused_in_one_line(
    tmp_path: Path, old: str, new: str, said: str, command: str
) -> None:
    """The gate must not pass it, and no page may be drawn of it."""
    file = audited(raw()).save(tmp_path)
    text = file.read_text(encoding="utf-8")
    edited = re.sub(old, new, text, count=1, flags=re.DOTALL)
    assert edited != text
    file.write_text(edited, encoding="utf-8")
    policy = tmp_path / "policy.toml"
    policy.write_text('[[require]]\nspace = "given"\nfar = 1e-3\ntar_max = 0.9\n')
    line = require_refusal(unface(command, file, *(["--policy", policy] if command == "gate" else [])), "result", ...)
    assert said in line


def test_no_cell_of_a_listing_is_a_formula() -> None:
    cells = ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "x=1"]
    text = Listing(("name",), [(cell,) for cell in cells], "names").csv()
    assert text is not None
    rows = list(csv.reader(StringIO(text, newline="")))[1:]
    assert [row[0] for row in rows] == [*(f"'{cell}" for cell in cells[:-1]), "x=1"]
