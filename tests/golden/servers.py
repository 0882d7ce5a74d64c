"""What stands around a case's command lines: toy weights in place of the real ones, and a face service that answers."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from zipfile import ZipFile

from examples.face_server import Recogniser

from tests.golden.stores import faiss, files, lance, npy, postgres, qdrant
from tests.validate.live import Face, served

__all__ = [
    "banned_half_way", "faiss", "files", "lance", "npy", "postgres", "qdrant", "scores", "service", "toy_weights",
]  # fmt: skip

SISTERS = Path(__file__).parent / "inputs" / "sisters"
_TOY_DIM = 24


@contextmanager
def toy_weights() -> Iterator[str]:
    """Cards whose weights are those of ``toy-weights.zip``: the same readers and thresholds, no downloads."""
    from unface.models import own
    from unface.protect import facemae, recogniser

    with TemporaryDirectory() as cache, ZipFile(SISTERS / "toy-weights.zip") as archive:
        archive.extractall(Path(cache) / "models")
        pinned = []
        for card in own.shipped():
            file = Path(cache) / "models" / card.name / card.file
            if file.is_file():
                content = file.read_bytes()
                beside = tuple(
                    replace(part, bytes=other.stat().st_size, sha256=_sha256(other.read_bytes()))
                    for part in card.beside
                    for other in [file.with_name(part.file)]
                )
                dim = _TOY_DIM if card.task == "encoder" else card.dim
                card = replace(card, dim=dim, bytes=len(content), sha256=_sha256(content), sources=(), beside=beside)
            pinned.append(card)
        preset = replace(
            facemae.PRESETS["tiny"], size=16, patch=4, dim=16, depth=1, heads=2, decoder_dim=16, decoder_depth=1,
            decoder_heads=2, batch=4,
        )  # fmt: skip
        learner = replace(recogniser.RECOGNISERS["tiny"], size=16, width=0.25, dim=16, epochs=1, batch=32)
        with (
            patch.object(own, "shipped", lambda: tuple(pinned)),
            patch.dict(os.environ, {"UNFACE_CACHE": cache}),
            patch.dict(facemae.PRESETS, {"tiny": preset}),
            patch.dict(recogniser.RECOGNISERS, {"tiny": learner}),
        ):
            yield ""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def service(limit: int | None = None) -> Iterator[str]:
    """The loopback face service of the examples, with a toy recogniser: cosines with the first enrolled picture."""
    with toy_weights():
        recogniser = Recogniser("sface", SISTERS / "enrol.zip")
        face = Face(limit=limit)
        face.service.compare, face.service.people = recogniser, recogniser.people
        with served(face) as address:
            yield address


@contextmanager
def scores() -> Iterator[str]:
    """Answers every question."""
    with service() as address:
        yield address


@contextmanager
def banned_half_way() -> Iterator[str]:
    """Refuses every question after the seventieth with 403."""
    with service(limit=70) as address:
        yield address
