"""``unface apply``: the erased vectors of a file, everything else passed through."""

from pathlib import Path

import typer

from unface.cli.options import FORCE, QUIET


def apply(
    projection: Path = typer.Argument(..., metavar="P", help="A projection that 'unface fit' saved."),
    source: Path = typer.Argument(..., metavar="SRC", help="Parquet or .npz file; identities are not needed."),
    out: Path = typer.Argument(..., metavar="OUT", help="The file to write, of the same kind."),
    vector_column: str = typer.Option("vector", "--vector-column", help="Column of vectors (npz: vectors)."),
    force: bool = FORCE,
    quiet: bool = QUIET,
) -> None:
    """Write SRC with every vector erased; other columns, their order and the rows stay as they are."""
    from unface.cli.files import require_new
    from unface.erase import Projection
    from unface.scale import sanitise_file

    loaded = Projection.load(projection)
    require_new(out, force=force)
    done = sanitise_file(loaded, source, out, vector=vector_column)
    if not quiet:
        typer.echo(done.sentence())
