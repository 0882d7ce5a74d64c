"""Detectors by name; their weights come from their cards."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.face import Face
from unface.faces.scrfd import Scrfd
from unface.faces.yunet import YuNet
from unface.models import card, weights


class Detector(Protocol):
    """Finds faces; must be safe to call from several threads."""

    @property
    def name(self) -> str: ...

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """Faces of an RGB picture (h, w, 3), best score first."""
        ...


class Remembered:
    """A detector that looks at each picture once, however often it is asked: for several encoders on one set."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._found: dict[bytes, bytes] = {}  # by the picture's hash, 120 bytes a face

    @property
    def name(self) -> str:
        """The detector's own."""
        return self._detector.name

    def detect(self, image: NDArray[np.uint8]) -> list[Face]:
        """What the detector found the first time."""
        key = hashlib.blake2b(f"{image.shape}".encode() + image.tobytes(), digest_size=16).digest()
        if key not in self._found:
            self._found[key] = b"".join(_packed(face) for face in self._detector.detect(image))
        rows = np.frombuffer(self._found[key], dtype=np.float64).reshape(-1, 15)
        return [Face(row[:4], row[4:14].reshape(5, 2), float(row[14])) for row in rows]


def _packed(face: Face) -> bytes:
    return np.array([*face.box, *face.landmarks.reshape(-1), face.score], dtype=np.float64).tobytes()


_DETECTORS: dict[str, Callable[[Path], Detector]] = {"yunet": YuNet, "scrfd-500m": Scrfd}


def load_detector(name: str = "yunet", *, accept_licence: bool = False) -> Detector:
    """A detector with its weights, fetched if they are not here yet."""
    if name not in _DETECTORS:
        raise UnfaceError(f"detector {name!r} is not known; choose from {', '.join(_DETECTORS)}")
    return _DETECTORS[name](weights(card(name), accept_licence=accept_licence))
