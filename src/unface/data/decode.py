"""Bytes of a picture as 8-bit RGB, or a reason that can be counted; nothing is decoded before its size is known."""

import struct
import warnings
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats that only decode pixels: Pillow would hand EPS, for one, to another program.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
_MOST_PIXELS = 89_478_485  # where Pillow itself begins to warn: 256 MiB of RGB


class BadPicture(UnfaceError):
    """A picture that cannot be used; ``reason`` is one of a few words, to be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def decode(content: bytes) -> NDArray[np.uint8]:
    """(h, w, 3) RGB: upright by its EXIF orientation, transparent parts over white, the first frame of several."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not content:
        raise BadPicture("empty file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # we have a limit of our own
            opened = Image.open(BytesIO(content), formats=_FORMATS)
        with opened as image:
            if image.width * image.height > _MOST_PIXELS:
                raise BadPicture("too many pixels")
            try:
                image.load()
            except Image.DecompressionBombError:
                raise
            except Exception:  # Pillow's decoders raise nearly anything on damaged data
                raise BadPicture("truncated or damaged") from None
            try:
                upright = ImageOps.exif_transpose(image)
            except (ValueError, TypeError, SyntaxError, KeyError, OSError, struct.error):
                upright = image  # EXIF that cannot be read turns nothing
            return _rgb(upright)
    except BadPicture:
        raise
    except Image.DecompressionBombError:
        raise BadPicture("too many pixels") from None
    except UnidentifiedImageError:
        raise BadPicture("not a picture") from None
    except Exception:  # a header that is cut off or makes no sense
        raise BadPicture("truncated or damaged") from None


def _rgb(image: "Image") -> NDArray[np.uint8]:
    from PIL import Image

    if image.mode.startswith("I;16"):
        deep = np.asarray(image).astype(np.uint32)
        grey = ((deep * 255 + 32767) // 65535).astype(np.uint8)
        return np.ascontiguousarray(np.broadcast_to(grey[..., None], (*grey.shape, 3)))
    if image.mode in ("I", "F"):
        raise BadPicture("pixels of 32 bits")  # no one says what is white in them
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, (255, 255, 255, 255)), layer)
    return np.array(image.convert("RGB"), dtype=np.uint8)
