"""If these fail, audit.json gives names away, is half written, or is quoted at another point than it says."""

import csv
import json
import os
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
from tests.kit.results import change, erased, in_context, point, raw
from unface import UnfaceError, audit, write_embeddings
from unface.auditing import Protocol
from unface.auditing.albums import AlbumPoint, AlbumResults
from unface.auditing.leakage import SUSPECTS_FILE
from unface.result.audit import AuditResult, Curve, ErasedSource, FitOverlap, Headline, json_schema
from unface.result.file import Finding, Listing
from unface.result.verdict import verdict

declare("result/changed-audit.txt", "result/changed-part.txt")


@cache
def clean() -> AuditResult:
    """Without names beside it."""
    return audited().model_copy(update={"listings": {}, "projections": {}})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return audited().save(tmp_path / "out")


def test_suspects_stay_beside_the_file(written: Path) -> None:
    assert AuditResult.load(written) == clean()
    assert audited().listings[SUSPECTS_FILE].rows


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
    for alter, where in MISTAKES:
        assert alter(text) != text
        written.write_text(alter(text), encoding="utf-8")
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


def test_names_are_readable_by_their_owner_alone_and_formulas_are_text(tmp_path: Path) -> None:
    named = Listing(("why", "id", "identity", "other", "name"), [("near-duplicate", "=1+1", "@ann", "b", "Bob")], "")
    path = audited().model_copy(update={"listings": {SUSPECTS_FILE: named}}).save(tmp_path / "out")
    suspects = path.with_name("suspects.csv")
    assert suspects.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o400
    assert suspects.read_text().splitlines()[1] == "near-duplicate,'=1+1,'@ann,b,Bob"


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
    for alter, where in SECTIONS:
        content = json.loads(text)
        alter(content["parts"])
        path.write_text(json.dumps(content), encoding="utf-8")
        said.append(_refused(path, where))
    golden("\n".join(said), "result/changed-part.txt")


def test_a_valid_audit_with_a_finding_that_says_otherwise_is_refused() -> None:
    broken = Finding(severity="invalid", about="shuffled identities", text="odd")
    assert not result_of(raw(point()), findings=[broken]).valid
    content = json.loads(result_of(raw(point()), findings=[broken]).file_text())
    with pytest.raises(ValueError, match="valid"):
        AuditResult.model_validate(content | {"valid": True})


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


def test_a_point_counts_the_pairs_of_one_draw_and_is_above_chance_beyond_both_rates() -> None:
    one = point(0.03, 0.02, 0.04)
    assert (one.pairs, point(None, resolution="refused").pairs) == (100_000, 0)
    assert one.model_copy(update={"tar_by_seed": [0.03] * 4}).pairs == 25_000
    for far, achieved, baseline, above in (
        (1e-3, 0.02, 0.02, False),
        (0.02, 1e-3, 0.02, False),
        (1e-3, 0.0199, 0.0199, True),
    ):
        found = point(0.03, 0.02, 0.04, far=far, achieved=achieved)
        assert (found.baseline, found.above_chance) == (baseline, above)
    bare = one.model_copy(update={"achieved_far": None})
    assert (bare.baseline, bare.above_chance) == (1e-4, True)
    assert not point(None, resolution="refused").above_chance


def test_a_rate_adjusted_for_context_is_said_with_its_interval_or_not_at_all() -> None:
    found = in_context(0.031, 0.022, 0.043)
    assert found.words == "3.1 % [2.2, 4.3]"
    assert "%" not in found.model_copy(update={"value": None}).words


def test_a_curve_has_a_value_for_each_rate() -> None:
    Curve(probe="lda", k=4, far=[0.1, 0.2], tar=[0.3, 0.4], eer=0.2)
    with pytest.raises(ValueError, match="2 rates"):
        Curve(probe="lda", k=4, far=[0.1, 0.2], tar=[0.3], eer=0.2)


def test_people_a_projection_was_fitted_on_are_estimated_beyond_chance() -> None:
    """Of 100 people, 10 match by chance if none was fitted on: 20 matches are (20 − 10) / 0.9 = 11 people."""
    found = FitOverlap(people=50, compared=100, matches=20, chance=0.1, overlap=True)
    assert found.estimate == 11
    assert found.model_copy(update={"matches": 5}).estimate == 0
    assert found.model_copy(update={"matches": 100}).estimate == 100


