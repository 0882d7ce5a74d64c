"""``unface compare``: many erasers on one set at equal rank, over ranks and over numbers of fit identities."""

from pathlib import Path

import typer

from unface.cli import options
from unface.cli.options import names, numbers, whole_numbers

_ALL = "isp,isp-whitened,leace,sal,inlp,fair-pca"


def compare(
    source: Path = typer.Argument(..., metavar="EMB", help="Parquet or .npz file, or a folder of Parquet files."),
    out: Path = options.OUT,
    erasers: list[str] = typer.Option([_ALL], "--erasers", help="Which ones, repeated or with commas."),
    rank: int | None = options.RANK,
    fit_on: Path | None = options.FIT_ON,
    utility: list[Path] = options.UTILITY,
    utility_aware: Path | None = options.UTILITY_AWARE,
    sweep: bool = options.SWEEP,
    fit_counts: list[str] = options.FIT_COUNTS,
    far: list[str] = options.FAR,
    k: list[str] = options.K,
    seeds: int = options.SEEDS,
    probe: list[str] = typer.Option(
        ["cosine,ridge,lda,plda"], "--probe", help="cosine, ridge, lda, plda, mlp [default: those in closed form]."
    ),
    seed: int = options.SEED,
    threads: int | None = options.THREADS,
    force: bool = options.FORCE,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Compare erasers on the same people: what each leaves the attacker, and what it costs."""
    from unface.auditing import audit, require_free
    from unface.cli.bars import progress_bars
    from unface.cli.tell import tell

    require_free(out, force=force)
    with progress_bars(quiet=quiet or json) as progress:
        result = audit(
            source,
            erasers=names(erasers),
            rank=rank,
            fit_on=fit_on,
            utility=utility,
            utility_aware=utility_aware,
            sweep=sweep,
            fit_counts=whole_numbers(fit_counts, "--fit-counts") if fit_counts else (),
            maps=False,
            fars=numbers(far, "--far"),
            ks=whole_numbers(k, "--k") if k else None,
            seeds=seeds,
            probes=names(probe),
            seed=seed,
            threads=threads,
            progress=progress,
        )
    tell(result, out, force=force, json=json, quiet=quiet)
