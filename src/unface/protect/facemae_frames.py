"""Pictures as FaceMAE takes them: the main face of each, aligned to ArcFace's five points at the preset's size."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unface.data import BadPicture, ImageRef, ImageSet, decode
from unface.data.images import PIXELS
from unface.encode import ahead, contents, framed
from unface.encode.pipeline import file_bytes
from unface.errors import UnfaceError
from unface.faces import ARCFACE_112, Detector, align_face, main_face
from unface.models import Input
from unface.progress import Progress, Silent
from unface.threads import available_cores

Result = TypeVar("Result")
_WAITING = 64


@dataclass(frozen=True, eq=False)
class Frame:
    """A face (size, size, 3) RGB, and a hash of the picture that it was cut from."""

    pixels: NDArray[np.uint8]
    content: bytes


@dataclass(frozen=True, eq=False)
class Faces:
    """The faces of a set for training: (n, size, size, 3), whose they are, and why pictures were left out."""

    frames: NDArray[np.uint8]
    identities: tuple[str, ...]
    left_out: Counter[str]


def read_faces(
    images: ImageSet,
    size: int,
    detector: Detector | None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Faces:
    """All faces of a set in memory; a set without any is refused."""
    frames, owners, left_out = [], [], Counter[str]()
    progress, task = progress or Silent(), "finding faces"
    progress.start(task, len(images))
    for ref, found in zip(images, each_face(images.images, size, detector, threads, lambda frame: frame), strict=True):
        if isinstance(found, str):
            left_out[found] += 1
        else:
            frames.append(found.pixels)
            owners.append(ref.identity)
        progress.advance(task)
    require_faces(images, len(frames), left_out)
    return Faces(np.stack(frames), tuple(owners), left_out)


def each_face(
    refs: Sequence[ImageRef],
    size: int,
    detector: Detector | None,
    threads: int | None,
    use: Callable[[Frame], Result],
) -> Iterator[Result | str]:
    """``use`` of each picture's face, in order, or why there is none; what ``use`` drops is nowhere else."""

    def one(content: bytes | BadPicture) -> Result | str:
        if isinstance(content, BadPicture):
            return content.reason
        with PIXELS.room_for(content):
            try:
                picture = decode(content)
            except BadPicture as bad:
                return bad.reason
            frame = _frame(picture, size, detector)
        return "no face" if frame is None else use(frame)

    threads = threads or available_cores()
    with closing(ahead(one, contents(refs), threads, _WAITING, file_bytes)) as ready:
        yield from ready


def require_faces(images: ImageSet, count: int, left_out: Counter[str]) -> None:
    """Refuse a set of which nothing can be used."""
    if not count:
        why = ", ".join(f"{number} {reason}" for reason, number in left_out.items())
        advice = "; for faces that are cut out already, pass --detector none" if "no face" in left_out else ""
        raise UnfaceError(f"{images.source}: none of {len(images)} pictures could be used ({why}){advice}")


def _frame(picture: NDArray[np.uint8], size: int, detector: Detector | None) -> Frame | None:
    content = hashlib.sha256(f"{picture.shape}".encode() + picture.tobytes()).digest()
    if detector is None:
        whole = Input(size, "NHWC", "RGB", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "crop")
        return Frame(np.ascontiguousarray(framed(picture, whole)), content)
    face = main_face(detector.detect(picture), picture.shape)
    if face is None:
        return None
    template = (ARCFACE_112 + 0.5) * (size / 112) - 0.5  # a pixel's centre lies at half
    return Frame(align_face(picture, face.landmarks, template, size), content)
