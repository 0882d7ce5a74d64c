"""What of a Lance table cannot be sanitised, each in a sentence: before anything is written, and before a purge."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from unface.errors import UnfaceError

if TYPE_CHECKING:
    from lance import LanceDataset


def required_kind(data: "LanceDataset", column: str, where: str) -> pa.DataType:
    """The type of a column of vectors: float16, float32 or float64, all of one length."""
    require_column(data, column, where)
    kind = data.schema.field(column).type
    if not pa.types.is_fixed_size_list(kind) or not pa.types.is_floating(kind.value_type):
        raise UnfaceError(f"{where}: {kind}; expected a fixed_size_list of float16, float32 or float64")
    return kind


def require_column(data: "LanceDataset", column: str, where: str) -> None:
    if column not in data.schema.names:
        raise UnfaceError(f"{where}: no column {column!r}; there is {', '.join(map(repr, data.schema.names))}")


def require_plain(data: "LanceDataset", folder: Path, where: str) -> None:
    """No raw vectors where a new data file would not replace them, or that lie in another table."""
    made = [fragment.metadata for fragment in data.get_fragments()]
    if any(file.base_id is not None for fragment in made for file in fragment.files):
        raise UnfaceError(f"{where}: a shallow clone, whose vectors lie in another table; sanitise a deep clone of it")
    if (folder / "_mem_wal").exists() or any(getattr(fragment, "overlays", ()) for fragment in made):
        raise UnfaceError(f"{where}: has writes that are not in its data files yet; compact the table first")


def require_no_nulls(data: "LanceDataset", column: str, id_column: str | None, where: str) -> None:
    """Lance itself would take them; which row it is, is said by its id where there is one."""
    if id_column is not None:
        require_column(data, id_column, where)
    missing = f"`{column}` IS NULL"
    count = data.count_rows(filter=missing)
    if not count:
        return
    named = ""
    if id_column is not None:
        first = data.to_table(columns=[id_column], filter=missing, limit=1).column(0)[0]
        named = f" (first {id_column} {first.as_py()!r})"
    raise UnfaceError(f"{where}: {count:,} rows have no vector{named}; fill or delete them")


def require_unreferenced(data: "LanceDataset", where: str) -> None:
    """Lance never cleans up what a tag or a branch refers to."""
    kept = [f"tag {name!r}" for name in data.tags.list()] + [f"branch {name!r}" for name in data.branches.list()]
    if kept:
        raise UnfaceError(f"{where}: {', '.join(kept)} would keep raw vectors; delete them and purge again")
