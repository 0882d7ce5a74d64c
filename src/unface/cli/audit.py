"""``unface audit``: measure a set of embeddings, write audit.json, show the table."""

from pathlib import Path

import typer

from unface.cli.options import FORCE, JSON, OUT, QUIET, THREADS, numbers, whole_numbers


def audit(
    source: Path = typer.Argument(..., metavar="EMB", help="Parquet or .npz file, or a folder of Parquet files."),
    out: Path = OUT,
    far: list[str] = typer.Option(["1e-3,1e-4"], "--far", help="False-accept rates, repeated or with commas."),
    k: list[str] = typer.Option([], "--k", help="Support images for each identity [default: of 1,4,16 what fits]."),
    seeds: int = typer.Option(5, "--seeds", min=1, help="Draws of support and query images."),
    probe: list[str] = typer.Option([], "--probe", help="cosine, ridge, lda, plda, mlp [default: all]."),
    images: int | None = typer.Option(
        None, "--images", min=3, help="Images for each identity [default: their median, at most 20]."
    ),
    variant: str = typer.Option("unface", "--variant", help="unface, or paper: the ISP paper's own reading."),
    impostor_quota: int | None = typer.Option(
        None, "--impostor-quota", min=1, help="Image pairs for each identity pair instead of all, as in the paper."
    ),
    identity_column: str = typer.Option("identity", "--identity-column", help="Column of identities."),
    vector_column: str = typer.Option("vector", "--vector-column", help="Column of vectors."),
    id_column: str = typer.Option("id", "--id-column", help="Column of row ids; rows are numbered without one."),
    split_column: str | None = typer.Option(
        None, "--split-column", help="Column with your own roles: fit, train, calibrate, test."
    ),
    group: str | None = typer.Option(None, "--group", help="Column of sessions or shoots, to adjust TAR for."),
    context: str | None = typer.Option(None, "--context", help="Column of context vectors, to adjust TAR for."),
    skip_bad_rows: bool = typer.Option(False, "--skip-bad-rows", help="Drop rows with NaN, Inf, zeros or no identity."),
    bootstraps: int = typer.Option(2000, "--bootstraps", min=100, help="Bootstrap replicates."),
    bootstrap: str = typer.Option("double-or-nothing", "--bootstrap", help="double-or-nothing or multinomial."),
    seed: int = typer.Option(0, "--seed", min=0, help="Of every random choice."),
    threads: int | None = THREADS,
    device: str = typer.Option("cpu", "--device", help="cpu, or cuda with PyTorch."),
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure how well identities can be told from embeddings, open-set and at low false-accept rates."""
    from unface.auditing import audit as run_audit
    from unface.auditing import require_free
    from unface.cli.bars import progress_bars
    from unface.cli.tell import tell
    from unface.data import read_embeddings
    from unface.probe import PROBES

    require_free(out, force=force)
    embeddings = read_embeddings(
        source,
        vector=vector_column,
        identity=identity_column,
        id=id_column,
        context=context,
        skip_bad_rows=skip_bad_rows,
    )
    with progress_bars(quiet=quiet or json) as progress:
        result = run_audit(
            embeddings,
            fars=numbers(far, "--far"),
            ks=whole_numbers(k, "--k") if k else None,
            seeds=seeds,
            probes=[name.strip() for names in probe for name in names.split(",")] or list(PROBES),
            images=images,
            variant=variant,
            split_column=split_column,
            group=group,
            context=context,
            quota=impostor_quota,
            bootstraps=bootstraps,
            bootstrap=bootstrap,
            seed=seed,
            threads=threads,
            device=device,
            progress=progress,
        )
    tell(result, out, force=force, json=json, quiet=quiet)
