"""Pictures given where embeddings are expected: encoded first, beside the audit, and gone on with if cut off."""

from pathlib import Path

from unface.data import EmbeddingSet, ImageSet, read_embeddings
from unface.errors import UnfaceError
from unface.progress import Progress

FOLDER = "embeddings"


def encoded(
    pictures: ImageSet,
    encoder: str,
    out: Path,
    *,
    detector: str,
    accept_licence: bool,
    threads: int | None,
    force: bool,
    progress: Progress,
) -> EmbeddingSet:
    """The vectors of one encoder, kept in ``out``/embeddings; what surrounds each face comes as a label."""
    from unface.encode import encode_images, load_encoder, pictures_of
    from unface.faces import load_detector

    path = out / FOLDER / f"{encoder}.parquet"
    if path.exists() and not force:
        if pictures_of(path) != pictures.sha256():
            raise UnfaceError(f"{path}: is of other pictures; choose another --out or pass --force")
        return read_embeddings(path, context="context")
    loaded = load_encoder(encoder, accept_licence=accept_licence, threads=threads, progress=progress)
    found = None if detector == "none" else load_detector(detector, accept_licence=accept_licence)
    path.parent.mkdir(parents=True, exist_ok=True)
    encode_images(pictures, loaded, path, detector=found, threads=threads, force=force, progress=progress)
    return read_embeddings(path, context="context")
