"""Where identity lives: whether an encoder's similarity rests on the face or on what is around it."""

from unface.attribute.canvas import FCR, Canvas, canvas_of
from unface.attribute.inputs import (
    FaceSwap,
    LocatedPicture,
    Reader,
    Swapped,
    locate,
    reader_of,
    swap_by_inswapper,
    swap_by_landmarks,
)
from unface.attribute.pairing import LeftOut
from unface.attribute.perturb import REVEALED, SIGMAS, ShownFace, shown_faces
from unface.attribute.run import RAW, Attribution, attribute

__all__ = [
    "FCR",
    "RAW",
    "REVEALED",
    "SIGMAS",
    "Attribution",
    "Canvas",
    "FaceSwap",
    "LeftOut",
    "LocatedPicture",
    "Reader",
    "ShownFace",
    "Swapped",
    "attribute",
    "canvas_of",
    "locate",
    "reader_of",
    "shown_faces",
    "swap_by_inswapper",
    "swap_by_landmarks",
]
