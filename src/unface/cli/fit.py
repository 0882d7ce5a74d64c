"""``unface fit``: learn what tells people apart in a set and save the projection that removes it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import typer

from unface.cli import options
from unface.cli.options import miss_of, rank_of

if TYPE_CHECKING:
    from unface.erase import Projection
    from unface.result.numbers import Estimate
    from unface.scale.executor import Executor
    from unface.scale.sums import Gather


class Spread(TypedDict, total=False):
    """Where a fit is summed up, if not in this process."""

    executor: "Executor"
    gather: "Gather"


def fit(
    source: str = typer.Argument(
        ..., metavar="SRC", help="Parquet or .npz file, a folder of Parquet files or its URL, or a store's URL."
    ),
    out: Path = typer.Option(..., "--out", help="The projection, a .safetensors file."),
    audited: Path | None = typer.Option(
        None, "--from", metavar="AUDIT.JSON", help="Fit again exactly what this audit measured on SRC."
    ),
    eraser: str | None = typer.Option(None, "--eraser", help="isp, leace, sal …, as for audit [default: isp]."),
    rank: int | None = options.RANK,
    energy: float | None = options.ENERGY,
    target: str | None = options.TARGET,
    keep: int | None = options.KEEP,
    mu: float | None = options.MU,
    spare: str | None = options.SPARE,
    gate: str | None = options.GATE,
    miss: float | None = options.MISS,
    copies: str | None = options.COPIES,
    hold_out: float | None = typer.Option(
        None, "--hold-out", min=0, max=0.9, help="Share of people kept for the certificate; 0: none [default: 0.2]."
    ),
    onnx: Path | None = typer.Option(None, "--onnx", help="Also write the projection as an ONNX model."),
    identity_column: str = options.IDENTITY_COLUMN,
    vector_column: str = options.VECTOR_COLUMN,
    sample: int | None = options.SAMPLE,
    bad_rows: str = options.BAD_ROWS,
    seed: int = options.SEED,
    ray: str | None = typer.Option(None, "--ray", help="Ray cluster for folders and URLs: auto, HOST:PORT, …"),
    threads: int | None = options.THREADS,
    force: bool = options.FORCE,
    quiet: bool = options.QUIET,
) -> None:
    """Fit an eraser and save its projection, certified on identities it was not fitted on."""
    from unface.auditing import fit_certified, fit_streamed, is_streamed
    from unface.cli.show import progress_bars
    from unface.data import is_store, read_embeddings
    from unface.errors import UnfaceError

    amount = rank_of(rank, energy, target)
    _require_outputs(out, onnx, (source, spare, copies, gate), force=force)
    allowed = miss_of(gate, miss)
    notes: list[str] = []

    if audited is not None:
        given = {"--rank, --energy or --target": amount, "--miss": miss, "--ray": ray, "--hold-out": hold_out}
        given |= {"--keep": keep, "--mu": mu}
        for option, value in given.items():
            if value is not None:
                raise UnfaceError(f"{option}: the audit says that already; leave it out with --from")
        from unface.auditing import fit_audited
        from unface.result.audit import AuditResult

        audit = AuditResult.load(audited)
        # What has to be given to read the same set is in the audit; what is given here goes before it.
        named = {"vector": vector_column, "identity": identity_column}
        named = {**audit.source.columns, **{name: given for name, given in named.items() if given != name}}
        people = read_embeddings(
            source,
            **named,
            bad_rows="drop" if audit.source.bad_rows else bad_rows,
            sample=sample or audit.source.sample,
            seed=audit.protocol.seed,
        )
        fitted = fit_audited(audit, people, eraser, spare=spare, gate=gate, copies=copies)
        _keep(fitted, out, onnx, people.notes, quiet=quiet)
        return
    eraser = eraser or "isp"
    is_collection = not is_store(source) and ("://" in source or Path(source).is_dir())
    with_files = eraser == "keeper" and (spare is not None or copies is not None)
    streamed = (
        is_collection and target is None and sample is None and (with_files or (is_streamed(eraser) and spare is None))
    )
    if eraser == "keeper" and not with_files:
        streamed = False  # copies in SRC itself are looked up among all of its rows
    if is_collection and not streamed:
        _require_in_memory(source, eraser)
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
                eraser,
                rank=rank if energy is None else energy,
                keep=keep,
                mu=mu,
                spare=spare if with_files else None,
                copies=copies,
                hold_out=hold_out,
                vector=vector_column,
                identity=identity_column,
                bad_rows=bad_rows,
                seed=seed,
                threads=threads,
                progress=progress,
                notes=notes,
                gate=gate,
                miss=allowed,
                **spread,
            )
        else:
            people = read_embeddings(
                source, vector=vector_column, identity=identity_column, bad_rows=bad_rows, sample=sample, seed=seed
            )
            notes.extend(people.notes)
            projection = fit_certified(
                people,
                eraser,
                rank=amount,
                keep=keep,
                mu=mu,
                spare=spare,
                gate=gate,
                miss=allowed,
                copies=copies,
                hold_out=hold_out,
                seed=seed,
                threads=threads,
                progress=progress,
            )
    _keep(projection, out, onnx, notes, quiet=quiet)


def _require_outputs(out: Path, onnx: Path | None, read: "Sequence[str | None]", *, force: bool) -> None:
    from unface.errors import UnfaceError
    from unface.output.taken import require_distinct, require_new_file
    from unface.output.write import unfinished_files

    require_new_file(out, force=force)
    if onnx is not None:
        # The projection is renamed last: an ONNX model beside an unfinished one is what a killed run left.
        killed = bool(unfinished_files(out.absolute().parent, out.name))
        require_new_file(onnx, force=force or killed, option="--onnx")
    require_distinct((out, onnx), read)
    if onnx is not None and find_spec("onnx") is None:
        raise UnfaceError("--onnx: needs onnx, not installed; run pip install 'unface[onnx]'")


def _keep(projection: "Projection", out: Path, onnx: Path | None, notes: "Sequence[str]", *, quiet: bool) -> None:
    from unface.cli.show import say
    from unface.erase.file import to_bytes
    from unface.output.write import staged

    with staged(out, option="--out") as unfinished:
        unfinished.write_bytes(to_bytes(projection))
        if onnx is not None:
            projection.export(onnx)
    if not quiet:
        for line in (*_lines(projection, out), *(f"reading: {note}" for note in notes)):
            say(line)


def _lines(projection: "Projection", path: Path) -> Iterator[str]:
    """A projection in a few lines: what it removes, and what was certified of it."""
    from unface.result.words import count, percent

    def share(estimate: "Estimate") -> str:
        return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"

    def ratio(estimate: "Estimate") -> str:
        return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"

    removed = f"{projection.rank} of {projection.dim} dimensions removed"
    if projection.released_dim != projection.dim:
        removed += f", released in {projection.released_dim} dimensions"
    yield f"{path}: {projection.kind}, {removed}, {projection.space}"
    if projection.gate is not None:
        from unface.result.face_gate import gate_words

        yield from gate_words(projection.gate.certificate, "the gate set")
    certificate = projection.certificate
    if certificate is None:
        yield "not certified: no identities were held out"
        return
    people = count(certificate.identities, "identity", "identities")
    left = share(certificate.energy_left)
    yield f"on {people} it was not fitted on: {left} of the variance between identities is left;"
    found = f"{ratio(certificate.fisher_before)} before, {ratio(certificate.fisher_left)} after"
    yield f"largest Fisher ratio at least {found}, in the direction found on other people"
    yield f"this covers {certificate.covers}"


def _require_in_memory(source: str, method: str) -> None:
    from unface.erase import UTILITY_AWARE, make_eraser
    from unface.errors import UnfaceError

    if method not in (*UTILITY_AWARE, "keeper"):
        make_eraser(method, 1)  # refuses a name that is not known
    if "://" in source:
        raise UnfaceError(f"{method}: needs all vectors in memory; copy them to a folder of this machine first")
