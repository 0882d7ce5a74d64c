"""If these fail, a part of an audit is not found by its name, or the printed schema does not describe the file."""

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import jsonschema
import pytest

from tests.kit.command import unface
from tests.kit.results import audited, change, erased, kept, raw
from unface.errors import UnfaceError
from unface.result.audit import json_schema, require_no_audit
from unface.result.parts import BUILT_IN, NoSection, Option, Part, installed_part, listing_names, parts_of


class Mine(Part):
    """Nothing of its own but a listing."""

    name = "mine"
    listings = ("mine.csv",)


class Other(Part):
    """Under another name than it is registered by."""

    name = "another"


class BuiltIn(Part):
    """Under the name of a built-in one."""

    name = "leakage"


PARTS = (("mine", "Mine"), ("odd", "Other"), ("text", "__doc__"), ("leakage", "Mine"))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        EntryPoint(name, f"tests.result.test_parts:{what}", group)
        for group in ("unface.erasers", "unface.parts")
        for name, what in (PARTS if group == "unface.parts" else (("odd", "Mine"), ("else", "Mine")))
    )
    for module in ("functions", "result.parts"):
        monkeypatch.setattr(f"unface.{module}.entry_points", points.select)


def with_sections(*names: str) -> list[str]:
    result = audited(raw()).model_copy(update={"parts": {name: {} for name in names}})
    return [part.name for part in parts_of(result)]


def test_built_in_parts_come_first_in_their_order_and_what_is_not_installed_is_left_out() -> None:
    assert with_sections("sweeps", "nobodys") == list(BUILT_IN)
    assert installed_part("nobodys") is None
    assert [getattr(installed_part(name), "name", None) for name in BUILT_IN] == list(BUILT_IN)


@pytest.mark.usefixtures("registered")
def test_a_registered_part_is_found_by_its_own_name_and_never_replaces_a_built_in_one(tmp_path: Path) -> None:
    found = installed_part("mine")
    assert found is not None
    assert found.listings == ("mine.csv",)
    assert installed_part("else") is None, "an eraser of that name is no part"
    assert with_sections("mine") == [*BUILT_IN, "mine"]
    assert getattr(installed_part("leakage"), "name", None) == "leakage"
    for name, what in (("odd", "Other"), ("text", "__doc__")):
        with pytest.raises(UnfaceError) as caught:
            installed_part(name)
        assert caught.value.where == f"part {name!r}"
        assert f"tests.result.test_parts:{what}" in str(caught.value)


def test_listings_of_every_installed_part_are_guarded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built_in = listing_names()
    assert {"suspects.csv", "exposed.csv"} <= set(built_in)
    points = EntryPoints(
        EntryPoint(name, "tests.result.test_parts:Mine", "unface.parts") for name in ("mine", "leakage")
    )
    for module in ("functions", "result.parts"):
        monkeypatch.setattr(f"unface.{module}.entry_points", points.select)
    assert listing_names() == [*built_in, "mine.csv"]
    require_no_audit(tmp_path, force=False)
    for name in ("audit.json", "report.html", "mine.csv", "suspects.csv"):
        (tmp_path / name).touch()
        with pytest.raises(UnfaceError) as caught:
            require_no_audit(tmp_path, force=False)
        assert caught.value.where == str(tmp_path / name)
        require_no_audit(tmp_path, force=True)
        (tmp_path / name).unlink()


def test_a_part_says_nothing_unless_it_overrides_what_it_has_to_say() -> None:
    result = audited(raw())
    with pytest.raises(NotImplementedError, match="Mine"):
        Mine().run(None, None)
    said = (Mine.findings, Mine.not_measured, Mine.readings, Mine.page, Mine.repeat, Mine.terminal, Mine.verdict)
    assert [list(one(result)) for one in said] == [[]] * 7
    assert Mine.verdict(result) == ""
    assert Mine.schema is NoSection
    measured = result.model_copy(update={"parts": {"mine": {}, "leakage": {}}})
    assert Mine.repeat(measured) == [Option("--part", ("mine",))]
    assert BuiltIn.repeat(measured) == [], "the audit measures it unasked"


MAPS = {"maps": [{"space": "raw", "perplexity": 5.0, "x": [0.0], "y": [0.0], "identity": [0]}]}


@pytest.fixture
def content(tmp_path: Path) -> dict[str, dict[str, object]]:
    space = erased(changes=[change(-0.03, -0.04, -0.02)], utility=[kept(0.9, 0.85, 0.95)])
    result = audited(raw(), space).model_copy(update={"parts": {"maps": MAPS, "of others": {"any": 1}}})
    loaded: dict[str, dict[str, object]] = json.loads(result.save(tmp_path).read_text(encoding="utf-8"))
    return loaded


def test_a_saved_audit_fits_the_printed_schema(content: dict[str, dict[str, object]]) -> None:
    printed = json.loads(unface("schema").out)
    jsonschema.Draft202012Validator.check_schema(printed)
    jsonschema.validate(content, printed)


def test_the_sections_of_the_built_in_parts_are_described() -> None:
    parts = [part for name in BUILT_IN if (part := installed_part(name)) is not None]
    with_section = [part.name for part in parts if part.schema.model_fields]
    assert list(json_schema()["properties"]["parts"]["properties"]) == with_section
    assert {"sweeps", "utility", "attribution"} <= set(with_section)


def test_a_section_that_its_part_would_not_read_does_not_fit(content: dict[str, dict[str, object]]) -> None:
    content["parts"]["maps"] = {"maps": [{"space": "raw"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, json_schema())
