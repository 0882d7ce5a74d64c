"""``unface audit``: measure, erase, measure again; write audit.json and report.html, show the table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli import options
from unface.cli.options import miss_of, names, numbers, rank_of, whole_numbers
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.auditing import Protocol
    from unface.data import EmbeddingSet, ImageSet, Space
    from unface.encode import Encoder
    from unface.erase import Projection
    from unface.faces import Detector
    from unface.gate import Policy
    from unface.result.audit import AuditResult
    from unface.result.parts import Part


def audit(
    source: str = typer.Argument(
        ...,
        metavar="SRC",
        help="Embeddings: Parquet, .npz, a folder of Parquet or a store's URL; with --encoder, pictures.",
    ),
    out: Path = options.OUT,
    config: Path | None = options.CONFIG,
    policy: Path | None = options.POLICY,
    encoder: list[str] = typer.Option([], "--encoder", help="Encode pictures first; give several to compare them."),
    detector: str | None = typer.Option(
        None, "--detector", help="With --encoder: yunet, scrfd-500m, or none for aligned pictures [default: yunet]."
    ),
    augment: int = options.AUGMENT,
    accept_licence: bool = options.ACCEPT_LICENCE,
    eraser: list[str] = typer.Option(
        [], "--eraser", help="isp, isp-whitened, leace, sal, inlp, rlace, fair-pca, keeper, or none [default: isp]."
    ),
    rank: int | None = options.RANK,
    energy: float | None = options.ENERGY,
    target: str | None = options.TARGET,
    keep_dims: int | None = options.KEEP,
    mu: float | None = options.MU,
    fit_on: str | None = typer.Option(None, "--fit-on", help="Fit erasers on this set of other people."),
    attacker_data: str | None = typer.Option(
        None, "--attacker-data", help="People only the attacker has, to learn from."
    ),
    projection: list[Path] = typer.Option([], "--projection", help="A ready projection to measure."),
    save_projection: Path | None = typer.Option(
        None, "--save-projection", help="Keep what was audited: a .safetensors file, or a folder for several erasers."
    ),
    utility: list[str] = typer.Option([], "--utility", help="Labelled vectors or copies that must stay useful."),
    spare: str | None = options.SPARE,
    gate: str | None = options.GATE,
    miss: float | None = options.MISS,
    copies: str | None = options.COPIES,
    transfer: str | None = typer.Option(None, "--transfer", help="A second set of faces to fit and test across."),
    attribute_swap: str | None = typer.Option(
        None, "--attribute-swap", metavar="COLUMN", help="Move vectors to the other value of this column of two values."
    ),
    translate: str | None = typer.Option(
        None,
        "--translate",
        metavar="WHAT",
        help="Recover a recogniser's templates: its vectors as a file or a column of SRC; with --encoder, its name.",
    ),
    attribution: bool = typer.Option(
        False, "--attribution", help="With pictures: does similarity rest on faces or on what is around them?"
    ),
    inversion: bool = typer.Option(
        False, "--inversion", help="With pictures: can vectors be turned back into faces? Takes hours on a CPU."
    ),
    album: list[str] = typer.Option(
        [],
        "--album",
        help="Pictures per side to compare, as 1,2,4,half, or none [default: those of 1,2,4,8…,half that fit].",
    ),
    sweep: bool = typer.Option(True, "--sweep/--no-sweep", help="Measure over ranks, for the frontier."),
    fit_counts: list[str] = typer.Option([], "--fit-counts", help="Measure over these numbers of fit identities."),
    maps: bool = typer.Option(True, "--maps/--no-maps", help="Draw some test identities by t-SNE."),
    part: list[str] = typer.Option([], "--part", help="A further part that another package provides."),
    far: list[str] = typer.Option(
        [], "--far", help="False-accept rates, repeated or with commas [default: 1e-3,1e-4, as far as people allow]."
    ),
    k: list[str] = typer.Option(
        [], "--k", help="Pictures of each person attackers learn from [default: of 1,4,16 what most have, and all]."
    ),
    seeds: int = typer.Option(5, "--seeds", min=1, help="Draws of the pictures to learn from."),
    probe: list[str] = typer.Option(
        [], "--probe", help="cosine, ridge, lda, plda [default: these]; net, with PyTorch."
    ),
    images: int | None = typer.Option(
        None, "--images", min=2, help="Images of a calibrate or test identity, at most [default: median, at most 20]."
    ),
    variant: str = typer.Option("unface", "--variant", help="unface, or paper: the ISP paper's own reading."),
    impostor_quota: int | None = typer.Option(
        None, "--impostor-quota", min=1, help="Image pairs for each identity pair instead of all, as in the paper."
    ),
    identity_column: str = options.IDENTITY_COLUMN,
    vector_column: str = options.VECTOR_COLUMN,
    id_column: str = options.ID_COLUMN,
    sample: int | None = options.SAMPLE,
    split_column: str | None = typer.Option(
        None, "--split-column", help="Column with your own roles: fit, train, calibrate, test."
    ),
    group: str | None = typer.Option(
        None, "--group", help="Column of shoots, to adjust TAR for; or of groups of people, to compare."
    ),
    context: str | None = typer.Option(None, "--context", help="Column of context vectors, to adjust TAR for."),
    bad_rows: str = options.BAD_ROWS,
    bootstraps: int = typer.Option(2000, "--bootstraps", min=100, help="Bootstrap replicates."),
    bootstrap: str = typer.Option("double-or-nothing", "--bootstrap", help="double-or-nothing or multinomial."),
    seed: int = options.SEED,
    threads: int | None = options.THREADS,
    device: str = typer.Option("cpu", "--device", help="cpu, or cuda with PyTorch."),
    force: bool = options.FORCE,
    json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Measure how well identities can be linked from embeddings; erase, and measure again.

    With --policy, the exit code is the verdict: passed (0), failed (3) or inconclusive (4), as for 'unface gate'.
    """
    from unface.auditing import Protocol
    from unface.auditing import audit as run_audit
    from unface.cli.show import keep, progress_bars, show_audit, show_side_by_side
    from unface.data import EmbeddingSet, read_embeddings, read_images
    from unface.erase import Projection
    from unface.progress import Progress
    from unface.result.audit import AuditResult, require_no_audit

    require_no_audit(out, force=force)
    encoders = names(encoder)
    _refuse_idle(
        source,
        bool(encoders),
        faces={"--attribution": attribution, "--inversion": inversion},
        detected=bool(encoders) and detector != "none",
        vectors={"--vector-column": vector_column != "vector", "--context": context}
        | {"--bad-rows": bad_rows != "fail", "--sample": sample},
        pictures={"--detector": detector, "--accept-licence": accept_licence, "--augment": augment},
    )

    # What is wrong with these is refused before anything is fetched or encoded.
    amount, erasers, projections, allowed, saved = (
        rank_of(rank, energy, target),
        _erasers(eraser),
        [Projection.load(path) for path in projection],
        miss_of(gate, miss),
        _saver(save_projection, encoders, (source, *projection, *utility), force=force),
    )
    parts = _parts(
        transfer,
        attribute_swap,
        whole_numbers(fit_counts, "--fit-counts") if fit_counts else (),
        part,
        album=names(album),
        sweep=sweep,
        maps=maps,
    )
    protocol = Protocol(
        far=numbers(far or ["1e-3,1e-4"], "--far"),
        every_far=bool(far),
        k=[one if one == "all" else whole_numbers([one], "--k")[0] for one in names(k)] or None,
        probe=names(probe) or None,
        seeds=seeds,
        images=images,
        variant=variant,
        impostor_quota=impostor_quota,
        bootstrap=bootstrap,
        bootstraps=bootstraps,
        seed=seed,
        split=split_column,
        group=group,
        context=context,
        threads=threads,
        device=device,
    )

    # Pictures bring surroundings to adjust for, where faces are cut out of them.
    rules, protocol = _ruled(
        policy,
        protocol,
        erasers,
        len(projections),
        utility=bool(utility),
        around=bool(encoders) and detector != "none",
    )

    def run(embeddings: EmbeddingSet, protocol: Protocol, more: "Sequence[Part]", progress: Progress) -> AuditResult:
        return saved(
            run_audit(
                embeddings,
                eraser=erasers,
                rank=amount,
                keep=keep_dims,
                mu=mu,
                fit_on=fit_on,
                attacker_data=attacker_data,
                spare=spare,
                gate=gate,
                miss=allowed,
                copies=copies,
                projections=projections,
                utility=utility,
                parts=(*parts, *more),
                protocol=protocol,
                progress=progress,
            )
        )

    if not encoders:
        embeddings = read_embeddings(
            source,
            vector=vector_column,
            identity=identity_column,
            id=id_column,
            context=context,
            bad_rows=bad_rows,
            sample=sample,
            seed=seed,
        )
        with progress_bars(quiet=quiet or json) as progress:
            result = run(embeddings, protocol, _translation(translate, source, identity_column, id_column), progress)
        show_audit(result, out, rules, force=force, json=json, quiet=quiet)
        return
    from unface.auditing import Translate, require_people
    from unface.cli.invert import Inverting
    from unface.cli.pictures import FOLDER, encoded, load_all
    from unface.encode import space_of, with_copies

    detector = detector or "yunet"
    results = {}
    with progress_bars(quiet=quiet or json) as progress:
        inverting = Inverting(encoders if inversion else [], accept_licence=accept_licence, force=force)
        wanted = inverting.beside(encoders, translate)
        loaded, faces = load_all(
            wanted,
            detector,
            again=attribution,
            accept_licence=accept_licence,
            threads=threads,
            progress=progress,
        )
        inverting.load(dict(zip(wanted, loaded.items(), strict=True)), faces, protocol)
        folders = {name: out / name if len(encoders) > 1 else out for name in list(loaded)[: len(encoders)]}
        for folder in folders.values():
            require_no_audit(folder, force=force)
        pictures = with_copies(read_images(source, identity=identity_column, id=id_column), augment)
        require_people(pictures, protocol, rank=rank if erasers != [] and fit_on is None else None)
        _require_spaces(projections, [space_of(loaded[name]) for name in folders])

        def vectors(name: str) -> EmbeddingSet:
            path = out / FOLDER / f"{name}.parquet"
            return encoded(
                pictures, loaded[name], path, detector=faces, threads=threads, force=force, progress=progress
            )

        templates = Translate(vectors(list(loaded)[wanted.index(translate)])) if translate else None
        for name, folder in folders.items():
            embeddings = vectors(name)
            more: list[Part] = [
                *([] if templates is None or loaded[name].name == translate else [templates]),
                *(_attribution(pictures, loaded[name], faces) if attribution else []),
                *inverting.parts(name, vectors, folder),
            ]
            results[name] = (run(embeddings, _around_faces(protocol, embeddings, detector), more, progress), folder)
            if len(folders) > 1:
                keep(*results[name], rules, force=force)  # if the next one fails, this one is kept
    if len(results) == 1:
        show_audit(*results.popitem()[1], rules, force=force, json=json, quiet=quiet)
    else:
        show_side_by_side(results, out, rules, json=json, quiet=quiet)
    inverting.finish(folders.values())


