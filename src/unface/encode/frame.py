"""From a picture of any size to the tensor a model takes, as its card says."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.models import Input

# Sides of a picture that is still resized whole before its middle is cut out.
_LONGEST = 8


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


def _less_extreme(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The middle of a very long picture: scaled by its short side, a strip of one pixel would fill the memory."""
    height, width = image.shape[:2]
    most = _LONGEST * min(height, width)
    top, left = max((height - most) // 2, 0), max((width - most) // 2, 0)
    return image[top : top + most, left : left + most]


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


def _resized(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Bilinear with a support that grows as the picture shrinks, which is what encoders were mostly trained on."""
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
