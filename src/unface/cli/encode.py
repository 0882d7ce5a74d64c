"""``unface encode``: pictures into Parquet files of vectors, one for each encoder."""

import json as jsonlib
from pathlib import Path

import typer

from unface.cli.options import AUGMENT, QUIET, THREADS, names
from unface.errors import UnfaceError


def encode(
    images: Path = typer.Argument(
        ..., metavar="IMAGES", help="Folder, zip or tar of <identity>/<image>, CelebA, or Parquet with pictures."
    ),
    encoder: list[str] = typer.Option(
        ..., "--encoder", help="Name of an encoder, repeated or with commas; 'unface models list' shows them."
    ),
    out: Path = typer.Option(
        ...,
        "--out",
        help="Parquet file to write; with several encoders or crops the folder for their files.",
    ),
    crop: list[str] = typer.Option(
        [], "--crop", help="Encode one facial trait alone: face, eyes, nose or mouth, repeated or with commas."
    ),
    accept_licence: bool = typer.Option(False, "--accept-licence", help="Accept weights for research use only."),
    detector: str = typer.Option(
        "yunet", "--detector", help="yunet, scrfd-500m, or none: the pictures are aligned faces already."
    ),
    identities: Path | None = typer.Option(
        None, "--identities", help="Text file of lines '<image> <identity>', where folders do not say it."
    ),
    image_column: str = typer.Option("image", "--image-column", help="Column of pictures in Parquet."),
    identity_column: str = typer.Option("identity", "--identity-column", help="Column of identities in Parquet."),
    id_column: str = typer.Option("id", "--id-column", help="Column of picture ids in Parquet."),
    augment: int = AUGMENT,
    batch: int = typer.Option(32, "--batch", min=1, help="Pictures that the encoder takes at a time."),
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished file, or start an unfinished one again."),
    json: bool = typer.Option(False, "--json", help="Print a summary as JSON."),
    quiet: bool = QUIET,
) -> None:
    """Encode pictures into vectors, with a description of what surrounds each face.

    If a run is interrupted, the same command continues it.
    """
    from unface.cli.pictures import load_all
    from unface.cli.show import progress_bars, say
    from unface.data import read_images
    from unface.encode import encode_images, require_free, with_copies
    from unface.faces import TRAITS, TraitCrop, load_landmarks
    from unface.output.taken import require_folder

    chosen = names(encoder)
    traits = names(crop)
    for trait in traits:
        if trait not in TRAITS or traits.count(trait) > 1:
            raise UnfaceError(f"--crop {','.join(traits)}: expected each of {', '.join(TRAITS)} at most once")
    several = len(chosen) > 1 or len(traits) > 1
    if several and out.suffix == ".parquet":
        files = f"{len(chosen)} encoders" if len(chosen) > 1 else f"{len(traits)} crops"
        raise UnfaceError(f"{out}: {files} write one file each; give --out the name of a folder")
    if traits and detector == "none":
        raise UnfaceError(f"--crop {','.join(traits)}: needs a detector; leave out --detector none")
    if several:
        require_folder(out)
    else:
        require_free(out, force=force)
    pictures = read_images(images, identities=identities, image=image_column, identity=identity_column, id=id_column)
    pictures = with_copies(pictures, augment)
    finished = []
    with progress_bars(quiet=quiet or json) as progress:
        loaded, found = load_all(
            chosen, detector, again=len(traits) > 1, accept_licence=accept_licence, threads=threads, progress=progress
        )
        crops: list[TraitCrop | None] = [None]
        if traits:
            landmarks = load_landmarks(accept_licence=accept_licence)
            crops = [TraitCrop(trait, landmarks) for trait in traits]
        paths = {
            (name, one): out / f"{name}{'' if one is None else f'-{one.trait}'}.parquet" if several else out
            for name in loaded
            for one in crops
        }
        if several and not force and all(path.exists() for path in paths.values()):
            raise UnfaceError(f"{out}: has the files of these encoders already; choose another --out or pass --force")
        for (name, one), path in paths.items():
            encoded = encode_images(
                pictures,
                loaded[name],
                path,
                detector=found,
                crop=one,
                batch=batch,
                threads=threads,
                force=force,
                keep=several,  # an interrupted run over several encoders may have finished some of them
                progress=progress,
            )
            finished.append((loaded[name], one, encoded))
    if json:
        shown = [
            {
                "out": str(encoded.path),
                "encoder": used.name,
                "licence": used.card.licence.name,
                "pictures": encoded.pictures,
                "rows": encoded.rows,
                "dim": encoded.dim,
                "crop": one and one.trait,
                "skipped": dict(encoded.skipped),
                "notes": dict(encoded.notes),
                "left_out": list(pictures.notes),
            }
            for used, one, encoded in finished
        ]
        typer.echo(jsonlib.dumps(shown if several else shown[0], indent=2))
    elif not quiet:
        for line in (*pictures.notes, *(line for _, _, encoded in finished for line in encoded.sentences())):
            say(line)