def _ruled(
    path: Path | None,
    protocol: "Protocol",
    erasers: list[str] | None,
    ready: int,
    *,
    utility: bool,
    around: bool,
) -> "tuple[Policy | None, Protocol]":
    """A policy that this audit can answer, and the protocol that refuses a set which cannot."""
    from unface.gate import Asked, needed_far, needed_k, read_policy, require_asked

    if path is None:
        return None, protocol
    policy, plan = read_policy(path), protocol.plan()
    ks = [protocol.k] if isinstance(protocol.k, int | str) else list(protocol.k or [])
    context = protocol.group is not None or protocol.context is not None or around
    count = ready + (len(erasers) if erasers is not None else 0 if ready else 1)
    require_asked(policy, path, Asked(plan.fars, ks, count, utility, context))
    # Of rates that nobody asked for, the lowest is needed where a rule is about it.
    every = protocol.every_far or min(needed_far(policy), default=1.0) <= min(plan.fars)
    return policy, replace(protocol, every_far=every, needed_k=needed_k(policy))


def _around_faces(protocol: "Protocol", embeddings: "EmbeddingSet", detector: str) -> "Protocol":
    """Adjusts for what surrounds the faces of pictures, unless a column names their shoots."""
    from unface.auditing.protocol import names_people

    if detector == "none" or (protocol.group is not None and not names_people(embeddings, protocol.group)):
        return protocol
    return replace(protocol, context="context")


