"""``unface audit``: measure, erase, measure again; write audit.json and report.html, show the table."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli import options
from unface.cli.options import names, numbers, whole_numbers
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.auditing import AuditResult, Subjects


def audit(
    source: Path = typer.Argument(
        ..., metavar="SRC", help="Embeddings: Parquet, .npz or a folder of Parquet; with --encoder, pictures."
    ),
    out: Path = options.OUT,
    encoder: list[str] = typer.Option([], "--encoder", help="Encode pictures first; several stand side by side."),
    detector: str = typer.Option("yunet", "--detector", help="yunet, scrfd-500m, or none: pictures are aligned."),
    accept_licence: bool = typer.Option(False, "--accept-licence", help="Accept weights for research use only."),
    eraser: list[str] = typer.Option(
        [], "--eraser", help="isp, isp-whitened, leace, sal, inlp, rlace, fair-pca, or none [default: isp]."
    ),
    rank: int | None = options.RANK,
    energy: float | None = typer.Option(None, "--energy", help="Remove this share of the class means' variance."),
    target: str | None = typer.Option(
        None, "--target", help="Smallest rank with a worst case of at most TAR@FAR on calibrate, as 0.05@1e-4."
    ),
    fit_on: Path | None = options.FIT_ON,
    projection: list[Path] = typer.Option([], "--projection", help="A ready projection to measure."),
    utility: list[Path] = options.UTILITY,
    utility_aware: Path | None = options.UTILITY_AWARE,
    transfer: Path | None = typer.Option(None, "--transfer", help="A second set of faces to fit and test across."),
    attribute: str | None = typer.Option(None, "--attribute", help="Column of two values, for attribute swaps."),
    attribution: bool = typer.Option(
        False, "--attribution", help="With pictures: does similarity rest on faces or on what is around them?"
    ),
    sweep: bool = options.SWEEP,
    fit_counts: list[str] = options.FIT_COUNTS,
    maps: bool = typer.Option(True, "--maps/--no-maps", help="Draw some test identities by t-SNE."),
    far: list[str] = options.FAR,
    k: list[str] = options.K,
    seeds: int = options.SEEDS,
    probe: list[str] = typer.Option([], "--probe", help="cosine, ridge, lda, plda, mlp [default: all]."),
    images: int | None = typer.Option(
        None, "--images", min=3, help="Images for each identity [default: their median, at most 20]."
    ),
    variant: str = typer.Option("unface", "--variant", help="unface, or paper: the ISP paper's own reading."),
    impostor_quota: int | None = typer.Option(
        None, "--impostor-quota", min=1, help="Image pairs for each identity pair instead of all, as in the paper."
    ),
    identity_column: str = typer.Option("identity", "--identity-column", help="Column of identities."),
    vector_column: str = typer.Option("vector", "--vector-column", help="Column of vectors; not with --encoder."),
    id_column: str = typer.Option("id", "--id-column", help="Column of row ids; rows are numbered without one."),
    split_column: str | None = typer.Option(
        None, "--split-column", help="Column with your own roles: fit, train, calibrate, test."
    ),
    group: str | None = typer.Option(None, "--group", help="Column of sessions or shoots, to adjust TAR for."),
    context: str | None = typer.Option(
        None, "--context", help="Column of context vectors, to adjust TAR for; not with --encoder."
    ),
    skip_bad_rows: bool = typer.Option(
        False, "--skip-bad-rows", help="Drop rows with NaN, Inf, zeros or no identity; not with --encoder."
    ),
    bootstraps: int = typer.Option(2000, "--bootstraps", min=100, help="Bootstrap replicates."),
    bootstrap: str = typer.Option("double-or-nothing", "--bootstrap", help="double-or-nothing or multinomial."),
    seed: int = options.SEED,
    threads: int | None = options.THREADS,
    device: str = typer.Option("cpu", "--device", help="cpu, or cuda with PyTorch."),
    force: bool = options.FORCE,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Measure how well identities can be told from embeddings; erase, and measure again."""
    from unface.attribute import swap_by_landmarks
    from unface.auditing import Subjects, require_free
    from unface.auditing import audit as run_audit
    from unface.cli.bars import progress_bars
    from unface.cli.pictures import FOLDER, encoded, load_all
    from unface.cli.tell import keep, tell, tell_side_by_side
    from unface.data import EmbeddingSet, read_embeddings, read_images
    from unface.erase import Projection
    from unface.probe import PROBES
    from unface.progress import Progress

    require_free(out, force=force)
    encoders = names(encoder)
    if attribution and (not encoders or detector == "none"):
        raise UnfaceError(
            "--attribution needs pictures to find faces in: give them as SRC, with --encoder and a detector"
        )

    if encoders:
        _refuse_for_pictures("--vector-column", given=vector_column != "vector")
        _refuse_for_pictures("--context", given=context is not None)
        _refuse_for_pictures("--skip-bad-rows", given=skip_bad_rows)

    # What is wrong with these is told before anything is fetched or encoded.
    erasers, projections = _erasers(eraser), [Projection.load(path) for path in projection]
    fars, ks = numbers(far, "--far"), whole_numbers(k, "--k") if k else None
    counts = whole_numbers(fit_counts, "--fit-counts") if fit_counts else ()

    def run(
        embeddings: EmbeddingSet, around: str | None, subjects: "Subjects | None", progress: Progress
    ) -> "AuditResult":
        return run_audit(
            embeddings,
            erasers=erasers,
            rank=rank,
            energy=energy,
            target=target,
            fit_on=fit_on,
            projections=projections,
            utility=utility,
            utility_aware=utility_aware,
            transfer=transfer,
            attribute=attribute,
            attribution=subjects,
            sweep=sweep,
            fit_counts=counts,
            maps=maps,
            fars=fars,
            ks=ks,
            seeds=seeds,
            probes=names(probe) or list(PROBES),
            images=images,
            variant=variant,
            split_column=split_column,
            group=group,
            context=around,
            quota=impostor_quota,
            bootstraps=bootstraps,
            bootstrap=bootstrap,
            seed=seed,
            threads=threads,
            device=device,
            progress=progress,
        )

    if not encoders:
        embeddings = read_embeddings(
            source,
            vector=vector_column,
            identity=identity_column,
            id=id_column,
            context=context,
            skip_bad_rows=skip_bad_rows,
        )
        with progress_bars(quiet=quiet or json) as progress:
            result = run(embeddings, context, None, progress)
        tell(result, out, force=force, json=json, quiet=quiet)
        return
    around = None if group or detector == "none" else "context"
    results = {}
    with progress_bars(quiet=quiet or json) as progress:
        loaded, found = load_all(
            encoders, detector, again=attribution, accept_licence=accept_licence, threads=threads, progress=progress
        )
        folders = {name: out / name if len(loaded) > 1 else out for name in loaded}
        for folder in folders.values():
            require_free(folder, force=force)
        pictures = read_images(source, identity=identity_column, id=id_column)
        for name, folder in folders.items():
            path = out / FOLDER / f"{name}.parquet"
            embeddings = encoded(
                pictures, loaded[name], path, detector=found, threads=threads, force=force, progress=progress
            )
            subjects = None
            if attribution and found is not None:
                swap_name, swap = swap_by_landmarks()
                subjects = Subjects(pictures, loaded[name], found, swap, swap_name)
            results[name] = (run(embeddings, around, subjects, progress), folder)
            if len(folders) > 1:
                keep(*results[name], force=force)  # what goes wrong with the next one leaves this one
    if len(results) == 1:
        tell(*results.popitem()[1], force=force, json=json, quiet=quiet)
    else:
        tell_side_by_side(results, out, json=json, quiet=quiet)


def _refuse_for_pictures(option: str, *, given: bool) -> None:
    """What speaks of vectors is not passed over in silence where SRC holds pictures."""
    if given:
        raise UnfaceError(f"{option}: is for a SRC of vectors, and --encoder says that it holds pictures; leave it out")


def _erasers(given: list[str]) -> list[str] | None:
    """None leaves the choice to the audit; ``none`` means no eraser at all."""
    chosen = names(given)
    if not chosen:
        return None
    if "none" in chosen and len(chosen) > 1:
        raise UnfaceError("--eraser none: measures the raw space alone; leave it out, or the others")
    return [] if chosen == ["none"] else chosen
