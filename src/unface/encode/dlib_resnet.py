"""dlib's face recogniser, on 150-pixel chips."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.encode.frame import framed
from unface.errors import UnfaceError
from unface.models import Card


class DlibEncoder:
    """dlib_face_recognition_resnet_model_v1, by dlib itself."""

    def __init__(self, card: Card, path: Path, threads: int | None = None) -> None:
        try:
            import dlib
        except ImportError:
            raise UnfaceError(f"{card.name}: needs dlib; pip install 'unface[dlib]'") from None
        del threads  # dlib decides by itself
        self.card, self.name, self.dim = card, card.name, card.dim
        self._network = dlib.face_recognition_model_v1(str(path))

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(n, 128) vectors of RGB chips."""
        if not len(images):
            return np.empty((0, self.dim), dtype=np.float32)
        chips = [np.ascontiguousarray(framed(image, self.card.input)) for image in images]
        return np.asarray(self._network.compute_face_descriptor(chips), dtype=np.float32)
