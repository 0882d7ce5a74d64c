"""One person's face in another's picture: moved by landmarks, coloured like the host's, blended by Poisson's equation.

A similarity moves it and nothing bends it: proportions are part of who someone is, and recognisers find less of the
donor in a face that was bent until all five points met.

``Inswapper`` draws the donor instead: InsightFace's generator, given the donor's ArcFace vector and the host's face.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.faces.detect import session_of
from unface.faces.face import ARCFACE_112, TINY, align_face, face_ellipse

_FEATHER = 3  # pixels around the ellipse over which the donor fades (the ISP paper, App. D)
_SEAM = _FEATHER + 3  # where the host's colours are taken up; OpenCV draws the region it is given in by 3 pixels
_REACH = 1.5  # half the window, in distances between the eyes or from eyes to mouth; the ellipse needs 1.3
_SKIN = 2 / 3  # of the ellipse: mostly free of hair and background, where the host's colours are given to the donor
_FLATTEST = 0.1  # sine of the angle between the line of the eyes and that to the mouth


@dataclass(frozen=True, eq=False)
class Swapped:
    """A picture with another's face; or the host as it was, with the reason why."""

    image: NDArray[np.uint8]  # (h, w, 3)
    mask: NDArray[np.bool_]  # (h, w): all that may have changed; outside it the host's pixels are untouched
    reason: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the face was swapped."""
        return self.reason is None


def swap_face(
    host: NDArray[np.uint8],
    host_landmarks: NDArray[np.float64],
    donor: NDArray[np.uint8],
    donor_landmarks: NDArray[np.float64],
) -> Swapped:
    """The host's RGB picture (h, w, 3) with the donor's face on the ellipse of the host's landmarks (5, 2)."""
    place = swap_place(host, host_landmarks, donor, donor_landmarks)
    return unswapped(host, place) if isinstance(place, str) else put_face(host, place, donor, donor_landmarks)


@dataclass(frozen=True, eq=False)
class Place:
    """The window of a picture that holds a face, and where in it the face is."""

    window: tuple[slice, slice]
    landmarks: NDArray[np.float64]  # (5, 2), in pixels of the window
    ellipse: NDArray[np.bool_]


def swap_place(
    host: NDArray[np.uint8],
    host_landmarks: NDArray[np.float64],
    donor: NDArray[np.uint8],
    donor_landmarks: NDArray[np.float64],
) -> Place | str:
    """Where the host's face lies; or why it cannot be replaced, or the donor's not be taken."""
    place, given = _place(host, host_landmarks), _place(donor, donor_landmarks)
    if isinstance(place, str):
        return f"host: {place}"
    return f"donor: {given}" if isinstance(given, str) else place


