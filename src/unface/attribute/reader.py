"""A frozen encoder as a reader of canvases: its card says the canvas's side and how a face is aligned for it."""

from functools import partial

from unface.attribute.ports import Image, Reader, whole
from unface.encode import Encoder
from unface.faces import ARCFACE_112, DLIB_150, Face, align_face, box_crop
from unface.models import Input

_SIDE = 224  # pixels (paper 001, App. D.2); encoders of whole pictures get their own size, as SSCD its 288
_BOX_MARGIN = 1.25


def reader_of(encoder: Encoder) -> Reader:
    """Whole canvases for general encoders, aligned faces for recognisers."""
    wanted = encoder.card.input
    if wanted.alignment == "none":
        return Reader(encoder.name, wanted.size or _SIDE, encoder.encode, whole)
    return Reader(encoder.name, _SIDE, encoder.encode, partial(_aligned, wanted=wanted))


def _aligned(canvas: Image, face: Face, wanted: Input) -> Image:
    if wanted.alignment == "box160":
        return box_crop(canvas, face, _BOX_MARGIN)
    template, size = (ARCFACE_112, 112) if wanted.alignment == "arcface112" else (DLIB_150, 150)
    return align_face(canvas, face.landmarks, template, size)
