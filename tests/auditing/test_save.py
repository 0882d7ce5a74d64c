"""If these fail, audit.json gives names away, is half written, or is read as something it is not."""

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.auditing.made import SECRET_IDS, SECRET_PEOPLE, SECRET_SHOOTS, audited
from unface import UnfaceError, audit, write_embeddings
from unface.auditing import AuditResult, load_audit, save_audit

CLEAN = audited().model_copy(update={"suspects": []})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return save_audit(audited(), tmp_path / "out")


def test_what_is_saved_is_loaded_to_the_last_bit(tmp_path: Path) -> None:
    path = save_audit(CLEAN, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "audit.json"
    assert load_audit(path) == CLEAN


def test_a_result_saves_itself_alike(written: Path, tmp_path: Path) -> None:
    path = audited().save(str(tmp_path / "self"))
    assert path.read_bytes() == written.read_bytes()
    assert (path.parent / "suspects.csv").read_bytes() == (written.parent / "suspects.csv").read_bytes()
    with pytest.raises(UnfaceError, match="exists already"):
        audited().save(tmp_path / "self")
    audited().save(tmp_path / "self", force=True)


def test_suspects_stay_beside_the_file(written: Path) -> None:
    assert load_audit(written) == CLEAN
    assert audited().suspects


def test_saving_again_gives_the_same_bytes(written: Path, tmp_path: Path) -> None:
    again = save_audit(load_audit(written), tmp_path / "again")
    assert again.read_bytes() == written.read_bytes()
    assert written.read_bytes().endswith(b"}\n")


def test_the_file_has_the_keys_that_its_schema_requires_and_no_others(written: Path) -> None:
    content = json.loads(written.read_text(encoding="utf-8"))
    schema = AuditResult.model_json_schema(by_alias=True, mode="serialization")
    assert content["schema"] == "unface.audit/1"
    for found, described in matched(content, schema, schema["$defs"]):
        assert set(described["required"]) <= set(found) <= set(described["properties"])


def matched(value: Any, schema: Any, known: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every object of the file with the part of the schema that describes it."""
    if "$ref" in schema:
        return matched(value, known[schema["$ref"].rsplit("/", 1)[-1]], known)
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return [] if value is None else matched(value, options[0], known)
    if isinstance(value, list):
        return [pair for item in value for pair in matched(item, schema["items"], known)]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    inside = [matched(item, schema["properties"][name], known) for name, item in value.items()]
    return [(value, schema), *(pair for part in inside for pair in part)]


def test_no_name_id_group_or_path_is_in_the_file(tmp_path: Path) -> None:
    from tests.auditing.made import secret_people

    folder = tmp_path / "private-folder"
    folder.mkdir()
    write_embeddings(secret_people(), folder / "faces.parquet")
    options: dict[str, Any] = {"fars": (0.05,), "ks": (1,), "probes": ["cosine"], "group": "shoot", "bootstraps": 100}
    result = audit(folder / "faces.parquet", seeds=1, **options)
    text = save_audit(result, tmp_path / "out").read_text(encoding="utf-8")
    for secret in (SECRET_PEOPLE, SECRET_IDS, SECRET_SHOOTS, "private-folder", str(tmp_path)):
        assert secret not in text
    assert '"name": "faces.parquet"' in text


def test_suspects_are_named_in_a_file_of_their_own(written: Path) -> None:
    with (written.parent / "suspects.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {
            "why": "near-duplicate",
            "first_id": f"{SECRET_IDS}-5",
            "first_identity": f"{SECRET_PEOPLE} 0, Jr.",
            "second_id": f"{SECRET_IDS}-100",
            "second_identity": f"{SECRET_PEOPLE} 12, Jr.",
        }
    ]


def test_suspects_of_an_earlier_audit_do_not_stay(written: Path) -> None:
    save_audit(CLEAN, written.parent, force=True)
    assert [path.name for path in written.parent.iterdir()] == ["audit.json"]


def test_a_finished_audit_is_not_overwritten_unless_forced(written: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(UnfaceError) as caught:
        save_audit(CLEAN, written.parent)
    assert str(caught.value) == f"{written}: exists already; choose another --out or pass --force"
    assert written.read_bytes() == before
    save_audit(CLEAN.model_copy(update={"verdict": "Other."}), written.parent, force=True)
    assert load_audit(written).verdict == "Other."


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UnfaceError) as caught:
        save_audit(CLEAN, tmp_path / "out", force=True)
    assert str(caught.value) == f"{tmp_path / 'out'}: is a file; --out takes a folder"
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    fill_disk(monkeypatch, fails_at)
    with pytest.raises(UnfaceError) as caught:
        save_audit(audited(), tmp_path / "out")
    expected = f"{tmp_path / 'out'}: cannot be written (No space left on device); choose another --out"
    assert str(caught.value) == expected
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_an_earlier_audit_as_it_was(
    written: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    before = {path.name: path.read_bytes() for path in written.parent.iterdir()}
    assert set(before) == {"audit.json", "suspects.csv"}
    fill_disk(monkeypatch, fails_at)
    with pytest.raises(UnfaceError):
        save_audit(audited().model_copy(update={"verdict": "Other."}), written.parent, force=True)
    assert {path.name: path.read_bytes() for path in written.parent.iterdir()} == before


def fill_disk(monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    calls: list[int] = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: "", "is not JSON; give the audit.json that 'unface audit' wrote"),
        (lambda text: text[: len(text) // 2], "is not JSON; give the audit.json that 'unface audit' wrote"),
        (lambda text: "[" * 100_000, "is not JSON; give the audit.json that 'unface audit' wrote"),
        (lambda text: "[]", "says no schema; give the audit.json that 'unface audit' wrote"),
        (lambda text: "{}", "says no schema; give the audit.json that 'unface audit' wrote"),
        (
            lambda text: text.replace("unface.audit/1", "unface.audit/2"),
            "has schema 'unface.audit/2', this version reads 'unface.audit/1'; use the unface that wrote it",
        ),
        (
            lambda text: text.replace('"seeds": 2', '"seeds": "two"'),
            "protocol.seeds: input should be a valid integer, unable to parse string as an integer; "
            "was the file changed by hand?",
        ),
        (
            lambda text: text.replace('"verdict"', '"opinion"'),
            "verdict: field required; was the file changed by hand?",
        ),
        (
            lambda text: text.replace('"valid": true', '"valid": true, "blessed": true'),
            "blessed: extra inputs are not permitted; was the file changed by hand?",
        ),
        (
            lambda text: text.replace('"bootstraps": 200', '"bootstraps": 200, "level": NaN', 1).replace(
                '"level": 0.95,\n    "impostor', '"impostor', 1
            ),
            "protocol.level: input should be a finite number; was the file changed by hand?",
        ),
        (
            lambda text: re.sub(r'"numerator": \d+', '"numerator": -1', text, count=1),
            re.compile(r"spaces\.0\.points\.0\.tar: -1 of [\d,]+ is no share; was the file changed .*"),
        ),
        (
            lambda text: re.sub(r'"denominator": \d+', '"denominator": 0', text, count=1),
            re.compile(r"spaces\.0\.points\.0\.tar: [\d,]+ of 0 is no share; was the file changed .*"),
        ),
        (
            lambda text: re.sub(r'"denominator": \d+', '"denominator": 1', text, count=1),
            re.compile(r"spaces\.0\.points\.0\.tar: [\d,]+ of 1 is no share; was the file changed .*"),
        ),
        (
            lambda text: re.sub(r'("tar": \{\s+"value": 0\.\d{6})\d+', r"\g<1>", text, count=1),
            re.compile(r"spaces\.0\.points\.0\.tar: [\d.]+ is not [\d,]+ of [\d,]+; was the file changed .*"),
        ),
    ],
    ids=[
        *("empty", "torn", "nested", "list", "bare", "newer", "word", "renamed", "added", "nan"),
        *("negative", "of nothing", "more than all", "rounded"),
    ],
)
def test_what_is_no_audit_of_this_version_is_refused_in_one_line(
    written: Path, change: Any, sentence: str | re.Pattern[str]
) -> None:
    text = written.read_text(encoding="utf-8")
    changed = change(text)
    assert changed != text
    written.write_text(changed, encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        load_audit(written)
    wanted = sentence.pattern if isinstance(sentence, re.Pattern) else re.escape(sentence)
    assert re.fullmatch(f"{re.escape(str(written))}: {wanted}", str(caught.value))


def test_bytes_that_are_no_text_are_not_json(written: Path) -> None:
    written.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(UnfaceError, match="is not JSON"):
        load_audit(written)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        load_audit(tmp_path / "audit.json")
    assert str(caught.value) == f"{tmp_path / 'audit.json'}: cannot be read (No such file or directory)"


def test_names_are_readable_by_their_owner_alone_and_formulas_are_text(tmp_path: Path) -> None:
    result = audited().model_copy(update={"suspects": [("near-duplicate", "=1+1", "@ann", "b", "Bob")]})
    path = save_audit(result, tmp_path / "out")
    suspects = path.with_name("suspects.csv")
    assert suspects.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o400
    assert suspects.read_text().splitlines()[1] == "near-duplicate,'=1+1,'@ann,b,Bob"


def test_the_folder_of_an_audit_is_told_from_the_audit(written: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        load_audit(written.parent)
    assert str(caught.value) == f"{written.parent}: is a folder; give the audit in it, {written}"
