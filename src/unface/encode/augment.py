"""Copies of pictures as people make them: cropped, relit, blurred, mirrored, saved again; always the same ones."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO

from unface.data import ImageRef, ImageSet, decode
from unface.errors import UnfaceError
from unface.seeds import stream

_KEPT = (0.70, 0.97)  # of both sides
_LIGHT, _COLOUR, _BLUR = (0.7, 1.3), (0.6, 1.4), (0.0, 1.5)
_QUALITY = (25, 80)


def with_copies(images: ImageSet, number: int) -> ImageSet:
    """Every picture, and after it so many copies that name it in ``copy_of``."""
    if not number:
        return images
    refs: list[ImageRef] = []
    for image in images:
        if image.copy_of is not None:
            raise UnfaceError(f"{images.source}: {image.id!r} is a copy already; give the pictures themselves")
        once = _Once(image.read, number)
        refs.append(replace(image, read=once.first))
        refs += [
            ImageRef(f"{image.id}#copy{copy}", image.identity, partial(once.copied, image.id, copy), image.id)
            for copy in range(1, number + 1)
        ]
    return replace(images, images=tuple(refs))


def altered(content: bytes, name: str, copy: int) -> bytes:
    """A JPEG; ``name`` and ``copy`` decide what is done to it."""
    from PIL import Image, ImageEnhance, ImageFilter, ImageOps

    rng = stream(0, "copy of a picture", name, copy)
    picture = Image.fromarray(decode(content))
    width, height = (max(1, round(side * rng.uniform(*_KEPT))) for side in picture.size)
    left = int(rng.integers(0, picture.width - width + 1))
    top = int(rng.integers(0, picture.height - height + 1))
    picture = picture.crop((left, top, left + width, top + height))
    picture = ImageEnhance.Brightness(picture).enhance(rng.uniform(*_LIGHT))
    picture = ImageEnhance.Color(picture).enhance(rng.uniform(*_COLOUR))
    picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(*_BLUR)))
    if rng.random() < 0.5:
        picture = ImageOps.mirror(picture)
    out = BytesIO()
    picture.save(out, "JPEG", quality=int(rng.integers(_QUALITY[0], _QUALITY[1] + 1)))
    return out.getvalue()


class _Once:
    """The bytes of one picture, read once for it and its copies, which follow it: some sources only read on."""

    def __init__(self, read: Callable[[], bytes], copies: int) -> None:
        self._read, self._copies = read, copies
        self._content: bytes | None = None

    def first(self) -> bytes:
        self._content = self._read()
        return self._content

    def copied(self, name: str, copy: int) -> bytes:
        """The last copy lets go of the bytes."""
        content = self.first() if self._content is None else self._content
        if copy == self._copies:
            self._content = None
        return altered(content, name, copy)
