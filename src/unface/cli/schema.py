"""``unface schema``: the JSON Schema of audit.json."""

import json

import typer


def schema() -> None:
    """Print the JSON Schema of audit.json."""
    from unface.result.audit import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
