"""ImageSet: pictures and whose they are, read one by one and never all held; and decoding one picture to 8-bit RGB."""

import hashlib
import json
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from threading import Condition
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unface.errors import UnfaceError
from unface.memory import memory_budget

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats that only decode pixels: Pillow would hand EPS, for one, to another program.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
_MOST_PIXELS = 89_478_485  # where Pillow itself begins to warn: 256 MiB of RGB
_ORDINARY = 1 << 24
_BYTES_PER_PIXEL = 16  # as Pillow holds it, over white, turned upright, and as an array


@dataclass(frozen=True, eq=False)
class ImageRef:
    """One picture that can be read: its id (a path inside its source), whose it is, and how to get its bytes.

    ``read`` raises :class:`unface.data.BadPicture` where the bytes cannot be had. Reading in the set's order is fast
    from every source; in another order a compressed tar starts again at its beginning.
    """

    id: str
    identity: str
    read: Callable[[], bytes]
    copy_of: str | None = None
    """The id of the picture, earlier in the set, that this one is an altered copy of."""


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Pictures in a fixed order with unique ids; make one with ``read_images``."""

    images: tuple[ImageRef, ...]
    source: str  # a short name, never a path
    notes: tuple[str, ...] = ()  # what reading left out

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for image in self.images:
            if image.id in seen:
                raise UnfaceError(f"{self.source}: picture {image.id!r} occurs more than once; make ids unique")
            seen.add(image.id)
            try:
                f"{image.id}{image.identity}".encode()
            except UnicodeEncodeError:
                raise UnfaceError(f"{self.source}: the name {image.id!a} is not UTF-8; rename it") from None

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[ImageRef]:
        return iter(self.images)

    def __repr__(self) -> str:
        # No names: a repr ends up in logs.
        return f"ImageSet({self.source!r}: {len(self)} pictures, {len(self.identities)} identities)"

    @property
    def identities(self) -> tuple[str, ...]:
        """The names there are, sorted."""
        return tuple(sorted({image.identity for image in self.images}))

    def take(self, rows: Sequence[int]) -> "ImageSet":
        """These pictures in this order."""
        return replace(self, images=tuple(self.images[row] for row in rows))

    def sha256(self) -> str:
        """A hash of which pictures there are, in which order and whose; not of their bytes."""
        digest = hashlib.sha256()
        for image in self.images:
            digest.update(json.dumps([image.id, image.identity]).encode() + b"\n")
        return digest.hexdigest()


class BadPicture(UnfaceError):
    """A picture that cannot be used; ``reason`` is one of a few words, to be counted."""

    code = "bad-picture"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PixelBudget:
    """Pixels that all threads of a process may have in work at once; a picture waits until there is room for it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._held = 0

    def most(self) -> int:
        """Pixels: an eighth of the memory budget, and at least as many as one ordinary photograph has."""
        return min(_MOST_PIXELS, max(_ORDINARY, memory_budget() // 8 // _BYTES_PER_PIXEL))

    @contextmanager
    def room_for(self, content: bytes) -> Iterator[None]:
        """While a picture is decoded and used; without room it waits, unless it is the only one."""
        pixels = declared_pixels(content)
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + pixels <= self.most())
            self._held += pixels
        try:
            yield
        finally:
            with self._changed:
                self._held -= pixels
                self._changed.notify_all()


PIXELS = PixelBudget()
_PILLOW = r"PIL\."


def declared_pixels(content: bytes) -> int:
    """By its header alone; 0 of what is no picture."""
    from PIL import Image

    _silence_pillow()
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            return int(image.width * image.height)
    except Exception:  # decode says what is wrong with it
        return 0


def _silence_pillow() -> None:
    """For good: we say what is wrong with a picture, and the threads that open pictures share the filters."""
    if not any(getattr(module, "pattern", None) == _PILLOW for _, _, _, module, _ in warnings.filters):
        warnings.filterwarnings("ignore", module=_PILLOW)


def decode(content: bytes) -> NDArray[np.uint8]:
    """(h, w, 3) RGB: upright by its EXIF orientation, transparent parts over white, the first frame of several."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not content:
        raise BadPicture("empty file")
    _silence_pillow()
    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            if image.width * image.height > PIXELS.most():
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
