"""Pictures in a folder; links are followed once, so that a loop of them ends."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from unface.data.decode import BadPicture
from unface.data.files import short_name, unopened
from unface.data.images import ImageRef, ImageSet
from unface.data.layout import IDENTITY_LIST, identities_of, is_picture, left_out, read_identity_list
from unface.errors import UnfaceError

LARGEST = 256 << 20  # bytes of one picture's file


def images_of_folder(folder: Path, identities: Path | None) -> ImageSet:
    """Every picture under the folder, sorted by path; whose it is by its folder or by the list."""
    source = short_name(folder)
    files = sorted(path.relative_to(folder).as_posix() for path in _walk(folder))
    listing = identities or next((folder / name for name in files if Path(name).name == IDENTITY_LIST), None)
    listed = None if listing is None else read_identity_list(small_text(listing), short_name(listing))
    owners = identities_of(filter(is_picture, files), listed, source)
    others = [name for name in files if Path(name).name != IDENTITY_LIST]
    images = tuple(ImageRef(name, owners[name], _reader(folder / name)) for name in files if name in owners)
    return ImageSet(images, source, left_out(others, owners))


def small_text(path: Path) -> str:
    """A small text file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unopened(path, error) from None
    except UnicodeDecodeError:
        raise UnfaceError(f"{short_name(path)}: not text in UTF-8; expected lines '<image> <identity>'") from None


def _walk(folder: Path) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            facts = here.stat()
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            raise unopened(here, error) from None
        for entry in entries:
            try:
                if entry.is_dir():
                    waiting.append(Path(entry.path))
                elif entry.is_file():
                    yield Path(entry.path)
            except OSError:  # a link that points to itself
                continue


def _reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            if path.stat().st_size > LARGEST:
                raise BadPicture("file too large")
            return path.read_bytes()
        except OSError:
            raise BadPicture("cannot be read") from None

    return read
