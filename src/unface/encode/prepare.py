"""One picture made ready for an encoder: decoded, its face found and aligned, brought to the model's size."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unface.data import BadPicture, decode
from unface.data.images import PIXELS
from unface.errors import UnfaceError
from unface.faces import (
    ARCFACE_112,
    CONTEXT_DIM,
    DLIB_150,
    Detector,
    Face,
    TraitCrop,
    align_face,
    box_crop,
    context_signature,
    cut_out,
    keep_only,
    main_face,
    perceptual_hash,
)
from unface.models import Input

_BOX_MARGIN = 1.25  # 160 pixels with a margin of 32, as FaceNet was trained
# Longest side of a picture, in short sides, that is still resized whole before its middle is cut out.
_LONGEST = 8


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
    """Safe to call from several threads. Without a detector, pictures are taken to be aligned already.

    With a crop the encoder sees one trait alone: in its place on the aligned face, the rest grey, if it wants aligned
    faces; else cut out, with bars beside it.
    """

    wanted: Input
    detector: Detector | None
    crop: TraitCrop | None = None

    def __call__(self, content: bytes | BadPicture) -> Prepared:
        if isinstance(content, BadPicture):
            return _unusable(content.reason)
        with PIXELS.room_for(content):
            try:
                image = decode(content)
            except BadPicture as bad:
                return _unusable(bad.reason)
            return self._prepared(image)

    def _prepared(self, image: NDArray[np.uint8]) -> Prepared:
        faces = [] if self.detector is None else self.detector.detect(image)
        face = main_face(faces, image.shape)
        if face is None and self.detector is not None and (self.crop or self.wanted.alignment != "none"):
            return _unusable("no face")
        frame = self._frame(image, face)
        if isinstance(frame, str):
            return _unusable(frame)
        return Prepared(
            frame=frame,
            reason=None,
            context=context_signature(image, None if face is None else face.landmarks),
            phash=perceptual_hash(image),
            faces=None if self.detector is None else len(faces),
            face_score=0.0 if face is None else face.score,
            face_px=0.0 if face is None else face.side,
        )

    def _frame(self, image: NDArray[np.uint8], face: Face | None) -> NDArray[np.uint8] | str:
        """What the encoder sees; or why a trait cannot be used."""
        if self.crop is None or face is None:
            return framed(aligned(image, face, self.wanted), self.wanted)
        region = self.crop.region(image, face)
        if isinstance(region, str):
            return region
        if self.wanted.alignment == "none":
            return framed(cut_out(image, region), replace(self.wanted, resize="letterbox"))
        return framed(aligned(keep_only(image, region), face, self.wanted), self.wanted)


def aligned(image: NDArray[np.uint8], face: Face | None, wanted: Input) -> NDArray[np.uint8]:
    """The part of a picture that an encoder wants; all of it where no face is known."""
    if face is None or wanted.alignment == "none":
        return image
    if wanted.alignment == "box160":
        return box_crop(image, face, _BOX_MARGIN)
    template, size = (ARCFACE_112, 112) if wanted.alignment == "arcface112" else (DLIB_150, 150)
    return align_face(image, face.landmarks, template, size)


def framed(image: NDArray[np.uint8], wanted: Input) -> NDArray[np.uint8]:
    """The picture at the model's size: stretched, cut from the middle, or with black bars; still 8-bit RGB.

    ``size`` 0 leaves it as it is.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise UnfaceError(f"a picture is {image.dtype} of shape {image.shape}; expected uint8 RGB (height, width, 3)")
    height, width = image.shape[:2]
    size = wanted.size
    if size in (0, height) and size in (0, width):
        return image
    if wanted.resize == "stretch":
        return _resized(image, size, size)
    if wanted.resize == "crop":
        image = _less_extreme(image)
        height, width = image.shape[:2]
    scale = size / (min if wanted.resize == "crop" else max)(height, width)
    rows, columns = max(round(height * scale), 1), max(round(width * scale), 1)
    whole = _resized(image, rows, columns)
    if wanted.resize == "crop":
        top, left = (rows - size) // 2, (columns - size) // 2
        return whole[top : top + size, left : left + size]
    frame = np.zeros((size, size, 3), dtype=np.uint8)
    top, left = (size - rows) // 2, (size - columns) // 2
    frame[top : top + rows, left : left + columns] = whole
    return frame


def tensor_of(images: Sequence[NDArray[np.uint8]], wanted: Input) -> NDArray[np.uint8] | NDArray[np.float32]:
    """A batch in the model's layout, channels, type and scale: (pixel − mean) / std."""
    batch = np.stack([framed(image, wanted) for image in images])
    if wanted.channels == "BGR":
        batch = batch[..., ::-1]
    if wanted.layout == "NCHW":
        batch = batch.transpose(0, 3, 1, 2)
    if wanted.dtype == "uint8":
        return np.ascontiguousarray(batch)
    shape = (3, 1, 1) if wanted.layout == "NCHW" else (3,)
    mean, std = (np.asarray(values, dtype=np.float32).reshape(shape) for values in (wanted.mean, wanted.std))
    tensor = np.subtract(batch, mean, dtype=np.float32, order="C")
    tensor /= std
    return tensor


def _unusable(reason: str) -> Prepared:
    return Prepared(None, reason, np.zeros(CONTEXT_DIM, dtype=np.float32), 0, 0, 0.0, 0.0)


def _less_extreme(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The middle of a very long picture: scaled by its short side, a strip of one pixel would fill the memory."""
    height, width = image.shape[:2]
    most = _LONGEST * min(height, width)
    top, left = max((height - most) // 2, 0), max((width - most) // 2, 0)
    return image[top : top + most, left : left + most]


def _resized(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Bilinear with a support that grows as the picture shrinks, which is what encoders were mostly trained on."""
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
