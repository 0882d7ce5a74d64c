"""Drawn faces in drawn places, and encoders that read only the one or the other: pictures with a known answer.

A person is a pattern on the ellipse, coarse and fine, under a lighting that is each picture's own. Around it are a
place, which is coarse and each picture's own, and the person's wardrobe, which is fine and moves with the face.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from unface.attribute import LocatedPicture, Reader
from unface.faces import Face, face_ellipse
from unface.seeds import stream

Image = NDArray[np.uint8]
SIDE = 224
FEATURES = np.array([(-20, -23), (20, -23), (0, 0), (-14, 23), (14, 23)], dtype=np.float64)
"""Eyes, nose and mouth around the face's centre: an ellipse with semi-axes of 48 and 59.8."""
SEMI = np.array([1.2 * 40, 1.3 * 46])
BOX = np.array([92.0, 104.0])


@dataclass(frozen=True)
class Scene:
    """Who, where, and which picture of that: its own lighting, size and position."""

    person: int
    place: int
    picture: int = 0

    def draw(self) -> LocatedPicture:
        rng = stream(self.picture, "scene", self.person, self.place)
        scale, shift = rng.uniform(0.9, 1.1), rng.uniform(-12, 12, 2)
        return drawn(self, scale, np.array([130.0, 125.0]) + shift)


def drawn(
    scene: Scene, scale: float, centre: NDArray[np.float64], shape: tuple[int, int] = (250, 260)
) -> LocatedPicture:
    """A scene with its face of a given size at a given point."""
    landmarks = centre + scale * FEATURES
    half = scale * BOX / 2
    offset = (np.indices(shape)[::-1].transpose(1, 2, 0) - centre) / scale
    around = stretched(30 * pattern("place", scene.place, 5), shape) + spread(
        30 * pattern("wardrobe", scene.person, 48), offset / 120
    )
    inside = face_ellipse(landmarks, shape)[..., None]
    image = 127 + np.where(inside, spread(face_pattern(scene), offset / SEMI), around)
    face = Face(np.concatenate([centre - half, 2 * half]), landmarks, 1.0)
    name = f"{scene.person}/{scene.place}-{scene.picture}"
    return LocatedPicture(name, f"person {scene.person}", image.clip(0, 255).astype(np.uint8), face)


def face_pattern(scene: Scene) -> NDArray[np.float64]:
    """(48, 48, 3) over the square around the ellipse."""
    parts = (30, "face", scene.person, 4), (30, "skin", scene.person, 16), (12, "light", 1000 + scene.place, 4)
    patterns = [strength * pattern(name, number, cells) for strength, name, number, cells in parts]
    return np.asarray(np.sum([stretched(cells, (48, 48)) for cells in patterns], axis=0))


def pattern(name: str, number: int, cells: int) -> NDArray[np.float64]:
    return stream(number, "scene", name).standard_normal((cells, cells, 3))


def stretched(cells: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float64]:
    return np.asarray(cv2.resize(cells, shape[::-1], interpolation=cv2.INTER_LINEAR), dtype=np.float64)


def spread(cells: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pattern that fills the square from −1 to 1, at points of it."""
    where = ((at + 1) / 2 * len(cells) - 0.5).astype(np.float32)
    x, y = np.ascontiguousarray(where[..., 0]), np.ascontiguousarray(where[..., 1])
    values = cv2.remap(cells.astype(np.float32), x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values, dtype=np.float64)


def people(count: int, places: int) -> list[LocatedPicture]:
    """Each person once in each of so many places, no place shared."""
    return [Scene(person, 100 * person + place).draw() for person in range(count) for place in range(places)]


@dataclass(frozen=True)
class SceneSwap:
    """The image, or why there is none."""

    image: Image
    ok: bool = True
    reason: str | None = None


def exact_swap(
    host: Image, host_landmarks: NDArray[np.float64], donor: Image, donor_landmarks: NDArray[np.float64]
) -> SceneSwap:
    """The donor's ellipse in place of the host's, and not one pixel beside it: drawn faces are affine images."""
    corners = [
        np.stack([points[0], points[1], points[3:].mean(axis=0)]).astype(np.float32)
        for points in (donor_landmarks, host_landmarks)
    ]
    moved = cv2.warpAffine(donor, cv2.getAffineTransform(*corners), host.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)
    return SceneSwap(np.where(face_ellipse(host_landmarks, host.shape)[..., None], moved, host))


def face_vectors(images: Sequence[Image]) -> NDArray[np.float64]:
    """Unit vectors of the middle of the face alone, 16 × 16 colours against grey."""
    half = np.rint(0.6 * SEMI * SIDE / np.sqrt(BOX.prod() / 0.33)).astype(int)
    middle = slice(112 - half[1], 112 + half[1]), slice(112 - half[0], 112 + half[0])
    return _unit([cv2.resize(image[middle], (16, 16), interpolation=cv2.INTER_AREA) for image in images])


def place_vectors(images: Sequence[Image]) -> NDArray[np.float64]:
    """Unit vectors of what lies clear of the face, in cells of 4 × 4 pixels; zeros where all of it is hidden."""
    centre, semi = (SIDE - 1) / 2, SEMI * SIDE / np.sqrt(BOX.prod() / 0.33) + 8
    offset = (np.indices((SIDE, SIDE))[::-1].transpose(1, 2, 0) - centre) / semi
    clear = ((offset**2).sum(axis=-1) > 1).reshape(56, 4, 56, 4).all(axis=(1, 3))
    return _unit([cv2.resize(image, (56, 56), interpolation=cv2.INTER_AREA)[clear] for image in images])


def mixture(place: float) -> Reader:
    """cos = (1 − place) · cos of faces + place · cos of places, as long as both can be seen."""

    def encode(images: Sequence[Image]) -> NDArray[np.float32]:
        parts = np.sqrt(1 - place) * face_vectors(images), np.sqrt(place) * place_vectors(images)
        return np.concatenate(parts, axis=1).astype(np.float32)

    return Reader(f"{place:g} place", SIDE, encode)


def _unit(cells: Sequence[NDArray[np.generic]]) -> NDArray[np.float64]:
    vectors = np.stack([cell.reshape(-1) for cell in cells]).astype(np.float64) - 127
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, length, where=length > 0, out=np.zeros_like(vectors)))
