"""The cache of weights: where it is, and the one way into it, which nothing unverified passes."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path

from unface.errors import UnfaceError, reason
from unface.models.card import Card, Part
from unface.output.write import publish, scratch_folder

BLOCK = 1 << 20
_RECORD = ".sha256"  # beside a file that no card pins: what it was when it came


class Mismatch(Exception):
    """What arrived is not what the card describes; the text says how."""


def models_folder() -> Path:
    """The folder of models in $UNFACE_CACHE, else in the user's cache folder (on Linux ~/.cache/unface)."""
    named = os.environ.get("UNFACE_CACHE")
    if named:
        return Path(named).expanduser() / "models"
    # Earlier versions used this folder on every system; on Linux platformdirs gives the same.
    earlier = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unface"
    return (earlier if earlier.is_dir() else user_cache_path("unface", appauthor=False)) / "models"


def place(card: Card) -> Path:
    """Where a model's weights lie once they are in the cache; the card's other files lie beside."""
    return models_folder() / card.name / card.file


def cached(card: Card) -> Path | None:
    """The weights, if every file is there and is what it should be."""
    path = place(card)
    return path if all(_intact(path.with_name(part.file), part) for part in card.parts) else None


def present(card: Card) -> bool:
    """Whether the files are there, by size alone: for a list, which should not read gigabytes."""
    paths = [(place(card).with_name(part.file), part) for part in card.parts]
    return all(path.is_file() and part.bytes in (0, path.stat().st_size) for path, part in paths)


class Staging:
    """Files on their way in: written aside, verified, and renamed into place together or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, tuple[Part, str]] = {}

    def write(self, part: Part, blocks: Iterable[bytes]) -> None:
        """Take one file of the model; anything but the promised bytes is a Mismatch."""
        digest, size = hashlib.sha256(), 0
        with _cache_errors():
            file = (self._folder / part.file).open("wb")
        with file:
            for block in blocks:
                size += len(block)
                if part.bytes and size > part.bytes:
                    raise Mismatch(f"{part.file} has more than the {part.bytes:,} bytes it should")
                digest.update(block)
                with _cache_errors():
                    file.write(block)
            with _cache_errors():
                file.flush()
        if part.bytes and size != part.bytes:
            raise Mismatch(f"{part.file} has {size:,} bytes, {part.bytes:,} expected")
        sha256 = digest.hexdigest()
        if part.sha256 and sha256 != part.sha256:
            raise Mismatch(f"{part.file} has sha256 {sha256[:12]}…, {part.sha256[:12]}… expected")
        self._digests[part.file] = (part, sha256)

    def scratch(self) -> IO[bytes]:
        """A nameless file for an archive that has to be fetched whole."""
        with _cache_errors():
            return tempfile.TemporaryFile(dir=self._folder)

    def publish(self, target: Path) -> None:
        """Rename everything into the folder ``target``."""
        with _cache_errors():
            target.mkdir(parents=True, exist_ok=True)
            for file, (part, digest) in self._digests.items():
                if not part.sha256:
                    record = self._folder / (file + _RECORD)
                    record.write_text(digest + "\n", encoding="ascii")
                    publish(record, target / record.name)
                publish(self._folder / file, target / file)


@contextmanager
def staging() -> Iterator[Staging]:
    """A folder in the cache itself, so that a rename is enough; removed at the end, whatever happens."""
    with ExitStack() as stack:
        with _cache_errors():
            aside = stack.enter_context(scratch_folder(models_folder()))
        yield Staging(aside)


def blocks_of(path: Path) -> Iterator[bytes]:
    """A file in pieces."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def sha256_of(path: Path) -> str:
    """Of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _cache_errors() -> Iterator[None]:
    """Around what touches the disk and nothing else: a network's failure is an OSError too, and another matter."""
    try:
        yield
    except OSError as error:
        root = models_folder()
        raise UnfaceError(f"{root}: cannot be written ({reason(error)}); set UNFACE_CACHE to another folder") from None


def _intact(path: Path, part: Part) -> bool:
    try:
        if part.bytes and path.stat().st_size != part.bytes:
            return False
        expected = part.sha256 or path.with_name(path.name + _RECORD).read_text(encoding="ascii").strip()
        return sha256_of(path) == expected
    except (OSError, UnicodeDecodeError):
        return False
