"""An output made in parts: each appears by a rename, a manifest says of what, and they end as one file."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unface.errors import UnfaceError

_MANIFEST = "manifest.json"


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
        _synced(unfinished)
        unfinished.replace(self._path(number))

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
        _synced(unfinished)
        unfinished.replace(self.out)
        self.drop()

    def drop(self) -> None:
        """The parts go."""
        shutil.rmtree(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"


def require_free(out: Path, *, force: bool) -> None:
    """Refuse an output that is there already or cannot be: before the work, not after it."""
    if out.is_dir():
        raise UnfaceError(f"{out}: is a folder; give the name of a file, {out.name}.parquet")
    if out.exists() and not force:
        raise UnfaceError(f"{out}: exists already; choose another --out or pass --force")


@contextmanager
def opened_parts(out: Path, plan: dict[str, object], *, force: bool) -> Iterator[Parts]:
    """Parts to begin, or to go on with where an unfinished output has the same plan; held against other processes."""
    require_free(out, force=force)
    folder = out.with_name(f".{out.name}.parts")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UnfaceError(
                    f"{out}: another process is writing it; wait for it or choose another --out"
                ) from None
            if force:
                for old in folder.iterdir():
                    if old.name != "lock":
                        old.unlink()
            _agree(folder / _MANIFEST, plan, out)
            yield Parts(out, folder)
    except OSError as error:
        raise UnfaceError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None


def _agree(manifest: Path, plan: dict[str, object], out: Path) -> None:
    if not manifest.exists():
        unfinished = manifest.with_suffix(".tmp")
        unfinished.write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
        _synced(unfinished)
        unfinished.replace(manifest)
        return
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    different = [name for name in plan if not isinstance(found, dict) or found.get(name) != plan[name]]
    if different:
        raise UnfaceError(
            f"{out}: was begun with other {', '.join(different)}; give the same command, or --force to start over"
        )


def _synced(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
