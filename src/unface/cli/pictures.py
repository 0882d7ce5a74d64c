"""Pictures given where embeddings are expected: encoded first, beside the audit; an interrupted run continues."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unface.data import EmbeddingSet, ImageSet, read_embeddings
from unface.errors import UnfaceError
from unface.progress import Progress

if TYPE_CHECKING:
    from unface.encode import Encoder
    from unface.faces import Detector

FOLDER = "embeddings"


def load_all(
    encoders: Sequence[str],
    detector: str,
    *,
    again: bool,
    accept_licence: bool,
    threads: int | None,
    progress: Progress,
) -> "tuple[dict[str, Encoder], Detector | None]":
    """Every encoder by a name fit for a folder, and the detector: what is missing is refused before any work is done.

    Faces are remembered if several encoders ask for them, or one does ``again``; otherwise it would only cost memory.
    """
    from unface.encode import load_encoder
    from unface.faces import Remembered, load_detector

    loaded = {}
    for name in encoders:
        if encoders.count(name) > 1:
            raise UnfaceError(f"encoder {name!r}: is named more than once; leave all but one out")
        encoder = load_encoder(name, accept_licence=accept_licence, threads=threads, progress=progress)
        folder = re.sub(r"[^A-Za-z0-9._-]+", "-", encoder.name)
        if folder in (FOLDER, ".", "..") or folder in loaded:
            raise UnfaceError(f"encoder {name!r}: its name cannot be that of a folder here; add it under another one")
        loaded[folder] = encoder
    if detector == "none":
        return loaded, None
    found = load_detector(detector, accept_licence=accept_licence)
    return loaded, Remembered(found) if again or len(loaded) > 1 else found


def encoded(
    pictures: ImageSet,
    encoder: "Encoder",
    path: Path,
    *,
    detector: "Detector | None",
    threads: int | None,
    force: bool,
    progress: Progress,
) -> EmbeddingSet:
    """The vectors of one encoder, made or found at ``path``; what surrounds each face comes as a label."""
    from unface.encode import encode_images, made_of

    encode_images(
        pictures,
        encoder,
        path,
        detector=detector,
        threads=threads,
        force=force,
        keep=True,
        private=True,
        progress=progress,
    )
    embeddings = read_embeddings(path, context="context")
    return replace(embeddings, notes=(*embeddings.notes, *pictures.notes, *made_of(path).notes))
