"""INSwapper (InsightFace): a generator that draws a donor, given as an ArcFace vector, onto the host's aligned face."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.detect import session_of
from unface.faces.face import ARCFACE_112, align_face
from unface.faces.face_swap import Swapped, put_face, swap_place, unswapped

_SIDE, _DIM = 128, 512
_TEMPLATE = ARCFACE_112 + np.array([8.0, 0.0])  # InsightFace's crop of 128: wider on both sides, longer at the chin
_INPUTS = {"target": [3, _SIDE, _SIDE], "source": [_DIM]}  # for one face

Embed = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


class InSwapper:
    """Swaps faces with inswapper_128.onnx; called as ``swap_face`` is.

    ``embed`` takes a donor's face aligned to 112 pixels to its 512 numbers. They must be those of the ArcFace the
    generator was trained with, InsightFace's w600k_r50; another network's mean nothing to it.
    """

    def __init__(self, path: Path, embed: Embed) -> None:
        import onnx
        from onnx import numpy_helper

        try:
            graph = onnx.load(str(path)).graph
            self._session = session_of(str(path))
        except Exception as error:  # protobuf's and ONNX Runtime's errors have no common class
            raise UnfaceError(
                f"{path.name}: not a readable ONNX file ({type(error).__name__}); give inswapper_128.onnx"
            ) from None
        found = {value.name: list(value.shape[1:]) for value in self._session.get_inputs()}
        if found != _INPUTS:
            raise UnfaceError(f"{path.name}: takes {found}, INSwapper takes {_INPUTS}; give inswapper_128.onnx")
        # InsightFace finds the matrix by its place in the file, too.
        last = numpy_helper.to_array(graph.initializer[-1]) if graph.initializer else np.empty(0)
        if last.shape != (_DIM, _DIM):
            raise UnfaceError(
                f"{path.name}: its last initializer is {last.shape}, expected the emap ({_DIM}, {_DIM}); "
                "give inswapper_128.onnx as distributed"
            )
        self._emap = last.astype(np.float32)
        self._embed = embed

    def __call__(
        self,
        host: NDArray[np.uint8],
        host_landmarks: NDArray[np.float64],
        donor: NDArray[np.uint8],
        donor_landmarks: NDArray[np.float64],
    ) -> Swapped:
        """The host's RGB picture (h, w, 3) with the donor's face on the ellipse of the host's landmarks (5, 2)."""
        place = swap_place(host, host_landmarks, donor, donor_landmarks)
        if isinstance(place, str):
            return unswapped(host, place)
        source = self._source(align_face(donor, donor_landmarks, ARCFACE_112, 112))
        if source is None:
            return unswapped(host, "donor: no vector of the face")
        drawn = self._drawn(align_face(host, host_landmarks, _TEMPLATE, _SIDE), source)
        if drawn is None:
            return unswapped(host, "INSwapper drew no face")
        return put_face(host, place, drawn, _TEMPLATE)

    def _source(self, aligned: NDArray[np.uint8]) -> NDArray[np.float32] | None:
        """(1, 512): the donor's direction in the generator's own space, of length one."""
        vector = np.asarray(self._embed(aligned), dtype=np.float32).reshape(-1)
        if len(vector) != _DIM:
            raise UnfaceError(f"INSwapper: embed gave {len(vector)} numbers, expected {_DIM}; give it w600k_r50")
        if not np.isfinite(vector).all() or not vector.any():
            return None
        moved = vector @ self._emap
        return np.asarray(moved / np.linalg.norm(moved), dtype=np.float32)[None]

    def _drawn(self, target: NDArray[np.uint8], source: NDArray[np.float32]) -> NDArray[np.uint8] | None:
        blob = np.ascontiguousarray((target.astype(np.float32) / 255).transpose(2, 0, 1)[None])
        try:
            pixels = self._session.run(None, {"target": blob, "source": source})[0]
        except Exception:  # ONNX Runtime's errors have no common class
            return None
        if pixels.shape != blob.shape or not np.isfinite(pixels).all():
            return None
        return np.asarray(np.rint(np.clip(pixels[0].transpose(1, 2, 0), 0, 1) * 255), dtype=np.uint8)
