"""``unface schema``: the JSON Schema of audit.json."""

import json

import typer


def schema() -> None:
    """Print the JSON Schema of audit.json."""
    from unface.auditing import AuditResult

    typer.echo(json.dumps(AuditResult.model_json_schema(by_alias=True, mode="serialization"), indent=2))
