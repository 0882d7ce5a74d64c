"""If these fail, a part of an audit is lost on the way to its file and back, or says what it did not measure."""

import ast
import io
import json
import math
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel
from rich.console import Console

from tests.auditing.toy_part import Offsets
from tests.kit.command import unface
from tests.kit.results import every_part, full_inversion, invalid_audit, raw_audit, with_parts
from unface.errors import UnfaceError
from unface.result.audit import AuditResult
from unface.result.parts import BUILT_IN, NoSection, Part, Section, installed_part, listing_names, parts_of

NAMES = [*BUILT_IN, "offset"]
"""The last one is ``tests/auditing/toy_part``, as another package would bring it."""
ELSEWHERE = {"utility", "offset"}
"""Usefulness stands with each space; a part of another package is asked about no result without its section."""
RESULTS = ["every part", "raw alone", "invalid"]
each = pytest.mark.parametrize("name", NAMES)
of_each_result = pytest.mark.parametrize("kind", RESULTS)


@cache
def result_of(kind: str) -> AuditResult:
    if kind == "raw alone":
        return raw_audit()
    if kind == "invalid":
        return invalid_audit()
    inverted = full_inversion()
    spaces = [
        space.model_copy(update={"kind": None if space.name == "raw" else space.name}) for space in inverted.spaces
    ]
    inverted = inverted.model_copy(update={"spaces": spaces})
    return with_parts(every_part(), inversion=inverted, offset=Offsets(lengths={"raw": 0.2, "isp": 0.1}))


def part_of(name: str) -> type[Part]:
    part = installed_part(name)
    assert part is not None
    return part


@cache
def options() -> frozenset[str]:
    """What ``unface audit`` knows."""
    words = unface("audit", "--help").out.replace("/", " ").replace(",", " ").split()
    return frozenset(word for word in words if word.startswith("--"))


@each
def test_it_is_found_by_its_name_and_its_listings_are_files_beside_the_result(name: str) -> None:
    part = part_of(name)
    assert issubclass(part, Part)
    assert part.name == name
    assert issubclass(part.schema, BaseModel)
    assert all(Path(file).name == file and Path(file).suffix for file in part.listings)
    assert set(part.listings) <= set(listing_names())


@each
def test_its_section_is_read_back_as_what_it_was_and_another_is_refused(name: str, tmp_path: Path) -> None:
    result, schema = result_of("every part"), part_of(name).schema
    assert (name in result.parts) is (schema is not NoSection)
    if name not in result.parts:
        return
    assert type(result.parts[name]) is schema
    path = result.model_copy(update={"listings": {}}).save(tmp_path)
    loaded = AuditResult.load(path).parts[name]
    assert type(loaded) is schema
    assert loaded == result.parts[name]
    content = json.loads(path.read_text(encoding="utf-8"))
    content["parts"][name] = [1, 2]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UnfaceError) as caught:
        AuditResult.load(path)
    assert f"parts.{name}" in str(caught.value)
    assert "\n" not in str(caught.value)


@each
@of_each_result
def test_what_it_says_is_whole_lines_and_changes_nothing(name: str, kind: str) -> None:
    result = result_of(kind)
    part = next((part for part in parts_of(result) if part.name == name), None)
    if part is None:
        assert name == "offset", "a built-in part is asked about every result"
        return
    before = result.file_text()
    findings = part.findings(result)
    said = [part.verdict(result), *part.not_measured(result), *(finding.text for finding in findings)]
    assert all(finding.about and finding.text for finding in findings)
    assert all(part.not_measured(result))
    assert not any("\n" in text for text in said)
    shown = io.StringIO()
    for block in part.terminal(result):
        Console(file=shown, width=80, color_system=None).print(block)
    assert "nan" not in shown.getvalue().split()
    readings = part.readings(result)
    assert len({(one.what, one.where, one.at) for one in readings}) == len(readings)
    assert all(math.isfinite(one.found.value) for one in readings if one.found is not None)
    pieces = part.page(result)
    sections = [piece for piece in pieces if isinstance(piece, Section)]
    assert all(one.anchor and one.title and str(one.body).strip() and one.order in (1, 2, 3) for one in sections)
    assert len({one.anchor for one in sections}) == len(sections)
    assert all(piece.strip() for piece in pieces if isinstance(piece, str))
    assert (part.findings(result), part.readings(result)) == (findings, readings)
    assert result.file_text() == before


@each
def test_what_was_not_measured_has_no_section_and_no_reading(name: str) -> None:
    part = part_of(name)
    if part.schema is NoSection or name in ELSEWHERE:
        return
    whole = result_of("every part")
    without = with_parts(whole, **{name: None})
    assert [piece for piece in part.page(whole) if isinstance(piece, Section)]
    assert not [piece for piece in part.page(without) if isinstance(piece, Section)]
    assert not part.readings(without)


@each
@of_each_result
def test_what_repeats_it_is_an_option_of_the_command_or_python(name: str, kind: str) -> None:
    result = result_of(kind)
    for option in part_of(name).repeat(result) if kind == "every part" or name != "offset" else []:
        assert option.flag or option.value
        assert not option.flag or option.flag in options()
        assert not any("\n" in value for value in option.values)
        if option.value:
            ast.parse(option.value, mode="eval")
        if option.keyword:
            assert option.keyword.isidentifier()
            assert option.value


def test_no_two_parts_share_an_anchor_of_the_page_or_a_reading() -> None:
    result = result_of("every part")
    pieces = [piece for part in parts_of(result) for piece in part.page(result) if isinstance(piece, Section)]
    anchors = [piece.anchor for piece in pieces]
    assert "offset" in anchors
    assert len(set(anchors)) == len(anchors)
    keys = [(one.what, one.where, one.at) for one in result.readings()]
    assert len(set(keys)) == len(keys)
