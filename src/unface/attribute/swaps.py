"""Ways to put another's face into a picture: moved by landmarks, or drawn by INSwapper where its file is given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.attribute.ports import FaceSwap
from unface.errors import UnfaceError
from unface.faces.face_swap import swap_face
from unface.faces.inswapper import InSwapper
from unface.models import card

LANDMARKS, INSWAPPER = "landmarks", "inswapper"
_RECOGNISER = "w600k_r50.onnx"  # INSwapper knows donors by this network's vectors and no other's


def swap_by_landmarks() -> tuple[str, FaceSwap]:
    """The default, which needs no weights; with its name."""
    return LANDMARKS, swap_face


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

    return INSWAPPER, InSwapper(path, embed)
