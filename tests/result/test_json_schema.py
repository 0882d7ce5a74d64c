"""If these fail, what ``unface schema`` prints does not describe the audit.json that unface writes."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.kit.command import unface
from tests.kit.results import audited, change, erased, kept, raw
from unface.result.audit import json_schema
from unface.result.parts import BUILT_IN, installed_part

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
