"""Which files are pictures and whose they are, by their paths: `<identity>/<image>`, or a list as CelebA brings one."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from unface.errors import UnfaceError

IDENTITY_LIST = "identity_CelebA.txt"

_PICTURES = frozenset({".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_DRIVE = re.compile(r"[A-Za-z]:")


def is_picture(path: str) -> bool:
    """By its suffix; what a file manager hides (``.name``, ``__MACOSX``) is none."""
    return not _is_hidden(path) and PurePosixPath(path).suffix.lower() in _PICTURES


def safe_member(name: str, source: str) -> str:
    """A member's path inside its archive; one that points out of it is refused, though nothing is ever extracted."""
    path = name.replace("\\", "/")
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or _DRIVE.match(path) or "\0" in name:
        raise UnfaceError(f"{source}: member {name!a} points out of the archive; do not trust this file")
    return "/".join(parts)


def identities_of(paths: Iterable[str], listed: Mapping[str, str] | None, source: str) -> dict[str, str]:
    """Path → identity: from the list by file name where there is one, otherwise the folder a picture lies in."""
    found: dict[str, str] = {}
    loose: list[str] = []
    for path in paths:
        if listed is not None:
            identity = listed.get(PurePosixPath(path).name)
        else:
            identity = PurePosixPath(path).parent.name
        if identity:
            found[path] = identity
        else:
            loose.append(path)
    if listed is None and loose:
        raise UnfaceError(
            f"{source}: {len(loose)} pictures lie in no identity's folder, the first is {loose[0]!r}; arrange them as"
            f" <identity>/<image>, or give a list of lines '<image> <identity>' as CelebA's {IDENTITY_LIST}"
        )
    if not found:
        what = "none of the pictures is in the list of identities" if loose else "no pictures"
        raise UnfaceError(f"{source}: {what}; expected <identity>/<image>.jpg, or CelebA with {IDENTITY_LIST}")
    return found


def read_identity_list(text: str, source: str) -> dict[str, str]:
    """Lines ``000001.jpg 2880``."""
    listed: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise UnfaceError(f"{source}: line {number} has {len(words)} words; expected '<image> <identity>'")
        if listed.setdefault(words[0], words[1]) != words[1]:
            raise UnfaceError(f"{source}: line {number} gives {words[0]!r} a second identity; keep one")
    return listed


def left_out(paths: Iterable[str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """A note on files that are no pictures and on pictures without an identity."""
    counts = Counter(
        "picture" if is_picture(path) else "file" for path in paths if not (path in kept or _is_hidden(path))
    )
    notes = []
    if counts["picture"]:
        notes.append(f"{counts['picture']} pictures left out: not in the list of identities")
    if counts["file"]:
        notes.append(f"{counts['file']} files left out: no picture by their suffix")
    return tuple(notes)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(path).parts)
