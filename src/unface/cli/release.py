"""``unface release``: may this synthetic set be published?"""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unface.cli.options import (
    ACCEPT_LICENCE,
    BAD_ROWS,
    CONFIG,
    ID_COLUMN,
    IDENTITY_COLUMN,
    POLICY,
    QUIET,
    SEED,
    THREADS,
    names,
    numbers,
    whole_numbers,
)
from unface.errors import UnfaceError

if TYPE_CHECKING:
    from unface.data import ImageSet
    from unface.gate import GateResult
    from unface.progress import Progress
    from unface.release.run import Released, View
    from unface.report.release import FacePair

_FACES_SHOWN, _SIDE = 12, 112


def release(
    synthetic: str = typer.Argument(
        ..., metavar="SYNTHETIC", help="What is to be published: vectors, a store, or with --encoder pictures."
    ),
    training: str = typer.Option(..., "--training", help="The real faces that it was made from, with identities."),
    holdout: str | None = typer.Option(
        None, "--holdout", help="Other people from the same source, who were not trained on; as many or more."
    ),
    encoder: list[str] = typer.Option(
        [],
        "--encoder",
        help="The sets hold pictures: encode them, by one encoder or several (repeated or with commas).",
    ),
    detector: str | None = typer.Option(
        None, "--detector", help="Face detector for --encoder, or none [default: yunet]."
    ),
    crop: list[str] = typer.Option(
        [],
        "--crop",
        help="With --encoder: also its view of facial traits (eyes, nose, mouth, face).",
    ),
    trait: list[str] = typer.Option(
        [], "--trait", help="Vectors of a facial trait: NAME=SYNTHETIC,TRAINING,HOLDOUT; repeated."
    ),
    paper: bool = typer.Option(
        False, "--paper", help="Also compute the trait privacy score of Leyva et al., with controls."
    ),
    far: list[str] = typer.Option(
        ["1e-4,1e-5,1e-6"], "--far", help="False-accept rates of copies, repeated or with commas."
    ),
    k: list[str] = typer.Option(["1,2,5"], "--k", help="Nearest faces of retrieval risk, repeated or with commas."),
    mask_seed: Path | None = typer.Option(
        None, "--mask-seed", help="Of a FaceMAE release: deploy's secret file, for its retrieval risk."
    ),
    policy: Path | None = POLICY,
    vector_column: list[str] = typer.Option(
        ["vector"], "--vector-column", help="Columns of vectors, one for each trait; the first is the face."
    ),
    identity_column: str = IDENTITY_COLUMN,
    id_column: str = ID_COLUMN,
    bad_rows: str = BAD_ROWS,
    show_faces: bool = typer.Option(
        False, "--show-faces", help="Draw the riskiest pictures and their training pictures into the page."
    ),
    accept_licence: bool = ACCEPT_LICENCE,
    device: str = typer.Option("cpu", "--device", help="cpu or cuda, to compare on."),
    out: Path = typer.Option(
        Path("unface-release"), "--out", help="Folder for release.json, release.html and exposed.csv."
    ),
    config: Path | None = CONFIG,
    seed: int = SEED,
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished release."),
    json: bool = typer.Option(False, "--json", help="Print release.json instead of the table."),
    quiet: bool = QUIET,
) -> None:
    """Find out whether a synthetic set exposes the people it was made from, and by which pictures.

    Synthetic faces are compared with training people and with people who were not trained on. Exposed people are
    listed at a false-discovery rate of 5 %.
    """
    from unface.cli.show import progress_bars
    from unface.gate import decide, policy_for
    from unface.release.check import NO_HOLDOUT
    from unface.release.run import Plan, measure_release
    from unface.result.release import ReleaseResult

    if holdout is None:
        raise UnfaceError(NO_HOLDOUT)
    for option, given in (("--show-faces", show_faces), ("--crop", crop), ("--mask-seed", mask_seed)):
        if given and not encoder:
            raise UnfaceError(f"{option}: needs the pictures; give pictures and --encoder")
    traits = _traits(trait, with_pictures=bool(encoder))
    ReleaseResult.require_new(out, force=force)
    rules = policy_for(policy, "unface release")
    rates, neighbours = numbers(far, "--far"), whole_numbers(k, "--k")
    for one in rates:
        if not 0 < one < 1:
            raise UnfaceError(f"--far: a false-accept rate lies between 0 and 1, not {one:g}")
    for one in neighbours:
        if one < 1:
            raise UnfaceError(f"--k: {one} nearest faces; expected at least 1")
    plan = Plan(tuple(sorted(set(rates), reverse=True)), tuple(sorted(set(neighbours))), seed, device, threads, paper)
    sources = {"synthetic": synthetic, "training": training, "holdout": holdout}
    pictures: dict[str, ImageSet] = {}
    with progress_bars(quiet=quiet or json) as progress:
        if encoder:
            views, pictures = _encoded(
                sources,
                names(encoder),
                names(crop),
                detector or "yunet",
                out,
                accept_licence,
                threads,
                force,
                progress,
                mask_seed,
            )
        else:
            views = _read(sources, names(vector_column), identity_column, id_column, bad_rows)
            for name, files in traits.items():
                (view,) = _read(files, names(vector_column)[:1], identity_column, id_column, bad_rows)
                views.append(replace(view, name=name))
        done = measure_release(views, plan, progress=progress)
    faces = _faces(done, pictures) if show_faces else []
    verdict = None if rules is None else decide(done.result, rules)
    _show(done, out, faces, verdict, json=json, quiet=quiet)


