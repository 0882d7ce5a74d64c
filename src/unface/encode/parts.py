"""An output made in parts: each appears by a rename, a manifest says of what, and they end as one file."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unface.errors import UnfaceError, reason, short_name
from unface.output.links import refuse_link
from unface.output.lock import run_lock
from unface.output.manifest import MANIFEST, agree, read_plan
from unface.output.place import Place, place_at
from unface.output.taken import require_new_file
from unface.output.write import SEE_TO_IT, OutputError, staged


@dataclass(frozen=True)
class Parts:
    """The folder beside an output in which its parts lie until all are there."""

    out: Path
    folder: Path
    place: Place

    def has(self, number: int) -> bool:
        return (self.folder / _part(number)).exists()

    def write(self, number: int, table: pa.Table) -> None:
        """One part, whole or not at all."""
        try:
            with self.place.written(_part(number)) as sink:
                pq.write_table(table, sink, use_dictionary=["identity"], write_page_checksum=True)
        except OutputError as error:
            raise UnfaceError(f"{self.place.shown}: {error}; {SEE_TO_IT}") from None

    def tables(self, count: int) -> Iterator[pa.Table]:
        """The parts in order."""
        for number in range(count):
            yield pq.read_table(self.folder / _part(number))

    def join(self, count: int, schema: pa.Schema) -> None:
        """All parts as the output, which appears by a rename; the parts go."""
        with (
            staged(self.out, option="--out") as unfinished,
            pq.ParquetWriter(unfinished, schema, use_dictionary=["identity"], write_page_checksum=True) as writer,
        ):
            for table in self.tables(count):
                if table.num_rows:
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
        self.drop()

    def drop(self) -> None:
        """The parts go."""
        shutil.rmtree(self.folder)


def _part(number: int) -> str:
    return f"part-{number:06d}.parquet"


@contextmanager
def opened_parts(out: Path, plan: dict[str, object], *, force: bool) -> Iterator[Parts]:
    """Parts to begin, or to continue if an unfinished output has the same plan; held against other processes."""
    require_free(out, force=force)
    folder = out.with_name(f".{out.name}.parts")
    refuse_link(folder)
    place = place_at(folder, short_name(out))
    try:
        with run_lock(place):
            left = place.listed("")
            if force or read_plan(place) is None:
                for old in left:
                    if old.name.startswith("part-"):
                        place.drop(old.name)
                place.drop(MANIFEST)
            place.drop_unfinished()
            agree(place, plan)
            yield Parts(out, folder, place)
    except OSError as error:
        raise UnfaceError(f"{out}: cannot be written ({reason(error)}); choose another --out") from None


def require_free(out: Path, *, force: bool) -> None:
    """Refuse an output that exists already or cannot be written: before the work, not after it."""
    require_new_file(out, force=force, make_folder=True)
