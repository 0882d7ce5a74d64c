"""An output made in parts: each appears by a rename, a manifest says of what, and they end as one file."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unface.errors import UnfaceError, short_name
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, agree, read_plan
from unface.output.place import place_at
from unface.output.taken import require_new_file
from unface.output.write import publish


@dataclass(frozen=True)
class Parts:
    """The folder beside an output in which its parts lie until all are there."""

    out: Path
    folder: Path

    def has(self, number: int) -> bool:
        return self._path(number).exists()

    def write(self, number: int, table: pa.Table) -> None:
        """One part, whole or not at all."""
        unfinished = self.folder / f"part-{number:06d}.tmp"
        pq.write_table(table, unfinished, use_dictionary=["identity"], write_page_checksum=True)
        publish(unfinished, self._path(number))

    def tables(self, count: int) -> Iterator[pa.Table]:
        """The parts in order."""
        for number in range(count):
            yield pq.read_table(self._path(number))

    def join(self, count: int, schema: pa.Schema) -> None:
        """All parts as the output, which appears by a rename; the parts go."""
        unfinished = self.folder / "joined.tmp"
        with pq.ParquetWriter(unfinished, schema, use_dictionary=["identity"], write_page_checksum=True) as writer:
            for table in self.tables(count):
                if table.num_rows:
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
        publish(unfinished, self.out)
        self.drop()

    def drop(self) -> None:
        """The parts go."""
        shutil.rmtree(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"


@contextmanager
def opened_parts(out: Path, plan: dict[str, object], *, force: bool) -> Iterator[Parts]:
    """Parts to begin, or to continue if an unfinished output has the same plan; held against other processes."""
    require_free(out, force=force)
    folder = out.with_name(f".{out.name}.parts")
    place = place_at(folder, short_name(out))
    try:
        with run_lock(place):
            if force or read_plan(place) is None:
                for old in folder.glob("part-*"):
                    old.unlink()
                place.drop(MANIFEST)
            agree(place, plan)
            yield Parts(out, folder)
    except OSError as error:
        raise UnfaceError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None


def require_free(out: Path, *, force: bool) -> None:
    """Refuse an output that exists already or cannot be written: before the work, not after it."""
    require_new_file(out, force=force, make_folder=True)
