"""read_images: pictures and whose they are from folders, archives and Parquet, recognised by content, not by suffix.

Whose a picture is comes from its path, ``<identity>/<image>``, from a list as CelebA has one, or from a column.
"""

import os
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock

import pyarrow as pa

from unface.data.arrow import text_of
from unface.data.files import PARQUET, ZIP, first_bytes, parquet_files, reason, short_name, unopened
from unface.data.images import BadPicture, ImageRef, ImageSet
from unface.data.parquet import opened_parquet, read_columns, row_batches
from unface.errors import UnfaceError
from unface.memory import memory_budget, require_memory
from unface.result.words import count

IDENTITY_LIST = "identity_CelebA.txt"
_PICTURES = frozenset({".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_DRIVE = re.compile(r"[A-Za-z]:")
_LARGEST = 256 << 20
_PIECE_BYTES = 32 << 20
_PIECE_ROWS = 64
Reader = Callable[[], bytes]


def read_images(
    source: str | os.PathLike[str],
    *,
    identities: str | os.PathLike[str] | None = None,
    image: str = "image",
    identity: str | None = "identity",
    id: str = "id",
) -> ImageSet:
    """The pictures of a folder, zip or tar laid out as ``<identity>/<image>``, or of Parquet with a column of bytes.

    This reads LFW and VGGFace2 as distributed, and CelebA by its ``identity_CelebA.txt``, found in or beside the
    pictures or given as ``identities``. ``image``, ``identity`` and ``id`` name the columns of Parquet; without an id
    column, ids are file name and row number. With ``identity=None`` every picture of a folder or archive stands for
    itself. Nothing is decoded here, and nothing is written to disk.
    """
    path = Path(source)
    name, kind = short_name(path), _kind_of(path)
    if kind == "parquet":
        if identities is not None:
            raise UnfaceError(f"{name}: Parquet has its identities in a column; leave the list out")
        if identity is None:
            raise UnfaceError(f"{name}: Parquet of pictures needs a column of identities; name it")
        files = parquet_files(path) if path.is_dir() else [path]
        images = tuple(ref for file in files for ref in _parquet_images(file, image=image, identity=identity, id=id))
        if not images:
            raise UnfaceError(f"{name}: no rows; expected one picture in each")
        return ImageSet(images, name)
    if (image, identity or "identity", id) != ("image", "identity", "id"):
        raise UnfaceError(
            f"{name}: a {kind} of pictures has no columns; leave out --image-column, --identity-column and --id-column"
        )
    readers = {"folder": _folder_readers, "zip": _zip_readers, "tar": _tar_readers}[kind](path)
    listed = None if identity is None else _identity_list(path, readers, identities)
    owners = (
        {inside: inside for inside in filter(_is_picture, readers)}
        if identity is None
        else _owners(filter(_is_picture, readers), listed, name)
    )
    if not owners:
        raise UnfaceError(f"{name}: no pictures; expected files such as face.jpg")
    images = tuple(ImageRef(inside, owners[inside], read) for inside, read in readers.items() if inside in owners)
    return ImageSet(images, name, _left_out(readers, owners))


def largest_file() -> int:
    """Bytes of one picture's file; some of them wait at a time."""
    return min(_LARGEST, memory_budget() // 32)


def _kind_of(path: Path) -> str:
    start = first_bytes(path)
    if start is None:
        try:
            holds_parquet = any(entry.suffix.lower() == ".parquet" for entry in path.iterdir())
        except OSError as error:
            raise unopened(path, error) from None
        return "parquet" if holds_parquet else "folder"
    if start.startswith(PARQUET):
        return "parquet"
    if start.startswith(ZIP):
        return "zip"
    if start and _is_tar(path):
        return "tar"
    what = "the file is empty" if not start else "neither zip, tar nor Parquet by its first bytes"
    raise UnfaceError(
        f"{short_name(path)}: {what}; give a folder or archive of <identity>/<image>, or Parquet with pictures"
    )


def _is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except Exception:  # of a decompressor: zlib.error, LZMAError, EOFError
        return False


def _folder_readers(folder: Path) -> dict[str, Reader]:
    """Every file under the folder, sorted by path; links are followed once, so that a loop of them ends."""
    files: list[Path] = []
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            facts = here.stat()
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            entries = list(os.scandir(here))
        except OSError as error:
            raise unopened(here, error) from None
        for entry in entries:
            try:
                if entry.is_dir():
                    waiting.append(Path(entry.path))
                elif entry.is_file():
                    files.append(Path(entry.path))
            except OSError:  # a link that points to itself
                continue
    names = {file.relative_to(folder).as_posix(): file for file in files}
    return {name: partial(_read_file, names[name]) for name in sorted(names)}


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > largest_file():
            raise BadPicture("file too large")
        return path.read_bytes()
    except OSError:
        raise BadPicture("cannot be read") from None


def _zip_readers(path: Path) -> dict[str, Reader]:
    """The members of a zip in the order of its directory."""
    try:
        archive = zipfile.ZipFile(path)
        # Not is_dir(), which fails on an empty name.
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    # A corrupt archive makes zipfile and tarfile raise nearly anything, as their decompressors do.
    except Exception as error:
        raise UnfaceError(f"{short_name(path)}: not a readable zip ({reason(error)}); copy it again") from None
    lock = Lock()  # one file handle, moved about by every read
    return _safe_members(path, ((member.filename, partial(_read_zip, archive, lock, member)) for member in members))


def _read_zip(archive: zipfile.ZipFile, lock: Lock, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > largest_file():
        raise BadPicture("file too large")
    try:
        with lock, archive.open(member) as file:
            return file.read(member.file_size)
    # Encrypted, an unknown method, a wrong checksum, cut off.
    except Exception:
        raise BadPicture("cannot be read") from None


def _tar_readers(path: Path) -> dict[str, Reader]:
    """The members of a tar, plain or compressed, in its order; links in it are left alone."""
    try:
        archive = tarfile.open(path)  # noqa: SIM115 - open as long as its pictures are read
        members = [member for member in archive.getmembers() if member.isreg()]
    except Exception as error:
        raise UnfaceError(f"{short_name(path)}: not a readable tar ({reason(error)}); copy it again") from None
    lock = Lock()
    return _safe_members(path, ((member.name, partial(_read_tar, archive, lock, member)) for member in members))


def _read_tar(archive: tarfile.TarFile, lock: Lock, member: tarfile.TarInfo) -> bytes:
    if member.size > largest_file():
        raise BadPicture("file too large")
    try:
        with lock:
            file = archive.extractfile(member)
            return b"" if file is None else file.read()
    except Exception:
        raise BadPicture("cannot be read") from None


def _safe_members(archive: Path, members: Iterable[tuple[str, Reader]]) -> dict[str, Reader]:
    """By path inside the archive; a path that points out of it is refused, though nothing is ever extracted."""
    source = short_name(archive)
    readers: dict[str, Reader] = {}
    for name, read in members:
        path = name.replace("\\", "/")
        parts = PurePosixPath(path).parts
        if path.startswith("/") or ".." in parts or _DRIVE.match(path) or "\0" in name:
            raise UnfaceError(f"{source}: member {name!a} points out of the archive; do not trust this file")
        inside = "/".join(parts)
        if inside in readers:
            raise UnfaceError(f"{source}: member {inside!r} occurs more than once; make the archive again")
        readers[inside] = read
    return readers


def _parquet_images(path: Path, *, image: str, identity: str, id: str) -> Iterator[ImageRef]:
    """Pictures as bytes: a binary column, or the {bytes, path} struct in which datasets are often shared."""
    source = short_name(path)
    with opened_parquet(path, source) as file:
        schema = file.schema_arrow
        _require_columns(schema, image, identity, id, source)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        # Pieces of what the footer says are some tens of megabytes; of few rows, which may all share one picture.
        shapes = [
            (group.num_rows, max(1, min(_PIECE_ROWS, _PIECE_BYTES * group.num_rows // max(1, group.total_byte_size))))
            for group in groups
        ]
    named = [identity, *([id] if id in schema.names else [])]
    table = read_columns(path, source, named)
    require_memory(table.nbytes + 200 * table.num_rows, source, "give fewer pictures")
    owners, ids = (_names(table.column(name), f"{source}: {name!r}") for name in (identity, named[-1]))
    pieces = _Pieces(path, image)
    start = 0
    for number, (pictures, rows) in enumerate(shapes):
        for row in range(pictures):
            owner = owners[start + row]
            called = ids[start + row] if len(named) == 2 else f"{path.stem}/{start + row}"
            if owner is None or called is None or owner == "" or called == "":
                raise UnfaceError(f"{source}: row {start + row} has no {identity!r} or no {id!r}; drop it")
            yield ImageRef(str(called), str(owner), partial(pieces.read, number, row, rows))
        start += pictures


def _names(column: pa.ChunkedArray, what: str) -> list[object]:
    """One for each row; rows that share a text share the object."""
    return list(text_of(column, what)) if pa.types.is_dictionary(column.type) else list(column.to_pylist())


def _require_columns(schema: pa.Schema, image: str, identity: str, id: str, source: str) -> None:
    for name in (image, identity, *([id] if id != "id" else [])):
        if name not in schema.names:
            there = ", ".join(repr(known) for known in schema.names) or "no columns"
            advice = "; vectors are encoded already" if name == image and "vector" in schema.names else ""
            raise UnfaceError(f"{source}: no column {name!r}; there is {there}{advice}")
    kind = schema.field(image).type
    inner = kind.field("bytes").type if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else kind
    if not (pa.types.is_binary(inner) or pa.types.is_large_binary(inner)):
        raise UnfaceError(f"{source}: {image!r} holds {kind}; expected the bytes of pictures")


class _Pieces:
    """The pictures of some rows at a time, which is enough for reading in order; going back begins a row group again.

    An unfinished pass is closed by the next.
    """

    def __init__(self, path: Path, column: str) -> None:
        self._path, self._column = path, column
        self._lock = Lock()
        self._group, self._first = -1, 0
        self._piece: pa.Array = pa.array([], type=pa.binary())
        self._coming: Iterator[pa.RecordBatch] = iter(())

    def read(self, group: int, row: int, rows: int) -> bytes:
        with self._lock:
            try:
                if group != self._group or row < self._first:
                    self._coming = self._pass(group, rows)
                    self._group, self._first, self._piece = group, 0, self._piece[:0]
                while row >= self._first + len(self._piece):
                    self._first += len(self._piece)
                    self._piece = next(self._coming).column(0)
                value = self._piece[row - self._first].as_py()
            except (UnfaceError, StopIteration):
                self._group = -1
                raise BadPicture("cannot be read") from None
        content = value.get("bytes") if isinstance(value, dict) else value
        if content is not None and len(content) > largest_file():
            raise BadPicture("file too large")
        return b"" if content is None else bytes(content)

    def _pass(self, group: int, rows: int) -> Iterator[pa.RecordBatch]:
        with opened_parquet(self._path, short_name(self._path)) as file:
            yield from row_batches(file, short_name(self._path), rows, [self._column], group=group)


def _identity_list(
    path: Path, readers: Mapping[str, Reader], given: str | os.PathLike[str] | None
) -> dict[str, str] | None:
    """File name → identity, by lines ``000001.jpg 2880``: the list given, the one inside, or CelebA's beside."""
    inside = next((name for name in readers if PurePosixPath(name).name == IDENTITY_LIST), None)
    beside = path.parent / IDENTITY_LIST
    if given is not None:
        listing = Path(given)
    elif inside is not None and path.is_dir():
        listing = path / inside
    elif inside is not None:
        try:
            content = readers[inside]()
        except BadPicture as bad:
            raise UnfaceError(f"{short_name(path)}: its {IDENTITY_LIST} {bad.reason}; copy it again") from None
        return _parsed_list(content.decode("utf-8", errors="replace"), IDENTITY_LIST)
    elif path.name.startswith("img_align_celeba") and not path.is_dir() and beside.is_file():
        listing = beside
    else:
        return None
    try:
        return _parsed_list(listing.read_text(encoding="utf-8"), short_name(listing))
    except OSError as error:
        raise unopened(listing, error) from None
    except UnicodeDecodeError:
        raise UnfaceError(f"{short_name(listing)}: not text in UTF-8; expected lines '<image> <identity>'") from None


def _parsed_list(text: str, source: str) -> dict[str, str]:
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


class NoIdentities(UnfaceError):
    """Pictures that lie in no folder of a person: they can be read without identities only."""

    code = "no-identities"


def _owners(paths: Iterable[str], listed: Mapping[str, str] | None, source: str) -> dict[str, str]:
    """Path → identity: from the list by file name where there is one, otherwise the folder a picture lies in."""
    owners: dict[str, str] = {}
    loose: list[str] = []
    for path in paths:
        if listed is not None:
            identity = listed.get(PurePosixPath(path).name)
        else:
            identity = PurePosixPath(path).parent.name
        if identity:
            owners[path] = identity
        else:
            loose.append(path)
    if listed is None and loose:
        raise NoIdentities(
            f"{source}: {count(len(loose), 'picture')} in no identity's folder, the first is {loose[0]!r}; arrange them"
            f" as <identity>/<image>, or give a list of lines '<image> <identity>' as CelebA's {IDENTITY_LIST}"
        )
    if not owners:
        what = "none of the pictures is in the list of identities" if loose else "no pictures"
        raise UnfaceError(f"{source}: {what}; expected <identity>/<image>.jpg, or CelebA with {IDENTITY_LIST}")
    return owners


def _left_out(paths: Iterable[str], kept: Mapping[str, str]) -> tuple[str, ...]:
    """A note on files that are no pictures and on pictures without an identity."""
    counts = Counter(
        "picture" if _is_picture(path) else "file"
        for path in paths
        if not (path in kept or _is_hidden(path) or PurePosixPath(path).name == IDENTITY_LIST)
    )
    notes = []
    if counts["picture"]:
        notes.append(f"{count(counts['picture'], 'picture')} left out: not in the list of identities")
    if counts["file"]:
        notes.append(f"{count(counts['file'], 'file')} left out: no picture by the suffix")
    return tuple(notes)


def _is_picture(path: str) -> bool:
    """By its suffix; what a file manager hides (``.name``, ``__MACOSX``) is none."""
    return not _is_hidden(path) and PurePosixPath(path).suffix.lower() in _PICTURES


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(path).parts)
