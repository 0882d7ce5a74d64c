"""The ``unface`` command and its verbs."""

import typer

from unface._version import __version__
from unface.cli.apply import apply
from unface.cli.attribute import attribute
from unface.cli.audit import audit
from unface.cli.demo import demo
from unface.cli.encode import encode
from unface.cli.fit import fit
from unface.cli.gate import diff, gate
from unface.cli.invert import invert
from unface.cli.models import models
from unface.cli.protect import protect
from unface.cli.release import release
from unface.cli.report import report, schema
from unface.cli.synth import synth
from unface.cli.validate import validate
from unface.memory import enforce_memory, limit_memory

app = typer.Typer(
    name="unface",
    help="Measure and reduce what image embeddings reveal about identity.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (audit, encode, attribute, fit, apply, invert, validate, release, report, gate, diff, demo, synth, schema):
    app.command()(verb)
app.add_typer(models, name="models")
app.add_typer(protect, name="protect")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unface {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    memory: str | None = typer.Option(
        None, "--memory", metavar="SIZE", help="Most memory to use, such as 8G [default: 3/4 of what is available]."
    ),
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Measure and reduce what image embeddings reveal about identity."""
    limit_memory(memory)
    context.call_on_close(enforce_memory())
