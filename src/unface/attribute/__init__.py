"""Where identity lives: whether an encoder's similarity rests on the face or on what is around it."""

from unface.attribute.canvas import FCR, Canvas, canvas_of
from unface.attribute.locate import locate
from unface.attribute.mask import Axes
from unface.attribute.measure import RAW, attribute
from unface.attribute.perturb import REVEALED, SIGMAS
from unface.attribute.ports import FaceSwap, LocatedPicture, Reader, Swapped
from unface.attribute.reader import reader_of
from unface.attribute.result import (
    Attribution,
    BStar,
    Cpi,
    Crossover,
    Estimate,
    Fii,
    LeftOut,
    Quality,
    Share,
    SpaceAttribution,
    Spread,
    Step,
)
from unface.attribute.show import ShownFace, shown_faces
from unface.attribute.swaps import swap_by_inswapper, swap_by_landmarks

__all__ = [
    "FCR",
    "RAW",
    "REVEALED",
    "SIGMAS",
    "Attribution",
    "Axes",
    "BStar",
    "Canvas",
    "Cpi",
    "Crossover",
    "Estimate",
    "FaceSwap",
    "Fii",
    "LeftOut",
    "LocatedPicture",
    "Quality",
    "Reader",
    "Share",
    "ShownFace",
    "SpaceAttribution",
    "Spread",
    "Step",
    "Swapped",
    "attribute",
    "canvas_of",
    "locate",
    "reader_of",
    "shown_faces",
    "swap_by_inswapper",
    "swap_by_landmarks",
]
