"""A set of pictures with a face found in each, or why not: nothing is left out here, so that all can be counted."""

from collections.abc import Generator
from contextlib import closing
from functools import partial

from unface.attribute.ports import LocatedPicture
from unface.data import BadPicture, ImageRef, ImageSet, decode
from unface.encode import ahead, contents
from unface.faces import Detector, main_face
from unface.progress import Progress, Silent
from unface.threads import available_cores


def locate(
    images: ImageSet, detector: Detector, *, threads: int | None = None, progress: Progress | None = None
) -> Generator[LocatedPicture, None, None]:
    """The pictures in their order, each with its main face."""
    progress, threads = progress or Silent(), threads or available_cores()
    progress.start("finding faces", len(images))
    pictures = zip(images, contents(images), strict=True)
    with closing(ahead(partial(_located, detector=detector), pictures, threads, 4 * threads)) as found:
        for picture in found:
            progress.advance("finding faces")
            yield picture


def _located(item: tuple[ImageRef, bytes | BadPicture], detector: Detector) -> LocatedPicture:
    ref, content = item
    try:
        if isinstance(content, BadPicture):
            raise content
        image = decode(content)
    except BadPicture as bad:
        return LocatedPicture(ref.id, ref.identity, None, None, bad.reason)
    return LocatedPicture(ref.id, ref.identity, image, main_face(detector.detect(image), image.shape))