def _saver(
    path: Path | None, encoders: Sequence[str], read: Sequence[str | Path], *, force: bool
) -> "Callable[[AuditResult], AuditResult]":
    """What keeps the projections of an audit; refuses before it what can be."""
    from unface.output.taken import require_distinct, require_new_file
    from unface.output.write import write_file

    one_file = path is not None and path.suffix == ".safetensors"
    if path is not None and len(encoders) > 1:
        raise UnfaceError("--save-projection: keeps the projections of one encoder; audit each on its own")
    if path is not None and one_file:
        require_distinct((path,), read)
        require_new_file(path, force=force, option="--save-projection")
    elif path is not None and not force and any(path.glob("*.safetensors")):
        raise UnfaceError(f"--save-projection {path}: holds projections already; choose another folder or pass --force")

    def saved(result: "AuditResult") -> "AuditResult":
        if path is None:
            return result
        if not result.projections:
            raise UnfaceError("--save-projection: no eraser is fitted in this audit; name one with --eraser")
        if one_file and len(result.projections) > 1:
            raise UnfaceError(
                f"--save-projection {path}: is one file, and {', '.join(result.projections)} were fitted; name a folder"
            )
        (path.parent if one_file else path).mkdir(parents=True, exist_ok=True)
        for name, content in result.projections.items():
            write_file(path if one_file else path / f"{name}.safetensors", content)
        return result

    return saved


