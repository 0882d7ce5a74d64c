"""ImageSet: pictures and whose they are, read one by one and never all held; what encoding takes."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from unface.errors import UnfaceError


@dataclass(frozen=True, eq=False)
class ImageRef:
    """One picture that can be read: its id (a path inside its source), whose it is, and how to get its bytes.

    ``read`` raises :class:`unface.data.BadPicture` where the bytes cannot be had. Reading in the set's order is fast
    from every source; in another order a compressed tar starts again at its beginning.
    """

    id: str
    identity: str
    read: Callable[[], bytes]


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
