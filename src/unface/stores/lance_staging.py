"""Erased vectors of a Lance table in data files that no version of it refers to yet, and the note that lists them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from unface.data.files import written_whole
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.stores.lance_index import IndexPlan
from unface.stores.ports import Erase

if TYPE_CHECKING:
    from lance import LanceFragment

_BATCH_BYTES = 1 << 23
# Lance's own sign for a column that a data file still holds and that nobody reads from there any more.
_TOMBSTONE = -2


class Staging(BaseModel):
    """What is staged, kept as JSON beside the table; whatever else than its last state is found there starts anew."""

    model_config = ConfigDict(extra="forbid")

    mark: str
    version: int
    """Of the table: erased vectors of another one are not those of its rows."""
    fragments: dict[int, dict[str, Any]] = {}
    """Lance's description of each fragment as it will be, by number."""
    indices: list[IndexPlan] = []
    """Remembered here from before they are dropped."""
    read_back: int | None = None
    """Version outside of the table's history that shows all of it as it will be."""
    manifests: list[str] = []
    """Files that exist for this alone."""

    @classmethod
    def load(cls, path: Path) -> "Staging | None":
        try:
            return cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def save(self, path: Path) -> None:
        with written_whole(path) as unfinished:
            unfinished.write_text(self.model_dump_json(), encoding="utf-8")

    def is_of(self, mark: str, version: int) -> bool:
        return (self.mark, self.version) == (mark, version)

    def is_whole(self, folder: Path) -> bool:
        """Whether all files that it lists are still there: somebody may have cleaned the table up."""
        files = [folder / "data" / file["path"] for made in self.fragments.values() for file in made["files"]]
        return all(file.exists() for file in [*files, *(folder / "_versions" / name for name in self.manifests)])

    def forget(self, path: Path, folder: Path) -> None:
        """Data files are Lance's to clean up; these are ours."""
        for name in self.manifests:
            (folder / "_versions" / name).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def erased_fragment(
    fragment: "LanceFragment", column: str, field: int, erase: Erase, progress: Progress, where: str
) -> dict[str, Any]:
    """Write the erased vectors of one fragment; its description with them in the place of the raw ones."""
    import lance

    kind = fragment.schema.field(column).type
    failed: list[BaseException] = []

    def erased(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            values = erase(vectors_of(batch.column(0), where))
            progress.advance("erase", len(values))
            return pa.record_batch([_lists(values, kind)], schema=schema)
        except BaseException as error:
            failed.append(error)
            raise

    schema = pa.schema([pa.field(f"{column} erased by unface", kind)])
    rows = max(1, _BATCH_BYTES // (kind.list_size * kind.value_type.bit_width // 8))
    try:
        made, _ = fragment.merge_columns(lance.batch_udf(schema)(erased), columns=[column], batch_size=rows)
    except Exception:
        # Lance tells what went wrong in our function in words of its own.
        if failed:
            raise failed[0] from None
        raise
    described: dict[str, Any] = made.to_json()
    *kept, new = described["files"]
    for file in kept:
        file["fields"] = [_TOMBSTONE if number == field else number for number in file["fields"]]
    new["fields"] = [field]
    described["files"] = [file for file in kept if set(file["fields"]) != {_TOMBSTONE}] + [new]
    return described


def vectors_of(lists: pa.FixedSizeListArray, where: str) -> NDArray[np.floating]:
    """(n, d) in the type they are stored in."""
    flat = lists.flatten()
    if lists.null_count or flat.null_count:
        raise UnfaceError(f"{where}: a vector is null or has a null in it; fill or delete such rows")
    values: NDArray[np.floating] = flat.to_numpy(zero_copy_only=False)
    return values.reshape(-1, lists.type.list_size)


def holds_raw(fragment: "LanceFragment") -> bool:
    """Whether a data file of it still has a column that was replaced."""
    return any(_TOMBSTONE in file.fields for file in fragment.data_files())


def _lists(values: NDArray[np.float32], kind: pa.DataType) -> pa.FixedSizeListArray:
    numbers = values.astype(kind.value_type.to_pandas_dtype(), copy=False)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), type=kind)
