"""Pictures whose reading is watched, and a detector that always finds the same face."""

import numpy as np
from numpy.typing import NDArray

from unface.data import ImageSet
from unface.data.images import ImageRef
from unface.faces import ARCFACE_112, Face


class Found:
    """A detector that finds the same face in every picture, or none in small ones."""

    name = "found"

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        if image.shape[0] < 20:
            return []
        return [Face(np.array([2.0, 2.0, 20.0, 20.0]), ARCFACE_112 / 5, 0.9)]


def counted(images: ImageSet, reads: list[str], stop_at: int | None = None) -> ImageSet:
    """The same pictures, noting each that is read, and failing like a full disk at one of them."""

    def noting(ref: ImageRef) -> ImageRef:
        def read() -> bytes:
            if len(reads) == stop_at:
                raise RuntimeError("pulled the plug")
            reads.append(ref.id)
            return ref.read()

        return ImageRef(ref.id, ref.identity, read)

    return ImageSet(tuple(noting(ref) for ref in images), images.source)
