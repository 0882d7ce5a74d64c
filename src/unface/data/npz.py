"""NumPy archives as raw rows; nothing in them is ever unpickled, and no header is believed before its size."""

import zipfile
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from unface.data.files import reason, short_name
from unface.data.identities import as_text, row_numbers
from unface.data.raw import Columns, RawRows
from unface.errors import UnfaceError

_BEST_DEFLATE = 1032  # deflate cannot shrink further; a directory that promises more is corrupt


def read_npz(path: Path, columns: Columns) -> RawRows:
    """Arrays ``vectors``, ``identities`` and maybe ``ids``, or called as the options say; others are labels."""
    source = short_name(path)
    arrays = read_arrays(path)
    vector = array_name(arrays, columns.vector, "vectors", source)
    identity = array_name(arrays, columns.identity, "identities", source)
    row_id = next((name for name in (Columns.id, "ids") if name in arrays), "ids")
    if columns.id != Columns.id:
        row_id = array_name(arrays, columns.id, "ids", source)
    vectors = arrays[vector]
    count = len(vectors) if vectors.ndim else 0
    others = {name: array for name, array in arrays.items() if name not in (vector, identity, row_id)}
    labels = {name: array for name, array in others.items() if array.shape[:1] == (count,)}
    return RawRows(
        source=source,
        columns=Columns(vector, identity, row_id),
        vectors=vectors,
        identities=as_text(arrays[identity], f"{source}: {identity!r}"),
        ids=as_text(arrays[row_id], f"{source}: {row_id!r}") if row_id in arrays else row_numbers(count),
        labels=labels,
        notes=tuple(f"array {name!r} left out: shape {others[name].shape}" for name in others if name not in labels),
    )


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Every array of an archive."""
    source = short_name(path)
    try:
        # Our own handle: np.load leaves the file open when it fails on one it opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            members = cast(zipfile.ZipFile, archive.zip).namelist()
            if members and not any(member.endswith(".npy") for member in members):
                raise UnfaceError(
                    f"{source}: not a readable .npz file (no array in it); for pictures name an --encoder"
                )
            return {name: _member(archive, name, source) for name in archive.files}
    except UnfaceError:
        raise
    # A corrupt archive makes zipfile, zlib, numpy's header parser and the allocator raise nearly anything.
    except Exception as error:
        raise UnfaceError(f"{source}: not a readable .npz file ({reason(error)}); write or copy it again") from None


def _member(archive: "np.lib.npyio.NpzFile", name: str, source: str) -> NDArray[np.generic]:
    files = cast(zipfile.ZipFile, archive.zip)
    info = files.getinfo(name if name in files.namelist() else f"{name}.npy")
    with files.open(info) as file:
        shape, dtype = _header(cast(BinaryIO, file), name, source)
        header = file.tell()
    if dtype.hasobject:
        raise UnfaceError(f"{source}: {name!r} is an object array, never unpickled; save it as {name}.astype(str)")
    count = 1
    for length in shape:
        count *= length
    possible = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else _BEST_DEFLATE)
    if min(shape, default=0) < 0 or header + count * dtype.itemsize != info.file_size or info.file_size > possible:
        raise UnfaceError(
            f"{source}: {name!r} promises shape {shape}, which its bytes do not hold; copy the file again"
        )
    array: NDArray[np.generic] = archive[name]
    return array


def _header(file: BinaryIO, name: str, source: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(file)
    else:  # (3, 0) exists for record types alone
        raise UnfaceError(f"{source}: {name!r} has .npy version {version[0]}.{version[1]}; expected a plain array")
    return shape, dtype


def array_name(arrays: dict[str, NDArray[np.generic]], asked: str, usual: str, source: str) -> str:
    """The name asked for, or the usual one where nobody asked for another."""
    default = asked in (Columns.vector, Columns.identity, Columns.id)
    for name in (asked, usual) if default else (asked,):
        if name in arrays:
            return name
    there = ", ".join(repr(name) for name in arrays) or "no arrays"
    wanted = f"{asked!r} or {usual!r}" if default else repr(asked)
    raise UnfaceError(f"{source}: no array {wanted}; there is {there}")
