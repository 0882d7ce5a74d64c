"""The ``unface`` command: its verbs, and the one place where errors become a line and an exit code."""

import signal
import sys
from io import TextIOWrapper

import typer

from unface._version import __version__
from unface.cli.apply import apply
from unface.cli.attribute import attribute
from unface.cli.audit import audit
from unface.cli.compare import compare
from unface.cli.demo import demo
from unface.cli.encode import encode
from unface.cli.fit import fit
from unface.cli.gate import gate
from unface.cli.models import models
from unface.cli.report import report
from unface.cli.schema import schema
from unface.cli.synth import synth
from unface.errors import UnfaceError

app = typer.Typer(
    name="unface",
    help="Measure, and cut down, what image embeddings give away about who someone is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (audit, encode, attribute, compare, fit, apply, report, gate, demo, synth, schema):
    app.command()(verb)
app.add_typer(models, name="models")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unface {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Measure, and cut down, what image embeddings give away about who someone is."""


def main() -> None:
    """Run the command line: 0 done, 1 bad input or failed work in one line, 2 wrong usage; the gate also 3 and 4."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × and ◂ is no reason to fail
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
    except UnfaceError as error:
        sys.exit(_said(str(error), 1))
    except _Interrupted:
        sys.exit(_said("interrupted; no file was left half-written", 130))
    except OSError as error:
        sys.exit(_said(f"cannot write the output ({error.strerror})", 1))
    except MemoryError:
        sys.exit(_said("out of memory; use fewer images (--images) or a machine with more", 1))
    finally:
        signal.signal(signal.SIGINT, before)


class _Interrupted(BaseException):
    """Ctrl-C, by a name that typer does not swallow."""


def _interrupt(*_: object) -> None:
    raise _Interrupted


def _said(text: str, code: int) -> int:
    print(f"unface: {' '.join(text.split())}", file=sys.stderr)
    return code