def test_released_vectors_are_named_by_what_erased_them() -> None:
    found = ErasedSource(kind="isp", rank=12, gated=False, projection_sha256=None, overlap=None)
    assert found.name == "erased by isp 12"
    assert found.model_copy(update={"gated": True, "rank": None}).name == "erased by gated isp"


def test_spaces_are_found_by_name_and_told_apart() -> None:
    random, isp = erased("random", control=True), erased("isp")
    at_1 = point(0.2, 0.1, 0.3, k=1)
    first = raw(point(0.1, 0.05, 0.2, worst=False, probe="cosine"), point(), at_1)
    result = result_of(first, isp, random)
    assert (result.raw, result.space("isp"), result.space("none")) == (first, isp, None)
    assert (result.erased, result.control_names) == ([isp], {"random"})
    assert [(one.by_eraser, one.is_control) for one in result.spaces] == [(False, False), (True, False), (False, True)]
    assert result.worst == [point(), at_1]
    assert (first.worst_at(1, 1e-4), first.worst_at(1, 1e-3), first.worst_at(2, 1e-4)) == (at_1, None, None)
    assert (result.subject, result.conditions()) == (
        "faces.parquet",
        {"variant": "unface", "attackers": "cosine, lda"},
    )
    assert (result.k_words(4), result.k_words(8)) == ("4", "8 (all)")
    assert result_of(first, variant="paper").k_words(8) == "8"
    head = Headline(point(k=4, far=1e-3))
    changes = [change(-0.1, -0.2, 0.0, k=k, far=far) for k in (1, 4) for far in (1e-4, 1e-3)]
    assert head.changes(erased("isp", changes=changes)) == [changes[3]]


def test_the_repr_names_eight_spaces() -> None:
    others = [erased(f"e{number}") for number in range(8)]
    said = ", ".join(f"e{number} 0.80 %" for number in range(7))
    assert repr(result_of(raw(), *others[:7])) == (
        f"<AuditResult faces.parquet: TAR at FAR 1e-4, k = 4: raw 30.0 %, {said}; 0 findings>"
    )
    assert repr(result_of(raw(), *others)).endswith(f"{said}, …; 0 findings>")
    other_rate = erased("isp", point(0.1, far=1e-3))
    assert repr(result_of(raw(), other_rate)).endswith("k = 4: raw 30.0 %; 0 findings>")


def test_the_frame_holds_every_number_of_photo_pairs_and_of_albums() -> None:
    found = [
        AlbumPoint(
            space=space, first=first, second=second, probe="lda", far=1e-4, resolution="resolved", worst=True,
            tar=point().tar, achieved_far=point().achieved_far, chance=1e-4, times_chance=840.0, threshold=0.5,
            calibrate_tar=0.1,
        )
        for space, first, second in (("raw", 1, 1), ("raw", 2, 5), ("gone", 2, 5))
    ]  # fmt: skip
    albums = AlbumResults(k=4, images=20, deals=3, points=found, changes=[], shuffled_identities=[])
    made = result_of(raw(), erased("random", point(None, resolution="refused", worst=False), control=True))
    rows = made.model_copy(update={"parts": {"albums": albums}}).to_frame().astype(object).to_numpy().tolist()
    assert rows[0] == [
        *("raw", False, 0, "lda", True, 4, 1, 1, 1e-4, "resolved"),
        *(0.3, 0.28, 0.32, 30_000, 100_000, 1e-4, 1e-4, pytest.approx(3000)),
    ]
    assert rows[1][:10] == ["random", True, 4, "lda", False, 4, 1, 1, 1e-4, "refused"]
    assert rows[2] == [
        *("raw", False, 0, "lda", True, 4, 2, 5, 1e-4, "resolved"),
        *(0.084, 0.071, 0.099, 8_400, 100_000, 1e-4, 1e-4, 840.0),
    ]
    assert len(rows) == 3, "an album of one is a photo pair, and a space that is not there has no row"


@pytest.mark.parametrize("name", ["isp", "leace", "sal", "inlp", "rlace", "utility-leace", "pca"])
def test_an_eraser_is_written_in_capitals_where_its_authors_do(name: str) -> None:
    said = verdict(result_of(raw(point()), erased(name, point(0.02, 0.01, 0.03))))
    assert f"After {name if name in ('utility-leace', 'pca') else name.upper()} (" in said