def _refuse_idle(
    source: str,
    with_encoder: bool,
    *,
    faces: dict[str, bool],
    detected: bool,
    vectors: dict[str, object],
    pictures: dict[str, object],
) -> None:
    """An option that this SRC has no use for is a mistake."""
    from unface.data import is_store

    if with_encoder and is_store(source):
        raise UnfaceError("--encoder: is for pictures, and SRC is a store of vectors; leave it out")
    for option in (option for option, asked in faces.items() if asked and not detected):
        raise UnfaceError(f"{option} needs pictures to find faces in: give them as SRC, with --encoder and a detector")
    idle, why = pictures, "for pictures, with --encoder"
    if with_encoder:
        idle, why = vectors, "for a SRC of vectors, and --encoder says that it holds pictures"
    for option, given in idle.items():
        if given:
            raise UnfaceError(f"{option}: is {why}; leave it out")


def _require_spaces(projections: "Sequence[Projection]", spaces: "Sequence[Space]") -> None:
    """Refuse a projection of another encoder before pictures are encoded for it."""
    for one in projections:
        for space in spaces:
            one.require_space(space)


def _attribution(pictures: "ImageSet", encoder: "Encoder", faces: "Detector | None") -> "list[Part]":
    from unface.attribute import swap_by_landmarks
    from unface.auditing import Attribution, Subjects

    assert faces is not None, "refused without a detector"
    swap_name, swap = swap_by_landmarks()
    return [Attribution(Subjects(pictures, encoder, faces, swap, swap_name))]


def _translation(what: str | None, source: str, identity: str, id_column: str) -> "list[Part]":
    """A file of its own, or a further column of vectors in the audited one."""
    from unface.auditing import Translate
    from unface.data import read_embeddings

    if what is None or Path(what).exists():
        return [] if what is None else [Translate(Path(what))]
    try:
        column = read_embeddings(source, vector=what, identity=identity, id=id_column)
    except UnfaceError as error:
        raise UnfaceError(f"--translate {what}: is no file, and no column of vectors: {error}") from None
    # The file's metadata describe its first column.
    return [Translate(replace(column, source=what, space=replace(column.space, encoder=None, weights_sha256=None)))]


def _erasers(given: list[str]) -> list[str] | None:
    """None leaves the choice to the audit; ``none`` means no eraser at all."""
    chosen = names(given)
    if not chosen:
        return None
    if "none" in chosen and len(chosen) > 1:
        raise UnfaceError("--eraser none: measures only the raw space; leave it out, or leave the others out")
    return [] if chosen == ["none"] else chosen


def _parts(
    transfer: str | None,
    attribute_swap: str | None,
    fit_counts: Sequence[int],
    others: list[str],
    *,
    album: list[str],
    sweep: bool,
    maps: bool,
) -> "list[Part]":
    """What is measured beside the spaces themselves."""
    from unface.auditing import Albums, AttributeSwap, Exposures, Maps, Search, Sweeps, Transfer
    from unface.result.parts import BUILT_IN, installed_part

    parts: list[Part] = []
    if album != ["none"]:
        parts.append(Albums([int(one) if one.isdecimal() else one for one in album] or None))
    parts += [Search(), Exposures()]
    if sweep or fit_counts:
        parts.append(Sweeps(ranks=sweep, fit_counts=fit_counts))
    if maps:
        parts.append(Maps())
    if transfer is not None:
        parts.append(Transfer(transfer))
    if attribute_swap is not None:
        parts.append(AttributeSwap(attribute_swap))
    for name in names(others):
        if name in BUILT_IN:
            raise UnfaceError(f"--part {name}: is built in; ask for it by its own option (unface audit --help)")
        part = installed_part(name)
        if part is None:
            raise UnfaceError(f"--part {name}: no installed package provides it (entry point unface.parts)")
        try:
            parts.append(part())
        except TypeError as error:
            raise UnfaceError(
                f"--part {name}: cannot be made without arguments ({error}); use it from Python"
            ) from None
    return parts
