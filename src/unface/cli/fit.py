"""``unface fit``: learn what tells people apart in a set and save the projection that removes it."""

from pathlib import Path

import typer

from unface.cli.options import FORCE, QUIET, THREADS


def fit(
    source: Path = typer.Argument(..., metavar="EMB", help="Parquet or .npz file, or a folder of Parquet files."),
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
    threads: int | None = THREADS,
    force: bool = FORCE,
    quiet: bool = QUIET,
) -> None:
    """Fit an eraser and save its projection, certified on identities it was not fitted on."""
    from unface.auditing import fit_certified
    from unface.cli.bars import progress_bars
    from unface.cli.files import require_distinct, require_new
    from unface.data import read_embeddings

    for path in (out, onnx):
        if path is not None:
            require_new(path, force=force)
    require_distinct((out, onnx), (source, utility_aware))
    embeddings = read_embeddings(source, vector=vector_column, identity=identity_column, skip_bad_rows=skip_bad_rows)
    with progress_bars(quiet=quiet) as progress:
        projection = fit_certified(
            embeddings,
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