def put_face(
    host: NDArray[np.uint8], place: Place, picture: NDArray[np.uint8], landmarks: NDArray[np.float64]
) -> Swapped:
    """The host with the face of another picture (h, w, 3) in its place, as far as that picture reaches."""
    import cv2

    under = np.ascontiguousarray(host[place.window])
    everywhere = np.full(picture.shape[:2], 255, dtype=np.uint8)
    face, reached = (_moved(part, landmarks, place) for part in (picture, everywhere))
    whole = cv2.erode(reached, _square(_SEAM), borderType=cv2.BORDER_REPLICATE) == 255
    region = (place.ellipse & whole).astype(np.uint8)
    if np.count_nonzero(region) < TINY**2:
        return unswapped(host, "donor: face at the border")
    seam = cv2.dilate(region * 255, _square(_SEAM))
    left, top, width, height = cv2.boundingRect(seam)
    middle = (left + width // 2, top + height // 2)
    skin = face_ellipse(place.landmarks, place.ellipse.shape, _SKIN)
    coloured = _coloured(face, under, skin & (region > 0))
    try:
        # Overwrites the region it is given, so nothing may be read from it afterwards.
        cloned = cv2.seamlessClone(coloured, under, seam, middle, cv2.NORMAL_CLONE)
    except cv2.error:
        return unswapped(host, "OpenCV could not blend the face")
    outside, inside = (cv2.distanceTransform(part, cv2.DIST_L2, 5) for part in (1 - region, region))
    # Poisson's equation carries colours of the background into the face; it is needed at the rim alone.
    depth = np.clip(inside / ((1 - _SKIN) * inside.max()), 0, 1)[..., None]
    blended = cloned + depth * (coloured.astype(np.float32) - cloned)
    share = np.clip(1 - outside / (_FEATHER + 1), 0, 1)[..., None]
    image, mask = host.copy(), np.zeros(host.shape[:2], dtype=bool)
    image[place.window] = np.rint(under + share * (blended - under)).astype(np.uint8)
    mask[place.window] = share[..., 0] > 0
    return Swapped(image, mask)


def unswapped(host: NDArray[np.uint8], reason: str) -> Swapped:
    """The host left as it was."""
    return Swapped(host, np.zeros(host.shape[:2], dtype=bool), reason)


def _place(image: NDArray[np.uint8], landmarks: NDArray[np.float64]) -> Place | str:
    points = np.asarray(landmarks, dtype=np.float64)
    wrong = _wrong(image, points)
    if wrong:
        return wrong
    eyes, mouth = points[:2].mean(axis=0), points[3:].mean(axis=0)
    longest = max(np.linalg.norm(points[1] - points[0]), np.linalg.norm(mouth - eyes))
    centre, reach = (eyes + mouth) / 2, _REACH * longest + _SEAM + 2
    size = np.array(image.shape[1::-1])
    if ((centre < 0) | (centre >= size)).any():
        return "face at the border"
    left, top = np.maximum(np.floor(centre - reach), 0).astype(int)
    right, bottom = np.minimum(np.ceil(centre + reach), size).astype(int)
    ellipse = face_ellipse(points - (left, top), (bottom - top, right - left))
    if np.count_nonzero(ellipse) < TINY**2:
        return "face too small"
    edge = _SEAM + 1
    if np.count_nonzero(ellipse[edge:-edge, edge:-edge]) < np.count_nonzero(ellipse):
        return "face at the border"
    return Place((slice(top, bottom), slice(left, right)), points - (left, top), ellipse)


def _wrong(image: NDArray[np.uint8], points: NDArray[np.float64]) -> str | None:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        return "not an RGB picture of bytes"
    if points.shape != (5, 2) or not np.isfinite(points).all():
        return "landmarks are not five points"
    along, down = points[1] - points[0], points[3:].mean(axis=0) - points[:2].mean(axis=0)
    # The mouth lies on one side of the eyes however the head is turned; on the other, left and right are exchanged.
    turn = along[0] * down[1] - along[1] * down[0]
    if not turn > _FLATTEST * np.linalg.norm(along) * np.linalg.norm(down):
        return "landmarks are no face's"
    return None


def _moved(image: NDArray[np.uint8], landmarks: NDArray[np.float64], place: Place) -> NDArray[np.uint8]:
    height, width = place.ellipse.shape
    return align_face(image, landmarks, place.landmarks, max(height, width))[:height, :width]


def _coloured(face: NDArray[np.uint8], like: NDArray[np.uint8], where: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The face with each channel's histogram within ``where`` as the other picture has it there."""
    if not where.any():
        return face
    tables = [_matching(face[where, channel], like[where, channel]) for channel in range(3)]
    return np.stack([table[face[..., channel]] for channel, table in enumerate(tables)], axis=2)


def _matching(values: NDArray[np.uint8], like: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(256,): each level's counterpart of the same rank among as many; levels that do not occur follow others."""
    counts, target_counts = np.bincount(values, minlength=256), np.bincount(like, minlength=256)
    levels, targets = np.flatnonzero(counts), np.flatnonzero(target_counts)
    ranks, target_ranks = (many.cumsum() - many / 2 for many in (counts, target_counts))
    matched = np.interp(ranks[levels], target_ranks[targets], targets)
    every = np.arange(256)
    beyond = every - np.clip(every, levels[0], levels[-1])
    return np.asarray(np.clip(np.rint(np.interp(every, levels, matched) + beyond), 0, 255), dtype=np.uint8)


def _square(radius: int) -> NDArray[np.uint8]:
    return np.ones((2 * radius + 1, 2 * radius + 1), dtype=np.uint8)


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
