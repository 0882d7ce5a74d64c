"""Canvases made worse in known ways: faces blurred by degrees, a ring of background blurred, background hidden."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.attribute.mask import Masks, feathered
from unface.attribute.ports import Image

SIGMAS = (0, 1, 2, 4, 6, 8)
REVEALED = (0.0, 0.25, 0.5, 0.75, 1.0)
_HIDDEN = 127  # the same grey in all pictures: a colour of their own would give away some of what is hidden


def blur_series(image: Image) -> list[Image]:
    """The whole canvas blurred at each σ; the first is the canvas itself. Made once, for face and ring alike."""
    return [image, *(blurred(image, sigma) for sigma in SIGMAS[1:])]


def face_blurs(series: Sequence[Image], masks: Masks) -> list[Image]:
    """The canvas with its face blurred at each σ; the last is FII's occluded face."""
    inside = feathered(masks.face)
    return [series[0], *(_blend(series[0], whole, inside) for whole in series[1:])]


def ring_blur(series: Sequence[Image], ring: NDArray[np.bool_]) -> Image:
    """The canvas with a ring around its face blurred as strongly as FII's occluded face."""
    return _blend(series[0], series[-1], feathered(ring))


def revealed(image: Image, masks: Masks) -> list[Image]:
    """The canvas with its face and the nearest share B of the background, for each B but 1, which hides nothing."""
    grey = np.full_like(image, _HIDDEN)
    return [_blend(grey, image, feathered(masks.nearest(share))) for share in REVEALED[:-1]]


def blurred(image: Image, sigma: float) -> Image:
    """Gaussian with a kernel of 2⌈3σ⌉ + 1 (49 at σ = 8)."""
    import cv2

    kernel = 2 * int(np.ceil(3 * sigma)) + 1
    return np.asarray(cv2.GaussianBlur(image, (kernel, kernel), sigma), dtype=np.uint8)


def _blend(image: Image, other: Image, weight: NDArray[np.float32]) -> Image:
    """``other`` where the weight is 1, the picture where it is 0, both to the last bit."""
    import cv2

    return np.asarray(cv2.blendLinear(other, image, weight, 1 - weight), dtype=np.uint8)
