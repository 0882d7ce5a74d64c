"""One picture made ready for an encoder: decoded, its face found and aligned, its surroundings noted."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import BadPicture, decode
from unface.encode.frame import framed
from unface.faces import (
    ARCFACE_112,
    CONTEXT_DIM,
    DLIB_150,
    Detector,
    Face,
    align_face,
    box_crop,
    context_signature,
    main_face,
    perceptual_hash,
)
from unface.models import Input

_BOX_MARGIN = 1.25  # 160 pixels with a margin of 32, as FaceNet was trained


@dataclass(frozen=True, eq=False)
class Prepared:
    """A picture at the encoder's size and what was seen on it; or, without a frame, why it cannot be used."""

    frame: NDArray[np.uint8] | None
    reason: str | None
    context: NDArray[np.float32]
    phash: int
    faces: int | None  # None where nobody looked
    face_score: float
    face_px: float

    def without_frame(self) -> "Prepared":
        """What stays once the picture is encoded."""
        return replace(self, frame=None)


@dataclass(frozen=True, eq=False)
class Preparer:
    """Safe to call from several threads. Without a detector, pictures are taken to be aligned already."""

    wanted: Input
    detector: Detector | None

    def __call__(self, content: bytes | BadPicture) -> Prepared:
        try:
            if isinstance(content, BadPicture):
                raise content
            image = decode(content)
        except BadPicture as bad:
            return _unusable(bad.reason)
        faces = [] if self.detector is None else self.detector.detect(image)
        face = main_face(faces, image.shape)
        if face is None and self.detector is not None and self.wanted.alignment != "none":
            return _unusable("no face")
        return Prepared(
            frame=framed(aligned(image, face, self.wanted), self.wanted),
            reason=None,
            context=context_signature(image, None if face is None else face.landmarks),
            phash=perceptual_hash(image),
            faces=None if self.detector is None else len(faces),
            face_score=0.0 if face is None else face.score,
            face_px=0.0 if face is None else face.side,
        )


def aligned(image: NDArray[np.uint8], face: Face | None, wanted: Input) -> NDArray[np.uint8]:
    """The part of a picture that an encoder wants; all of it where no face is known."""
    if face is None or wanted.alignment == "none":
        return image
    if wanted.alignment == "box160":
        return box_crop(image, face, _BOX_MARGIN)
    template, size = (ARCFACE_112, 112) if wanted.alignment == "arcface112" else (DLIB_150, 150)
    return align_face(image, face.landmarks, template, size)


def _unusable(reason: str) -> Prepared:
    return Prepared(None, reason, np.zeros(CONTEXT_DIM, dtype=np.float32), 0, 0, 0.0, 0.0)
