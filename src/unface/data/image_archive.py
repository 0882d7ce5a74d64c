"""Pictures inside a zip or a tar: read from where they lie, never extracted to disk."""

import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from threading import Lock

from unface.data.decode import BadPicture
from unface.data.files import reason, short_name
from unface.data.image_folder import LARGEST, small_text
from unface.data.images import ImageRef, ImageSet
from unface.data.layout import IDENTITY_LIST, identities_of, is_picture, left_out, read_identity_list, safe_member
from unface.errors import UnfaceError

Reader = Callable[[], bytes]


def images_of_zip(path: Path, identities: Path | None) -> ImageSet:
    """Pictures of a zip in the order of its directory."""
    try:
        archive = zipfile.ZipFile(path)
        members = [member for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnfaceError(f"{short_name(path)}: not a readable zip ({reason(error)}); copy it again") from None
    lock = Lock()  # one file handle, moved about by every read

    def reader(member: zipfile.ZipInfo) -> Reader:
        def read() -> bytes:
            if member.file_size > LARGEST:
                raise BadPicture("file too large")
            try:
                with lock, archive.open(member) as file:
                    return file.read(member.file_size)
            # Encrypted, a method we do not know, a wrong checksum, cut off.
            except Exception:
                raise BadPicture("cannot be read") from None

        return read

    return _image_set(path, [(member.filename, reader(member)) for member in members], identities)


def images_of_tar(path: Path, identities: Path | None) -> ImageSet:
    """Pictures of a tar, plain or compressed, in its order; links in it are left alone."""
    try:
        archive = tarfile.open(path)  # noqa: SIM115 - open as long as its pictures are read
        members = [member for member in archive.getmembers() if member.isreg()]
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UnfaceError(f"{short_name(path)}: not a readable tar ({reason(error)}); copy it again") from None
    lock = Lock()

    def reader(member: tarfile.TarInfo) -> Reader:
        def read() -> bytes:
            if member.size > LARGEST:
                raise BadPicture("file too large")
            try:
                with lock:
                    file = archive.extractfile(member)
                    return b"" if file is None else file.read()
            except (tarfile.TarError, OSError, EOFError):
                raise BadPicture("cannot be read") from None

        return read

    return _image_set(path, [(member.name, reader(member)) for member in members], identities)


def _image_set(path: Path, members: list[tuple[str, Reader]], identities: Path | None) -> ImageSet:
    source = short_name(path)
    readers: dict[str, Reader] = {}
    for name, read in members:
        inside = safe_member(os.fspath(name), source)
        if inside in readers:
            raise UnfaceError(f"{source}: member {inside!r} occurs more than once; make the archive again")
        readers[inside] = read
    listed = _listed(path, readers, identities)
    owners = identities_of(filter(is_picture, readers), listed, source)
    images = tuple(ImageRef(name, owners[name], read) for name, read in readers.items() if name in owners)
    others = [name for name in readers if PurePosixPath(name).name != IDENTITY_LIST]
    return ImageSet(images, source, left_out(others, owners))


def _listed(path: Path, readers: dict[str, Reader], identities: Path | None) -> dict[str, str] | None:
    """The list given, or the one inside, or CelebA's beside the archive of its pictures."""
    inside = next((read for name, read in readers.items() if PurePosixPath(name).name == IDENTITY_LIST), None)
    if identities is None and inside is not None:
        return read_identity_list(inside().decode("utf-8", errors="replace"), IDENTITY_LIST)
    beside = path.parent / IDENTITY_LIST
    if identities is None and path.name.startswith("img_align_celeba") and beside.is_file():
        identities = beside
    return None if identities is None else read_identity_list(small_text(identities), short_name(identities))