def _traits(given: list[str], *, with_pictures: bool) -> dict[str, dict[str, str]]:
    """``eyes=S.parquet,T.parquet,H.parquet`` by its name."""
    if given and with_pictures:
        raise UnfaceError("--trait: names vectors; with --encoder, pass --crop")
    read: dict[str, dict[str, str]] = {}
    for one in given:
        name, _, text = one.partition("=")
        parts = [part.strip() for part in text.split(",")]
        if not name or len(parts) != 3 or not all(parts) or name in read:
            raise UnfaceError(f"--trait {one}: expected NAME=SYNTHETIC,TRAINING,HOLDOUT, each name once")
        read[name] = dict(zip(("synthetic", "training", "holdout"), parts, strict=True))
    return read


def _read(sources: dict[str, str], vectors: list[str], identity: str, id_column: str, bad_rows: str) -> "list[View]":
    """A view for each column of vectors."""
    from unface.data.embeddings import Columns
    from unface.release.read import read_faces
    from unface.release.run import View

    views = []
    for vector in vectors:
        columns = Columns(vector=vector, identity=identity, id=id_column)
        sets = {role: read_faces(source, columns, role=role, bad_rows=bad_rows) for role, source in sources.items()}
        main = next((one.space.encoder for one in sets.values() if one.space.encoder), None)
        if vector != vectors[0]:  # the file's metadata describe its first column
            sets = {
                role: replace(one, space=replace(one.space, encoder=None, weights_sha256=None))
                for role, one in sets.items()
            }
        name = vector if vector != "vector" else main or "face"
        views.append(View(name, **sets))
    return views


def _encoded(
    sources: dict[str, str],
    encoders: list[str],
    traits: list[str],
    detector: str,
    out: Path,
    accept_licence: bool,
    threads: int | None,
    force: bool,
    progress: "Progress",
    mask_seed: Path | None,
) -> "tuple[list[View], dict[str, ImageSet]]":
    """Pictures of all three sets by every encoder, kept beside the result; an interrupted run continues."""
    import numpy as np

    from unface.cli.pictures import FOLDER, load_all
    from unface.data import read_embeddings
    from unface.encode import encode_images, made_of
    from unface.faces import TRAITS, TraitCrop, load_landmarks
    from unface.release.faces import Faces, faces_of
    from unface.release.run import View

    for trait in traits:
        if trait not in TRAITS or traits.count(trait) > 1:
            raise UnfaceError(f"--crop {','.join(traits)}: expected each of {', '.join(TRAITS)} at most once")
    loaded, faces = load_all(
        encoders, detector, again=True, accept_licence=accept_licence, threads=threads, progress=progress
    )
    given = {role: _pictures(source) for role, source in sources.items()}
    for role, (pictures, labelled) in given.items():
        if labelled and len(pictures.identities) < 2 and role != "synthetic":
            raise UnfaceError(f"{pictures.source}: shows one person; {role} needs at least two")
    given["synthetic"] = _facemae(sources["synthetic"], given["synthetic"], given["training"][0], mask_seed)
    originals = {ref.id: ref.copy_of for ref in given["synthetic"][0]}
    crops: list[TraitCrop | None] = [None]
    if traits:
        landmarks = load_landmarks(accept_licence=accept_licence)
        crops += [TraitCrop(trait, landmarks) for trait in traits]
    views = []
    for (name, each), crop in product(loaded.items(), crops):
        sets: dict[str, Faces] = {}
        shown = name if crop is None else f"{name}-{crop.trait}"
        for role, (pictures, labelled) in given.items():
            path = out / FOLDER / f"{role}-{shown}.parquet"
            encode_images(
                pictures,
                each,
                path,
                detector=faces,
                crop=crop,
                threads=threads,
                force=force,
                keep=True,
                private=True,
                progress=progress,
            )
            many = labelled and len(pictures.identities) > 1
            read = read_embeddings(path, identity="identity" if many else None)
            read = replace(read, source=pictures.source, notes=(*read.notes, *pictures.notes, *made_of(path).notes))
            sets[role] = faces_of(read, labelled=many)
            if role == "synthetic" and any(originals.values()):
                made_from = np.array([originals[one] for one in read.ids], object)
                sets[role] = replace(sets[role], made_of=made_from)
        views.append(View(shown, **sets))
    return views, {role: pictures for role, (pictures, _) in given.items()}


