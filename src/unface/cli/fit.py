"""``unface fit``: learn what tells people apart in a set and save the projection that removes it."""

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import typer

from unface.cli.options import FORCE, QUIET, THREADS

if TYPE_CHECKING:
    from unface.scale.executor import Executor
    from unface.scale.sums import Gather


class Spread(TypedDict, total=False):
    """Where a fit is summed up, if not in this process."""

    executor: "Executor"
    gather: "Gather"


def fit(
    source: str = typer.Argument(
        ..., metavar="EMB", help="Parquet or .npz file, a folder of Parquet files, or its URL."
    ),
    out: Path = typer.Option(..., "--out", help="The projection, a .safetensors file."),
    method: str = typer.Option("isp", "--method", help="isp, leace, sal and others, as --eraser of audit."),
    rank: int | None = typer.Option(None, "--rank", min=1, help="Dimensions to remove [default: 3/8 of them]."),
    energy: float | None = typer.Option(None, "--energy", help="Remove this share of the class means' variance."),
    target: str | None = typer.Option(
        None, "--target", help="Smallest rank with a worst case of at most TAR@FAR on calibrate, as 0.05@1e-4."
    ),
    utility_aware: Path | None = typer.Option(
        None, "--utility-aware", help="Vectors of the task that utility-pca or utility-leace is to spare."
    ),
    hold_out: float = typer.Option(
        0.2, "--hold-out", min=0, max=0.9, help="Share of identities kept for the certificate; 0 for none."
    ),
    onnx: Path | None = typer.Option(None, "--onnx", help="Write the projection as an ONNX model too."),
    identity_column: str = typer.Option("identity", "--identity-column", help="Column of identities."),
    vector_column: str = typer.Option("vector", "--vector-column", help="Column of vectors."),
    skip_bad_rows: bool = typer.Option(False, "--skip-bad-rows", help="Drop rows with NaN, Inf, zeros or no identity."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of every random choice."),
    ray: str | None = typer.Option(None, "--ray", help="Address of a Ray cluster to sum up folders and URLs on."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    quiet: bool = QUIET,
) -> None:
    """Fit an eraser and save its projection, certified on identities it was not fitted on."""
    from unface.auditing import fit_certified, fit_streamed, is_streamed
    from unface.cli.bars import progress_bars
    from unface.data import read_embeddings
    from unface.errors import UnfaceError
    from unface.output.taken import require_distinct, require_new_file

    require_new_file(out, force=force)
    if onnx is not None:
        require_new_file(onnx, force=force, option="--onnx")
    require_distinct((out, onnx), (Path(source), utility_aware))
    if onnx is not None and find_spec("onnx") is None:
        raise UnfaceError("--onnx: needs onnx, not installed; run pip install 'unface[onnx]'")
    is_collection = "://" in source or Path(source).is_dir()
    streamed = is_collection and is_streamed(method) and target is None and utility_aware is None
    if is_collection and not streamed:
        _require_in_memory(source, method)
    if ray is not None and not streamed:
        raise UnfaceError("--ray: sums up folders and URLs for isp, leace and others that need sums; leave it out here")
    if ray is not None and threads is not None:
        raise UnfaceError("--threads: a cluster works with the cores it has; leave it out with --ray")
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bars(quiet=quiet))
        if streamed:
            spread: Spread = {}
            if ray is not None:
                from unface.scale.cluster import ray_executor

                run = stack.enter_context(ray_executor(ray))
                spread = {"executor": run, "gather": run.gather}
            projection = fit_streamed(
                source,
                method,
                rank=rank,
                energy=energy,
                hold_out=hold_out,
                vector=vector_column,
                identity=identity_column,
                skip_bad_rows=skip_bad_rows,
                seed=seed,
                threads=threads,
                progress=progress,
                **spread,
            )
        else:
            projection = fit_certified(
                read_embeddings(source, vector=vector_column, identity=identity_column, skip_bad_rows=skip_bad_rows),
                method,
                rank=rank,
                energy=energy,
                target=target,
                utility_aware=utility_aware,
                hold_out=hold_out,
                seed=seed,
                threads=threads,
                progress=progress,
            )
    projection.save(out)
    if onnx is not None:
        projection.export(onnx)
    if not quiet:
        from unface.report import projection_lines

        for line in projection_lines(projection, out):
            typer.echo(line)


def _require_in_memory(source: str, method: str) -> None:
    """Only files right in a folder are read into memory; that others are left out must not go unnoticed."""
    from unface.erase import UTILITY_AWARE, make_eraser
    from unface.errors import UnfaceError
    from unface.scale import place_at

    if method not in UTILITY_AWARE:
        make_eraser(method, 1)  # one that is not known is told as such
    if "://" in source:
        raise UnfaceError(f"{method}: needs all vectors in memory; copy them to a folder of this machine first")
    deep = [found.name for found in place_at(source).parquet_files() if "/" in found.name]
    if deep:
        raise UnfaceError(f"{deep[0]}: lies in a folder of its own, and what {method} needs is read from one; move it")
