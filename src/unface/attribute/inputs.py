"""What attribution is given: located pictures, an encoder that reads them, and a way to swap two faces."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unface.data import BadPicture, ImageRef, ImageSet, decode
from unface.data.images import PIXELS, declared_pixels
from unface.encode import Encoder, ahead, aligned, contents
from unface.errors import UnfaceError
from unface.faces import Detector, Face, main_face
from unface.faces.face_swap import InSwapper, swap_face
from unface.models import card
from unface.progress import Progress, Silent
from unface.threads import available_cores

Image = NDArray[np.uint8]
"""(h, w, 3) RGB."""

_SIDE = 224  # pixels (the ISP paper, App. D.2); encoders of whole pictures get their own size, as SSCD its 288
_RECOGNISER = "w600k_r50.onnx"  # INSwapper knows donors by this network's vectors and no other's


@dataclass(frozen=True, eq=False)
class LocatedPicture:
    """A picture, whose it is and where its face is; without an image, ``reason`` says why there is none."""

    id: str
    identity: str
    image: Image | None
    face: Face | None
    reason: str | None = None


def locate(
    images: ImageSet, detector: Detector, *, threads: int | None = None, progress: Progress | None = None
) -> Generator[LocatedPicture, None, None]:
    """The pictures in their order, each with its main face; nothing is left out here, so that all can be counted."""
    progress, threads = progress or Silent(), threads or available_cores()
    progress.start("finding faces", len(images))
    pictures = zip(images, contents(images), strict=True)
    with closing(ahead(partial(_located, detector=detector), pictures, threads, 4 * threads, _weight)) as located:
        for picture in located:
            progress.advance("finding faces")
            yield picture


def _located(item: tuple[ImageRef, bytes | BadPicture], detector: Detector) -> LocatedPicture:
    ref, content = item
    try:
        if isinstance(content, BadPicture):
            raise content
        with PIXELS.room_for(content):
            image = decode(content)
            return LocatedPicture(ref.id, ref.identity, image, main_face(detector.detect(image), image.shape))
    except BadPicture as bad:
        return LocatedPicture(ref.id, ref.identity, None, None, bad.reason)


def _weight(item: tuple[ImageRef, bytes | BadPicture]) -> int:
    """Bytes: pictures wait whole, since their surroundings are looked at too."""
    content = item[1]
    return 0 if isinstance(content, BadPicture) else len(content) + 3 * declared_pixels(content)


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


def reader_of(encoder: Encoder) -> Reader:
    """Whole canvases for general encoders, faces aligned as its card says for recognisers."""
    wanted = encoder.card.input
    if wanted.alignment == "none":
        return Reader(encoder.name, wanted.size or _SIDE, encoder.encode, whole)
    return Reader(encoder.name, _SIDE, encoder.encode, partial(aligned, wanted=wanted))


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


def swap_by_landmarks() -> tuple[str, FaceSwap]:
    """The default, which needs no weights; with its name."""
    return "landmarks", swap_face


def swap_by_inswapper(path: Path, *, accept_licence: bool) -> tuple[str, FaceSwap]:
    """INSwapper's generator, with the recogniser that must lie beside it; with its name."""
    recogniser = path.parent / _RECOGNISER
    for file in (path, recogniser):
        if not file.is_file():
            raise UnfaceError(f"{file}: is not there; --inswapper needs inswapper_128.onnx and {_RECOGNISER} beside it")
    if not accept_licence:
        raise UnfaceError(f"{path.name}: INSwapper is for non-commercial research only; pass --accept-licence for that")
    from unface.encode.onnx import OnnxEncoder

    # InsightFace's recognisers take pictures alike, whatever their size.
    wanted = replace(card("arcface-mbf"), name="w600k_r50", file=_RECOGNISER)
    try:
        encoder = OnnxEncoder(wanted, recogniser, threads=1)
    except UnfaceError as wrong:
        raise UnfaceError(f"{recogniser}: is not InsightFace's w600k_r50 ({wrong})") from None

    def embed(aligned: NDArray[np.uint8]) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = encoder.encode([aligned])[0]
        return vector

    return "inswapper", InSwapper(path, embed)