def _pictures(source: str) -> "tuple[ImageSet, bool]":
    """Pictures by person where they lie in folders; otherwise each stands for itself."""
    from unface.data import NoIdentities, read_images

    try:
        return read_images(source), True
    except NoIdentities:
        return read_images(source, identity=None), False


def _facemae(
    source: str, given: "tuple[ImageSet, bool]", training: "ImageSet", mask_seed: Path | None
) -> "tuple[ImageSet, bool]":
    """A FaceMAE release numbers its people anew: the mask seed says who they are, and without it nobody does."""
    from unface.data import ImageSet
    from unface.protect.facemae_deploy import RELEASE

    if not (Path(source) / RELEASE).is_file():
        if mask_seed is not None:
            raise UnfaceError(f"--mask-seed: {source} is no FaceMAE release; leave it out")
        return given
    from unface.protect.facemae_deploy import commitment, read_manifest, read_mask_seed, released_names

    manifest, images = read_manifest(Path(source)), given[0]
    if mask_seed is None:
        return replace(images, notes=(*images.notes, "numbers of people hidden; --mask-seed tells who they are")), False
    key = read_mask_seed(mask_seed)
    if manifest["mask"]["seed_commitment"] != commitment(key):
        raise UnfaceError(f"{source}: was not made with this mask seed; give the file that deploy kept")
    names_of = released_names(training, key)
    made = {names_of[ref.id]: ref for ref in training}
    unknown = [ref.id for ref in images if ref.id not in made]
    if unknown:
        raise UnfaceError(f"{source}: {unknown[0]} was made of no picture of --training; give its originals")
    refs = [replace(ref, identity=made[ref.id].identity, copy_of=made[ref.id].id) for ref in images]
    return ImageSet(tuple(refs), images.source, images.notes), True


def _faces(done: "Released", pictures: "dict[str, ImageSet]") -> "list[FacePair]":
    """The riskiest synthetic pictures and the training pictures nearest to them, small."""
    from unface.report.release import FacePair

    wanted = done.faces[:_FACES_SHOWN]
    ids = {"synthetic": {one for one, _ in wanted}, "training": {other for _, other in wanted}}
    small = {
        role: {ref.id: _small(ref.read()) for ref in pictures[role] if ref.id in chosen} for role, chosen in ids.items()
    }
    return [FacePair(one, small["synthetic"][one], small["training"][other]) for one, other in wanted]


def _small(content: bytes) -> bytes:
    from io import BytesIO

    from PIL import Image

    from unface.data.images import decode

    picture = Image.fromarray(decode(content))
    picture.thumbnail((2 * _SIDE, 2 * _SIDE))
    made = BytesIO()
    picture.save(made, "JPEG", quality=80)
    return made.getvalue()


def _show(
    done: "Released", out: Path, faces: "list[FacePair]", decision: "GateResult | None", *, json: bool, quiet: bool
) -> None:
    """Files first, then the table or the JSON."""
    from functools import partial

    from unface.cli.show import show_decided
    from unface.report.release import print_release, render_release
    from unface.result.release import EXPOSED_FILE, ReleaseResult

    result = done.result
    page, drawn = ReleaseResult.page_in(out), render_release(result, faces, decision=decision)
    path = result.save(out, drawn, exposed=done.exposed, shows_faces=bool(faces))
    listed = {out / EXPOSED_FILE: done.exposed.about} if done.exposed.rows else {}
    show_decided(partial(print_release, result), decision, path, {**listed, page: "the page"}, json=json, quiet=quiet)
