"""If these fail, audit.json gives names away, is half written, or is read as something it is not."""

import copy
import csv
import json
import os
import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.auditing.audits import SECRET_IDS, SECRET_PEOPLE, SECRET_SHOOTS, complete, looped, secret_people
from tests.auditing.audits import secret_audit as audited
from tests.kit.golden import declare, golden
from tests.kit.results import audited as result_of
from tests.kit.results import erased, point, raw
from unface import UnfaceError, audit, write_embeddings
from unface.auditing import Protocol
from unface.auditing.leakage import SUSPECTS_FILE
from unface.result.audit import AuditResult, json_schema
from unface.result.file import Finding, Listing

declare("result/changed-audit.txt", "result/changed-part.txt")


@cache
def clean() -> AuditResult:
    """Without names beside it."""
    return audited().model_copy(update={"listings": {}, "projections": {}})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return audited().save(tmp_path / "out")


def test_what_is_saved_is_loaded_to_the_last_bit(tmp_path: Path) -> None:
    path = clean().save(tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "audit.json"
    assert AuditResult.load(path) == clean()


def test_an_audit_is_loaded_from_its_folder_or_its_file_by_path_or_by_name(written: Path) -> None:
    assert AuditResult.load(written.parent) == AuditResult.load(written) == AuditResult.load(str(written.parent))


def test_suspects_stay_beside_the_file(written: Path) -> None:
    assert AuditResult.load(written) == clean()
    assert audited().listings[SUSPECTS_FILE].rows


def test_saving_again_gives_the_same_bytes(written: Path, tmp_path: Path) -> None:
    again = AuditResult.load(written).save(tmp_path / "again")
    assert again.read_bytes() == written.read_bytes()
    assert written.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("result", [audited, complete])
def test_the_file_has_the_keys_that_its_schema_requires_and_no_others(result: Callable[[], AuditResult]) -> None:
    content = json.loads(result().file_text())
    schema = json_schema()
    assert content["schema"] == "unface.audit/2"
    assert set(content["parts"]) <= set(schema["properties"]["parts"]["properties"])
    for found, keys in matched(content, schema, schema["$defs"]):
        assert set(keys.get("required", ())) <= set(found) <= set(keys["properties"])


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
    folder = tmp_path / "private-folder"
    folder.mkdir()
    write_embeddings(secret_people(), folder / "faces.parquet")
    settings = Protocol(far=0.05, k=1, probe="cosine", group="shoot", seeds=1, bootstraps=100)
    result = audit(folder / "faces.parquet", protocol=settings)
    text = result.save(tmp_path / "out").read_text(encoding="utf-8")
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
    clean().save(written.parent, force=True)
    assert [path.name for path in written.parent.iterdir()] == ["audit.json"]


def test_a_finished_audit_is_not_overwritten_unless_forced(written: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(UnfaceError) as caught:
        clean().save(written.parent)
    assert caught.value.where == str(written)
    assert written.read_bytes() == before
    clean().model_copy(update={"verdict": "Other."}).save(written.parent, force=True)
    assert AuditResult.load(written).verdict == "Other."


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UnfaceError) as caught:
        clean().save(tmp_path / "out", force=True)
    assert caught.value.where == str(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    fill_disk(monkeypatch, fails_at)
    with pytest.raises(UnfaceError) as caught:
        audited().save(tmp_path / "out")
    assert (caught.value.code, caught.value.where) == ("output", str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_full_disk_leaves_an_earlier_audit_as_it_was(
    written: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    before = {path.name: path.read_bytes() for path in written.parent.iterdir()}
    assert set(before) == {"audit.json", "exposed.csv", "suspects.csv"}
    fill_disk(monkeypatch, fails_at)
    with pytest.raises(UnfaceError):
        audited().model_copy(update={"verdict": "Other."}).save(written.parent, force=True)
    assert {path.name: path.read_bytes() for path in written.parent.iterdir()} == before


def fill_disk(monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    calls: list[int] = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


MISTAKES: list[tuple[Callable[[str], str], str]] = [
    (lambda text: "", ""),
    (lambda text: text[: len(text) // 2], ""),
    (lambda text: "[" * 100_000, ""),
    (lambda text: "[]", ""),
    (lambda text: "{}", ""),
    (lambda text: text.replace("unface.audit/2", "unface.audit/1"), ""),
    (lambda text: text.replace('"seeds": 2', '"seeds": "two"'), "protocol.seeds"),
    (lambda text: text.replace('"verdict"', '"opinion"'), "verdict"),
    (lambda text: text.replace('"valid": true', '"valid": true, "blessed": true'), "blessed"),
    (
        lambda text: text.replace('"bootstraps": 200', '"bootstraps": 200, "level": NaN', 1).replace(
            '"level": 0.95,\n    "impostor', '"impostor', 1
        ),
        "protocol.level",
    ),
    (lambda text: re.sub(r'"numerator": \d+', '"numerator": -1', text, count=1), "spaces.0.points.0.tar"),
    (lambda text: re.sub(r'"denominator": \d+', '"denominator": 0', text, count=1), "spaces.0.points.0.tar"),
    (lambda text: re.sub(r'"denominator": \d+', '"denominator": 1', text, count=1), "spaces.0.points.0.tar"),
    (lambda text: re.sub(r'("tar": \{\s+"value": 0\.\d{6})\d+', r"\g<1>", text, count=1), "spaces.0.points.0.tar"),
    (lambda text: re.sub(r',\s+"effective_n": [\d.]+', "", text, count=1), "spaces.0.points.0.tar"),
]
"""What happens to the text of a file, and the field that its refusal names."""


def test_what_is_no_audit_of_this_version_is_refused_in_one_line(written: Path) -> None:
    text, said = written.read_text(encoding="utf-8"), []
    for change, where in MISTAKES:
        assert change(text) != text
        written.write_text(change(text), encoding="utf-8")
        said.append(_refused(written, where))
    golden("\n".join(said), "result/changed-audit.txt")


def _refused(path: Path, where: str) -> str:
    """Why it cannot be loaded, with no number of one run in it."""
    with pytest.raises(UnfaceError) as caught:
        AuditResult.load(path)
    place, _, why = str(caught.value).partition(": ")
    assert place == str(path)
    assert why.startswith(f"{where}: " if where else ("is ", "has "))
    assert "\n" not in why
    return re.sub(r"(\S+) of (\S+?)(?=;| is)|\d+, \d+ and \d+(?= values)|\d\.\d{3,}", "<numbers>", why)


def test_bytes_that_are_no_text_are_not_json(written: Path) -> None:
    written.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(UnfaceError, match="JSON"):
        AuditResult.load(written)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        AuditResult.load(tmp_path / "audit.json")
    assert caught.value.where == str(tmp_path / "audit.json")


def test_names_are_readable_by_their_owner_alone_and_formulas_are_text(tmp_path: Path) -> None:
    named = Listing(("why", "id", "identity", "other", "name"), [("near-duplicate", "=1+1", "@ann", "b", "Bob")], "")
    path = audited().model_copy(update={"listings": {SUSPECTS_FILE: named}}).save(tmp_path / "out")
    suspects = path.with_name("suspects.csv")
    assert suspects.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o400
    assert suspects.read_text().splitlines()[1] == "near-duplicate,'=1+1,'@ann,b,Bob"


def test_a_folder_without_an_audit_is_refused_with_the_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UnfaceError) as caught:
        AuditResult.load(tmp_path)
    assert caught.value.where == str(tmp_path / "audit.json")


SECTIONS: list[tuple[Callable[[Any], object], str]] = [
    (
        lambda parts: parts["sweeps"]["sweeps"][0]["points"][1].update(colour="red"),
        "parts.sweeps.sweeps.0.points.1.colour",
    ),
    (lambda parts: parts["transfer"]["transfers"][0].pop("rank"), "parts.transfer.transfers.0.rank"),
    (
        lambda parts: parts["attribute_swap"]["spaces"][1]["flip"].update(numerator=-1),
        "parts.attribute_swap.spaces.1.flip",
    ),
    (
        lambda parts: parts["attribute_swap"]["spaces"][0]["flip"].update(value=0.123),
        "parts.attribute_swap.spaces.0.flip",
    ),
    (lambda parts: parts.update(maps=3), "parts.maps"),
    (lambda parts: parts.update(leakage={"tar": 0.0}), "parts"),
    (
        lambda parts: parts["sweeps"]["sweeps"][0]["points"][0]["tar"].pop("effective_n"),
        "parts.sweeps.sweeps.0.points.0.tar",
    ),
    (lambda parts: parts["maps"]["maps"][0]["x"].pop(), "parts.maps.maps.0"),
]


def test_a_bad_section_of_a_part_is_refused_by_the_name_of_the_part_and_the_field(tmp_path: Path) -> None:
    path, said = complete().save(tmp_path), []
    text = path.read_text(encoding="utf-8")
    for change, where in SECTIONS:
        content = json.loads(text)
        change(content["parts"])
        path.write_text(json.dumps(content), encoding="utf-8")
        said.append(_refused(path, where))
    golden("\n".join(said), "result/changed-part.txt")


def test_a_valid_audit_with_a_finding_that_says_otherwise_is_refused() -> None:
    broken = Finding(severity="invalid", about="shuffled identities", text="odd")
    assert not result_of(raw(point()), findings=[broken]).valid
    content = json.loads(result_of(raw(point()), findings=[broken]).file_text())
    with pytest.raises(ValueError, match="valid"):
        AuditResult.model_validate(content | {"valid": True})


def test_a_result_is_pickled_and_copied_whole() -> None:
    for result in (complete(), audited()):
        assert pickle.loads(pickle.dumps(result)) == result
        twin = copy.deepcopy(result)
        assert twin == result
        assert twin.parts is not result.parts
        assert list(twin.listings) == list(result.listings)
        assert repr(twin) == repr(result)


def test_the_repr_is_one_short_line_with_the_headline_of_every_space() -> None:
    assert repr(complete()) == str(complete())
    assert repr(looped()).startswith("<AuditResult synthetic: TAR at FAR 0.01, k = 2: raw 16.9 %, isp ")
    assert repr(looped()).endswith("; 2 findings>")
    for result in (complete(), audited()):
        assert len(repr(result)) < 400
        assert "\n" not in repr(result)


def test_the_repr_is_short_with_many_spaces_and_without_any_number() -> None:
    many = result_of(raw(point()), *(erased(f"utility-leace {number}", point(0.01)) for number in range(40)))
    assert len(repr(many)) < 400
    assert "raw 8.4 %, utility-leace 0 1.0 %, " in repr(many)
    assert repr(many).endswith(", …; 0 findings>")
    refused = result_of(raw(point(None, resolution="refused", worst=False)))
    assert repr(refused) == "<AuditResult faces.parquet: no rate resolved; 0 findings>"
    broken = Finding(severity="invalid", about="shuffled identities", text="odd")
    assert repr(result_of(raw(point()), findings=[broken])).startswith("<AuditResult INVALID, faces.parquet: ")


def test_a_frame_has_a_row_for_each_space_probe_k_album_and_rate() -> None:
    frame = looped().to_frame()
    assert list(frame.columns) == [
        *("space", "control", "removed", "probe", "worst", "k", "album", "against", "far", "resolution"),
        *("tar", "low", "high", "accepted", "mated", "achieved_far", "chance", "times_chance"),
    ]
    assert len(frame[frame.album == 1]) == sum(len(space.points) for space in looped().spaces) == 4 * 2
    assert not frame.duplicated(["space", "probe", "k", "album", "against", "far"]).any()
    row = frame[(frame.space == "isp") & frame.worst].iloc[0]
    assert (row.removed, row.control, row.k, row.far) == (3, False, 2, 0.01)
    (best,) = (point for point in looped().spaces[1].points if point.worst)
    assert best.tar is not None
    assert (row.tar, row.low, row.high) == (best.tar.value, best.tar.low, best.tar.high)
    assert row.accepted / row.mated == best.tar.value
    assert list(frame[frame.control].space.unique()) == ["random", "pca"]


def test_a_refused_rate_has_a_row_without_numbers() -> None:
    frame = audited().to_frame()
    refused = frame[frame.resolution == "refused"]
    assert len(refused[refused.album == 1]) == 12
    assert (
        refused[["tar", "low", "high", "accepted", "mated", "achieved_far", "chance", "times_chance"]]
        .isna()
        .all(axis=None)
    )
    assert not frame[frame.resolution != "refused"].tar.isna().any()
