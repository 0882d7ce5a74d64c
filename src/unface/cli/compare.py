"""``unface compare``: many erasers on one set at equal rank, over ranks and over numbers of fit identities."""

from pathlib import Path

import typer

from unface.cli.options import FORCE, JSON, OUT, QUIET, THREADS, names, numbers, whole_numbers

_ALL = "isp,isp-whitened,leace,sal,inlp,fair-pca"


def compare(
    source: Path = typer.Argument(..., metavar="EMB", help="Parquet or .npz file, or a folder of Parquet files."),
    out: Path = OUT,
    erasers: list[str] = typer.Option([_ALL], "--erasers", help="Which ones, repeated or with commas."),
    rank: int | None = typer.Option(None, "--rank", min=1, help="Dimensions to remove [default: 3/8 of them]."),
    fit_on: Path | None = typer.Option(None, "--fit-on", help="Fit erasers on this set of other people."),
    utility: list[Path] = typer.Option([], "--utility", help="Labelled vectors or copies that must stay useful."),
    utility_aware: Path | None = typer.Option(
        None, "--utility-aware", help="Vectors of the task that a further eraser is to spare."
    ),
    sweep: bool = typer.Option(True, "--sweep/--no-sweep", help="Measure over ranks, for the frontier."),
    fit_counts: list[str] = typer.Option([], "--fit-counts", help="Measure over these numbers of fit identities."),
    far: list[str] = typer.Option(["1e-3,1e-4"], "--far", help="False-accept rates, repeated or with commas."),
    k: list[str] = typer.Option([], "--k", help="Support images for each identity [default: of 1,4,16 what fits]."),
    seeds: int = typer.Option(5, "--seeds", min=1, help="Draws of support and query images."),
    probe: list[str] = typer.Option(
        ["cosine,ridge,lda,plda"], "--probe", help="cosine, ridge, lda, plda, mlp [default: those in closed form]."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of every random choice."),
    threads: int | None = THREADS,
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
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
