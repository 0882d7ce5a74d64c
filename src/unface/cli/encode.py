"""``unface encode``: pictures into a Parquet file of vectors."""

import json as jsonlib
from pathlib import Path

import typer

from unface.cli.options import QUIET, THREADS


def encode(
    images: Path = typer.Argument(
        ..., metavar="IMAGES", help="Folder, zip or tar of <identity>/<image>, CelebA, or Parquet with pictures."
    ),
    encoder: str = typer.Option(..., "--encoder", help="Name of an encoder; 'unface models list' shows them."),
    out: Path = typer.Option(..., "--out", help="Parquet file to write."),
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
    batch: int = typer.Option(32, "--batch", min=1, help="Pictures that the encoder takes at a time."),
    threads: int | None = THREADS,
    force: bool = typer.Option(False, "--force", help="Overwrite a finished file, or start an unfinished one again."),
    json: bool = typer.Option(False, "--json", help="Print what was done as JSON."),
    quiet: bool = QUIET,
) -> None:
    """Encode pictures into vectors, with what surrounds each face beside them.

    Cut off, the same command goes on where it stopped.
    """
    from unface.cli.bars import progress_bars
    from unface.data import read_images
    from unface.encode import encode_images, load_encoder, require_free
    from unface.faces import load_detector

    require_free(out, force=force)
    pictures = read_images(images, identities=identities, image=image_column, identity=identity_column, id=id_column)
    with progress_bars(quiet=quiet or json) as progress:
        loaded = load_encoder(encoder, accept_licence=accept_licence, threads=threads, progress=progress)
        found = None if detector == "none" else load_detector(detector, accept_licence=accept_licence)
        encoded = encode_images(
            pictures, loaded, out, detector=found, batch=batch, threads=threads, force=force, progress=progress
        )
    if json:
        shown = {
            "out": str(encoded.path),
            "encoder": loaded.name,
            "licence": loaded.card.licence.name,
            "pictures": encoded.pictures,
            "rows": encoded.rows,
            "dim": encoded.dim,
            "skipped": dict(encoded.skipped),
            "notes": dict(encoded.notes),
            "left_out": list(pictures.notes),
        }
        typer.echo(jsonlib.dumps(shown, indent=2))
    elif not quiet:
        for line in (*pictures.notes, *encoded.sentences()):
            typer.echo(line)
