"""Public JSON Schemas that test packages hold: SARIF 2.1.0 as OASIS wrote it, and GitHub's action files."""

import json
import pickletools
import sqlite3
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SARIF = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"


@cache
def sarif_schema() -> dict[str, Any]:
    """From the cache of ``schemastore``: pickled answers of a web server, of which nothing is unpickled."""
    store = _package("schemastore") / "cache.sqlite"
    connection = sqlite3.connect(f"file:{store}?mode=ro&immutable=1", uri=True)
    try:
        for (held,) in connection.execute("SELECT value FROM responses"):
            if SARIF.encode() in held:
                content = max((arg for _, arg, _ in pickletools.genops(held) if isinstance(arg, bytes)), key=len)
                schema: dict[str, Any] = json.loads(content)
                if schema.get("$id") == SARIF:
                    return schema
    finally:
        connection.close()
    raise AssertionError(f"schemastore has no schema {SARIF}")


@cache
def action_schema() -> dict[str, Any]:
    """Of action.yml, from ``check-jsonschema``."""
    file = _package("check_jsonschema") / "builtin_schemas" / "vendor" / "github-actions.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def problems(content: object, schema: dict[str, Any]) -> list[str]:
    """What a schema says against it."""
    validator = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed, which holds a public JSON Schema (pip install '.[test]')")
    return Path(found.origin).parent
