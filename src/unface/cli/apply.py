"""``unface apply``: the erased vectors of a file or of a collection of files, everything else passed through."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import FORCE, QUIET, THREADS
from unface.errors import printable

if TYPE_CHECKING:
    from unface.erase import Projection


def apply(
    projection: Path = typer.Argument(..., metavar="P", help="A projection that 'unface fit' saved."),
    source: str | None = typer.Argument(
        None, metavar="SRC", help="Parquet or .npz file, a folder of Parquet files, or its URL; identities not needed."
    ),
    out: str | None = typer.Argument(None, metavar="OUT", help="The file, folder or URL to write, of the same kind."),
    named_out: str | None = typer.Option(None, "--out", metavar="OUT", help="The same as OUT."),
    store: str | None = typer.Option(
        None, "--store", metavar="URL", help="A store in place: faiss:, npy:, lancedb:, qdrant:, postgresql:."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what --store would do, without changing anything."),
    purge: bool = typer.Option(False, "--purge", help="Then remove the raw vectors from the store's own files."),
    lossy_ok: bool = typer.Option(False, "--lossy-ok", help="Rebuild FAISS indexes that hold rounded vectors."),
    receipt: Path | None = typer.Option(None, "--receipt", help="Write what was done to the store as JSON."),
    keep_dimension: bool = typer.Option(
        False, "--keep-dimension", help="Release as many dimensions as before, where the projection would keep fewer."
    ),
    vector_column: str = typer.Option("vector", "--vector-column", help="Column of vectors (npz: vectors)."),
    bad_rows: str = typer.Option(
        "fail", "--bad-rows", help="Rows with a null, NaN or Inf vector: fail, drop, or null. Zeros stay zeros."
    ),
    verify: bool = typer.Option(False, "--verify", help="Read everything back and check that it is erased."),
    ray: str | None = typer.Option(None, "--ray", help="Ray cluster for folders and URLs: auto, HOST:PORT, …"),
    threads: int | None = THREADS,
    force: bool = FORCE,
    quiet: bool = QUIET,
) -> None:
    """Write SRC with every vector erased; other columns, their order and the rows stay as they are.

    With --store, the vectors of a store are replaced where they are. A run over a folder, URL or store that was cut
    off continues when the same command is given again.
    """
    from unface.cli.show import progress_bars, say
    from unface.erase import Projection
    from unface.errors import UnfaceError
    from unface.scale import sanitise_directory, sanitise_file

    loaded = Projection.load(projection)
    if keep_dimension:
        loaded = loaded.in_same_dimension()
    if store is not None:
        given = {
            "SRC, OUT and --ray": source or named_out or ray,
            "--vector-column and --threads": vector_column != "vector" or threads,
        }
        _refuse_beside_store(given, bad_rows)
        if dry_run:
            _show_plan(loaded, store, purge=purge, lossy_ok=lossy_ok, receipt=receipt)
        else:
            _apply_to_store(loaded, store, purge=purge, lossy_ok=lossy_ok, receipt=receipt, force=force, quiet=quiet)
        return
    if purge or lossy_ok or dry_run or receipt is not None:
        raise UnfaceError("--purge, --lossy-ok, --dry-run and --receipt are about a store; name it with --store")
    source, out = _named_once(source, out, named_out)
    if "://" not in source and not Path(source).is_dir():
        if ray is not None:
            raise UnfaceError("--ray: works on folders and URLs, file by file; leave it out for one file")
        _require_file(out, projection, Path(source), force=force)
        done = sanitise_file(
            loaded,
            Path(source),
            Path(out),
            vector=vector_column,
            verify=verify,
            threads=threads,
            replace=force,
            on_bad=bad_rows,
        ).sentence()
    else:
        with ExitStack() as stack:
            run = None
            if ray is not None:
                if threads is not None:
                    raise UnfaceError("--threads: a cluster works with the cores it has; leave it out with --ray")
                from unface.scale.cluster import ray_executor

                run = stack.enter_context(ray_executor(ray))
            done = sanitise_directory(
                loaded,
                source,
                out,
                vector=vector_column,
                verify=verify,
                force=force,
                threads=threads,
                executor=run,
                on_bad=bad_rows,
                progress=stack.enter_context(progress_bars(quiet=quiet)),
            ).sentence()
    if not quiet:
        say(done)


def _named_once(source: str | None, out: str | None, named_out: str | None) -> tuple[str, str]:
    """SRC, and OUT as it was given: in its place or with --out."""
    from unface.errors import UnfaceError

    if out is not None and named_out is not None:
        raise UnfaceError("--out: OUT is given already; name it once")
    to = out or named_out
    if source is None or to is None:
        raise UnfaceError("apply: nothing to apply it to; give SRC and OUT, or --store URL")
    return source, to


def _require_file(out: str, projection: Path, source: Path, *, force: bool) -> None:
    """--force is for a file of before, not for what is read."""
    from unface.errors import UnfaceError
    from unface.output.taken import require_distinct, require_new_file

    if "://" in out:
        raise UnfaceError("OUT: one file is written on this machine; name a file, or give the folder it is in")
    if out.endswith("/"):
        raise UnfaceError(f"{out}: is the name of a folder; {source.name} is one file, so name one")
    require_distinct((Path(out),), (projection, source))
    require_new_file(Path(out), force=force, option="OUT")


def _refuse_beside_store(given: Mapping[str, object], word: str) -> None:
    """Options that are for files."""
    from unface.errors import UnfaceError

    for option, value in given.items():
        if value:
            why = (
                "replaces vectors where they are"
                if "SRC" in option
                else "its URL says which vectors (column=, vector=)"
            )
            raise UnfaceError(f"--store: {why}; leave out {option}")
    if word != "fail":
        raise UnfaceError(
            f"--bad-rows {word}: is for files; no row is removed from a store: repair or delete bad rows there"
        )


def _show_plan(projection: "Projection", url: str, *, purge: bool, lossy_ok: bool, receipt: Path | None) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from unface.errors import UnfaceError
    from unface.page.tables import print_safely
    from unface.stores import open_store, plan_store

    if receipt is not None:
        raise UnfaceError("--receipt: is about what was done, and a dry run does nothing; leave one of them out")
    console = Console()
    for line in plan_store(projection, open_store(url, lossy_ok=lossy_ok), purge=purge).lines():
        step = line[:1].isdigit()
        print_safely(console, Padding(Text(printable(line)), (0, 0, 0, 2)) if step else Text(printable(line)))


def _apply_to_store(
    projection: "Projection", url: str, *, purge: bool, lossy_ok: bool, receipt: Path | None, force: bool, quiet: bool
) -> None:
    from unface.cli.show import progress_bars, say
    from unface.output.taken import require_new_file
    from unface.stores import open_store, sanitise_store

    if receipt is not None:
        require_new_file(receipt, force=force, option="--receipt")
        _require_receipt(receipt)
    with progress_bars(quiet=quiet) as progress:
        done = sanitise_store(projection, open_store(url, lossy_ok=lossy_ok), purge=purge, progress=progress)
    if receipt is not None:
        done.save(receipt)
    if not quiet:
        for line in (done.sentence(), *done.notes):
            say(line)
        if not done.raw_purged:
            say("raw vectors are kept beside them; the same command with --purge removes those")


def _require_receipt(path: Path) -> None:
    """--force is for a receipt of before, not for the store or the projection under a mistaken name."""
    from pydantic import ValidationError

    from unface.errors import UnfaceError
    from unface.scale import Receipt

    try:
        Receipt.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return
    except ValidationError:
        raise UnfaceError(f"{path}: exists and is not a receipt, so --force keeps it; choose another name") from None
