"""Pictures as bytes in Parquet: a binary column, or the {bytes, path} struct in which datasets are often shared."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from unface.data.decode import BadPicture
from unface.data.files import parquet_files, reason, short_name
from unface.data.images import ImageRef, ImageSet
from unface.errors import UnfaceError


def images_of_parquet(path: Path, *, image: str, identity: str, id: str) -> ImageSet:
    """A file, or a folder of files in sorted name order; ids default to file name and row number."""
    files = parquet_files(path) if path.is_dir() else [path]
    images: list[ImageRef] = []
    for file in files:
        images += _images_of_file(file, image=image, identity=identity, id=id)
    if not images:
        raise UnfaceError(f"{short_name(path)}: no rows; expected one picture in each")
    return ImageSet(tuple(images), short_name(path))


class _Groups:
    """One row group's pictures at a time: what reading in order needs, and no more."""

    def __init__(self, file: pq.ParquetFile, column: str) -> None:
        self._file, self._column = file, column
        self._lock = Lock()
        self._number = -1
        self._pictures = pa.chunked_array([], type=pa.binary())

    def reader(self, number: int, row: int) -> Callable[[], bytes]:
        def read() -> bytes:
            with self._lock:
                if number != self._number:
                    try:
                        table = self._file.read_row_group(number, columns=[self._column])
                    except (pa.ArrowException, OSError):
                        raise BadPicture("cannot be read") from None
                    self._number, self._pictures = number, table.column(0).combine_chunks()
                value = self._pictures[row].as_py()
            content = value.get("bytes") if isinstance(value, dict) else value
            return b"" if content is None else bytes(content)

        return read


def _images_of_file(path: Path, *, image: str, identity: str, id: str) -> list[ImageRef]:
    source = short_name(path)
    try:
        file = pq.ParquetFile(path)
        _require_columns(file.schema_arrow, image, identity, source)
        groups = _Groups(file, image)
        named = file.read(columns=[identity, *([id] if id in file.schema_arrow.names else [])])
    except (pa.ArrowException, OSError) as error:
        raise UnfaceError(f"{source}: not a readable Parquet file ({reason(error)}); copy it again") from None
    owners = named.column(identity).to_pylist()
    ids = (
        named.column(id).to_pylist()
        if id in named.column_names
        else [f"{path.stem}/{row}" for row in range(len(owners))]
    )
    images: list[ImageRef] = []
    start = 0
    for number in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        for row in range(count):
            owner, called = owners[start + row], ids[start + row]
            if owner is None or called is None or owner == "" or called == "":
                raise UnfaceError(f"{source}: row {start + row} has no {identity!r} or no {id!r}; drop it")
            images.append(ImageRef(str(called), str(owner), groups.reader(number, row)))
        start += count
    return images


def _require_columns(schema: pa.Schema, image: str, identity: str, source: str) -> None:
    for name in (image, identity):
        if name not in schema.names:
            there = ", ".join(repr(known) for known in schema.names) or "no columns"
            advice = "; vectors are encoded already" if name == image and "vector" in schema.names else ""
            raise UnfaceError(f"{source}: no column {name!r}; there is {there}{advice}")
    kind = schema.field(image).type
    inner = kind.field("bytes").type if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else kind
    if not (pa.types.is_binary(inner) or pa.types.is_large_binary(inner)):
        raise UnfaceError(f"{source}: {image!r} holds {kind}; expected the bytes of pictures")
