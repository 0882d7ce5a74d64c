"""What attribution is given: located pictures, an encoder that reads them, and a way to swap two faces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.faces import Face

Image = NDArray[np.uint8]
"""(h, w, 3) RGB."""


@dataclass(frozen=True, eq=False)
class LocatedPicture:
    """A picture, whose it is and where its face is; without an image, ``reason`` says why there is none."""

    id: str
    identity: str
    image: Image | None
    face: Face | None
    reason: str | None = None


class Swapped(Protocol):
    """The host's picture with the donor's face, or, where ``ok`` is false, the reason why there is none."""

    @property
    def image(self) -> Image: ...

    @property
    def ok(self) -> bool: ...

    @property
    def reason(self) -> str | None: ...


class FaceSwap(Protocol):
    """Puts a donor's face into a host's picture of the same size; must be safe to call from several threads."""

    def __call__(
        self, host: Image, host_landmarks: NDArray[np.float64], donor: Image, donor_landmarks: NDArray[np.float64], /
    ) -> Swapped: ...


def whole(canvas: Image, face: Face) -> Image:
    """The canvas as it is, for encoders that take pictures and not aligned faces."""
    return canvas


@dataclass(frozen=True, eq=False)
class Reader:
    """An encoder as attribution sees it. ``view`` makes of a canvas, perturbed or not, what ``encode`` takes.

    ``view`` is called from several threads, with the face as it was before anything was perturbed or swapped: a
    detector would find it elsewhere, or not at all, once it is blurred.
    """

    name: str
    size: int
    """Side of the canvas in pixels."""
    encode: Callable[[Sequence[Image]], NDArray[np.float32]]
    view: Callable[[Image, Face], Image] = whole
