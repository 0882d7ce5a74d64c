"""A LanceDB table: erased vectors go into data files beside the raw ones, and one commit replaces the column."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from filelock import lock_descriptor
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from unface.data.arrow import chosen_columns, left_out, list_type
from unface.data.collection import Collection, Counts, People, counted, of_people
from unface.data.embeddings import Columns
from unface.errors import MissingColumn, UnfaceError, reason
from unface.output.write import write_file
from unface.progress import Progress, Silent
from unface.result.words import count
from unface.stores.ports import Erase, Holding, IsErased, released_dim
from unface.stores.recall import compared, index_recall

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment, LanceOperation
    from lance.schema import LanceSchema

# Lance reads this when it is imported; it would print warnings beside our one line.
os.environ.setdefault("LANCE_LOG", "error")

# Keys in the metadata of the vector column: they are committed together with the vectors.
_MARK, _RAW, _INDICES = "unface.sanitised_with", "unface.raw", "unface.indices"
# Key of Lance's for the message of a commit. Detached versions are recognised by it.
_MESSAGE = "__lance_commit_message"
_BATCH_BYTES = 1 << 23
# Lance's own sign for a column that a data file still holds but that is no longer read from there.
_TOMBSTONE = -2
# Transactions that change no row. Only others make any of the rest, apart from our swap, which is a Merge.
_WITHOUT_ROWS = {"CreateIndex", "UpdateConfig", "Rewrite", "ReserveFragments"}
_LISTED = 40
_TRIES = 5
"""How often a commit or a purge is repeated because others write meanwhile."""


class LanceStore:
    """The column keeps its name, place and type. No version of the table ever shows both raw and erased vectors.

    ``stage`` continues after the last complete fragment, if nobody has written to the table since. ``swap`` drops the
    indices on the raw vectors, commits, and rebuilds them from erased vectors; a table killed before the last of them
    exists counts as not yet sanitised, and the same call continues. Rows that others add, change or delete up to the
    commit make ``swap`` refuse; the same call then stages the table again.
    """

    def __init__(self, directory: str, table: str, column: str = "vector", id_column: str | None = None) -> None:
        if "://" in directory:
            raise UnfaceError(f"{table}: only tables in a folder on this machine can be sanitised; copy it here first")
        self._folder = Path(directory) / f"{table}.lance"
        self._note = Path(directory) / f".{table}.{column}.unface.json"
        self._column, self._id_column = column, id_column
        self._where = f"{table}.lance, column {column!r}"
        self._written = f"{self._where}: was written to since it was staged; stop writers and run it again"
        self._known_erased: set[str] = set()
        """Data files, which never change, whose vectors were found to be erased."""
        self._clean_indices = False
        """Whether this run built the indices when nobody else had written since the swap."""
        self._is_exclusive = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._locked():
            self._is_exclusive = True
            try:
                yield
            finally:
                self._is_exclusive = False

    @contextmanager
    def reading(self, columns: Columns) -> Iterator[Collection]:
        """Of the newest version; a table that others write to stays as it was when it was opened."""
        data = self._open()
        columns = replace(columns, vector=self._column, id=self._id_column or columns.id)
        wanted = chosen_columns(data.schema, columns, self._where)
        kind = list_type(data.schema.field(self._column).type)
        dim = kind.list_size if pa.types.is_fixed_size_list(kind) else 0
        rows = max(1, _BATCH_BYTES // (4 * max(1, dim)))
        what = f"{self._where}: {columns.identity!r}"

        def people() -> Iterator[Counts]:
            with self._lance_errors():
                for batch in data.to_batches(columns=[str(columns.identity)]):
                    yield counted(batch.column(0), what)

        def batches(chosen: People | None) -> Iterator[pa.RecordBatch]:
            with self._lance_errors():
                for batch in data.to_batches(columns=wanted, batch_size=rows):
                    yield batch if chosen is None else of_people(batch, str(columns.identity), chosen, what)

        mark = self._metadata(data).get(_MARK)
        notes = left_out(data.schema, wanted)
        yield Collection(self._where, columns, data.count_rows(), dim, people, batches, mark, notes)

    def inspect(self) -> Holding:
        with self._lance_errors():  # such as a version that another client has just cleaned up
            return self._inspect()

    def _inspect(self) -> Holding:
        data = self._open()
        self._require_column(data, self._column, ": add &column=NAME to the URL")
        kind = data.schema.field(self._column).type
        if not pa.types.is_fixed_size_list(kind) or not pa.types.is_floating(kind.value_type):
            raise UnfaceError(f"{self._where}: {kind}; expected a fixed_size_list of float16, float32 or float64")
        self._require_own_data_files(data)
        self._require_no_nulls(data)
        metadata = self._metadata(data)
        return Holding(
            where=self._where,
            rows=data.count_rows(),
            dim=kind.list_size,
            sanitised_with=None if _INDICES in metadata else metadata.get(_MARK),
            swapped=_INDICES in metadata,
            raw_kept=metadata.get(_RAW) == "kept",
            resizable=True,
        )

    def foresee(self, released_dim: int, *, purge: bool) -> list[str]:
        data = self._open()
        indices = [plan.describe() for plan in _index_plans(data, self._column)]
        rebuilt = f"rebuilt: {'; '.join(indices)}" if indices else "none on this column, so none is rebuilt"
        kept = f"kept in older versions of the table ({data.version} and before) and their files until --purge"
        return [
            f"Stage: erased vectors of {released_dim} dimensions in new data files beside the raw"
            " ones; reads and writes continue.",
            "Read back: every erased vector is checked.",
            "Swap: one commit replaces the column; it is refused if rows were written since staging began.",
            f"Indices: {rebuilt}.",
            f"Raw vectors: {'every data file is rewritten, and older versions are removed' if purge else kept}.",
        ]

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        with self._locked():
            self._stage(erase, mark, progress)

    def _stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        data = self._open()
        if self._is_swapped(data, mark):
            return
        note = self._resume_or_begin(data, mark)
        note.dim = released_dim(erase, data.schema.field(self._column).type.list_size)
        progress.start("erase", data.count_rows())
        with self._lance_errors():
            for fragment in data.get_fragments():
                if fragment.fragment_id in note.fragments:
                    progress.advance("erase", fragment.count_rows())
                    continue
                field = _field_id(data, self._column)
                described = _erased_fragment(fragment, self._column, field, erase, progress, self._where)
                note.fragments[fragment.fragment_id] = described
                note.save(self._note)
            if note.read_back is None:
                if self._open().version != note.version:
                    raise UnfaceError(self._written)
                self._delete_detached()  # of a run that was killed before its note listed them
                self._commit_for_read_back(data, note)

    def staged(self) -> Iterator[NDArray[np.floating]]:
        data = self._open()
        if _MARK not in self._metadata(data):
            data = self._open(self._complete_note().read_back)
        with self._lance_errors():
            for batch in data.to_batches(columns=[self._column]):
                yield _vectors_of(batch.column(0), self._where)

    def unmatched(self) -> int:
        data = self._open()
        if _MARK in self._metadata(data):
            return 0
        note = self._complete_note()
        if note.version == data.version:
            return 0  # the same fragments, and no row of them has changed
        return len(np.setxor1d(_row_ids(data), _row_ids(self._open(note.read_back))))

    def recall(self) -> float | None:
        data = self._open()
        plans = _index_plans(data, self._column)
        if not plans:
            return None
        metric = plans[0].metric.lower()

        def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
            for batch in data.to_batches(columns=[self._column], with_row_id=True):
                found = _vectors_of(batch.column(self._column), self._where).astype(np.float32)
                yield batch.column("_rowid").to_numpy().astype(np.int64), compared(found, metric)

        def search(queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
            found = np.full((len(queries), k), -1, np.int64)
            for row, query in enumerate(queries):
                near = data.to_table(columns=[], nearest={"column": self._column, "q": query, "k": k}, with_row_id=True)
                ids = near.column("_rowid").to_numpy().astype(np.int64)
                found[row, : len(ids)] = ids
            return found

        with self._lance_errors():
            return index_recall(batches, data.count_rows(), search, l2=metric == "l2")

    def swap(self, mark: str) -> None:
        with self._locked():
            self._swap(mark)

    def _swap(self, mark: str) -> None:
        data = self._open()
        if not self._is_swapped(data, mark):
            note = self._complete_note()
            written = self._written
            if not note.is_of(mark, data.version):
                raise UnfaceError(written)
            with self._lance_errors():
                plans = _index_plans(data, self._column)
                for plan in plans:
                    data.drop_index(plan.name)
                if plans:
                    written += ", which also rebuilds its vector index"
                # Lance drops an index on top of whatever others wrote meanwhile. Each drop is one version.
                if data.version != note.version + len(plans):
                    raise UnfaceError(written)
                # From here on only the note knows the dropped indices, so it must stay valid.
                note.version = data.version
                note.save(self._note)
                self._commit_swap(note, written)
                # These were read back.
                self._known_erased |= {made["files"][-1]["path"] for made in note.fragments.values()}
        self._rebuild_indices()

    def erase_arrivals(self, erase: Erase, is_erased: IsErased) -> int:
        """Fragments with raw vectors get a new data file; the old one stays until a purge."""
        with self._locked():
            for _ in range(_TRIES):
                arrived = self._erase_arrivals(erase, is_erased)
                if arrived is not None:
                    return arrived
        raise UnfaceError(
            f"{self._where}: sanitised, but others write to it all the time, some of it raw;"
            " stop writers and give the same command with --purge"
        )

    def _erase_arrivals(self, erase: Erase, is_erased: IsErased) -> int | None:
        """None if others wrote to the table at the same time."""
        import lance
        from lance.commit import CommitConflictError

        data, arrived = self._open(), 0
        field = _field_id(data, self._column)
        fragments: dict[int, dict[str, Any]] = {}
        raw: set[int] = set()

        def erase_raw(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
            return np.where(is_erased(vectors)[:, None], vectors, erase(vectors)).astype(vectors.dtype)

        with self._lance_errors():
            for fragment in data.get_fragments():
                fragments[fragment.fragment_id] = fragment.metadata.to_json()
                files = {file.path for file in fragment.data_files() if field in file.fields}
                if files <= self._known_erased:
                    continue
                batches = fragment.to_batches(columns=[self._column])
                found = sum(
                    np.count_nonzero(~is_erased(_vectors_of(batch.column(0), self._where))) for batch in batches
                )
                if not found:
                    self._known_erased |= files
                    continue
                arrived += int(found)
                raw.add(fragment.fragment_id)
                fragments[fragment.fragment_id] = _erased_fragment(
                    fragment, self._column, field, erase_raw, Silent(), self._where
                )
            if not arrived:
                return 0
            written = [fragments[number]["files"][-1]["path"] for number in raw]
            made = [lance.FragmentMetadata.from_json(json.dumps(each)) for each in fragments.values()]
            try:
                if not self._drop_indices_of(data, raw):
                    raise CommitConflictError
                operation = lance.LanceOperation.Merge(made, data.lance_schema)
                lance.LanceDataset.commit(self._folder, operation, read_version=data.version, max_retries=0)
            except CommitConflictError:
                for name in written:
                    (self._folder / "data" / name).unlink()
                return None
        self._known_erased |= set(written)
        self._rebuild_indices()
        return arrived

    def _drop_indices_of(self, data: "LanceDataset", fragments: set[int]) -> bool:
        """Drop the vector indices that hold rows of these fragments; False if others wrote to the table meanwhile.

        Their plans are recorded in the table first, so that after a kill the same call rebuilds them.
        """
        covering = {
            index.name
            for index in data.describe_indices()
            if index.field_names == [self._column]
            and any(fragments & set(segment.fragment_ids) for segment in index.segments)
        }
        first, steps = data.version, 0
        if covering and _INDICES not in self._metadata(data):
            recorded = _INDEX_PLANS.dump_json(_index_plans(data, self._column)).decode()
            data.update_field_metadata({self._column: {_INDICES: recorded}})
            steps += 1
        for name in sorted(covering):
            data.drop_index(name)
            steps += 1
        # Each is one version, on top of whatever others wrote meanwhile.
        return bool(data.version == first + steps)

    def purge(self) -> list[str]:
        """Files that no version refers to may be of a write in progress, so they stay and are listed."""
        with self._locked():
            return self._purge()

    def _purge(self) -> list[str]:
        data = self._open()
        if _MARK not in self._metadata(data):
            raise UnfaceError(f"{self._where}: not sanitised yet; there is nothing to purge")
        # Lance never cleans up what a tag or a branch refers to.
        kept = [f"tag {name!r}" for name in data.tags.list()] + [f"branch {name!r}" for name in data.branches.list()]
        if kept:
            raise UnfaceError(f"{self._where}: {', '.join(kept)} would keep raw vectors; delete them and purge again")
        self._rebuild_indices()
        notes: list[str] = []
        with self._lance_errors():
            for _ in range(_TRIES):
                if not self._rewrite_files():
                    break
            else:
                notes.append(
                    "others wrote to the table during the purge: raw vectors that they wrote and then changed or"
                    " deleted may be in its files; stop writers and purge again"
                )
            notes += self._remove_unreferenced()
            if not notes:
                self._open().update_field_metadata({self._column: {_RAW: "purged"}})
        return notes

    def _rewrite_files(self) -> bool:
        """Keep only the present table, in new files; whether others wrote to it meanwhile."""
        data = self._open()
        clean = self._clean_indices or not self._others_wrote(data)
        try:
            # Data files keep replaced columns until they are rewritten; a threshold below zero rewrites all of them.
            data.optimize.compact_files(materialize_deletions_threshold=-1.0)
        except (OSError, RuntimeError):
            # Lance refuses the commit if others wrote meanwhile, and has no type for that error.
            if self._open().version != data.version:
                return True
            raise
        data = self._open()
        rewritten = data.version
        files = (file for fragment in data.get_fragments() for file in fragment.data_files())
        if any(_TOMBSTONE in file.fields for file in files):
            raise UnfaceError(f"{self._where}: Lance did not rewrite all data files; they still hold raw vectors")
        if not clean:
            # They may hold vectors of rows that were raw when they were built and are deleted now.
            for plan in _index_plans(data, self._column):
                plan.build(data, self._column)
        self._delete_note()
        data.cleanup_old_versions(older_than=timedelta(0))
        return self._others_wrote(self._open(), rewritten)

    def _others_wrote(self, data: "LanceDataset", since: int = 0) -> bool:
        """Whether anybody has changed rows since the swap, or since a version; also if that cannot be seen any more."""
        for version in range(data.version, since, -1):
            try:
                transaction = data.read_transaction(version)
            except TypeError:
                continue  # pylance cannot describe a Rewrite of a table with an index
            except (OSError, ValueError, RuntimeError):
                return True
            made = type(getattr(transaction, "operation", None)).__name__
            if made == "Merge":
                return False
            if made not in _WITHOUT_ROWS:
                return True
        return since == 0

    def _remove_unreferenced(self) -> list[str]:
        """Delete data files that a killed run of ours left; list those that a write in progress may own."""
        files = [path for path in (self._folder / "data").rglob("*") if path.is_file()]
        now = {file.path for fragment in self._open().get_fragments() for file in fragment.data_files()}
        left = []
        for path in sorted(files):
            name = path.relative_to(self._folder / "data").as_posix()
            if name in now:
                continue
            if self._is_staged_file(path):
                path.unlink(missing_ok=True)
            else:
                left.append(name)
        if not left:
            return []
        listed = ", ".join(left[:_LISTED]) + (f" and {len(left) - _LISTED:,} more" if len(left) > _LISTED else "")
        return [
            f"{len(left):,} files of {self._folder.name}/data belong to no version of the table ({listed}): they are of"
            " a write in progress, or of one that was killed, and may hold raw vectors; delete them when nobody writes"
        ]

    def _is_staged_file(self, path: Path) -> bool:
        from lance.file import LanceFileReader

        # Lance panics over a file without its end.
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4))
            if file.read() != b"LANC":
                return False
        try:
            names = LanceFileReader(str(path)).metadata().schema.names
        except (OSError, ValueError, RuntimeError):
            return False
        return list(names) == [_staged_name(self._column)]

    def _open(self, version: int | None = None) -> "LanceDataset":
        try:
            import lance
        except ImportError:
            raise UnfaceError("LanceDB tables need the package 'pylance'; pip install 'unface[stores]'") from None
        if not self._folder.is_dir():
            database = self._folder.parent
            if not database.is_dir():
                raise UnfaceError(f"{self._where}: there is no folder {database}; correct the URL")
            raise UnfaceError(f"{self._where}: {database} has no folder {self._folder.name!r}; check both names")
        with self._lance_errors():
            return lance.dataset(self._folder, version=version)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One run at a time. The table's folder is locked: every file in it may be replaced."""
        if self._is_exclusive:
            yield
            return
        self._open()  # refuses a folder that does not exist
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            if not lock_descriptor(descriptor, blocking=False):
                raise UnfaceError(f"{self._where}: another run is working on it; wait for it to finish")
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _lance_errors(self) -> Iterator[None]:
        """Errors of Lance become one line."""
        try:
            yield
        except UnfaceError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise UnfaceError(f"{self._where}: Lance reported: {reason(error)}") from error

    def _require_column(self, data: "LanceDataset", column: str, advice: str = "") -> None:
        names = data.schema.names
        if column not in names:
            there = ", ".join(map(repr, names))
            raise MissingColumn(f"{self._where}: no column {column!r}; there is {there}{advice}", column)

    def _require_own_data_files(self, data: "LanceDataset") -> None:
        """No raw vectors outside of the data files that are replaced, or in another table."""
        made = [fragment.metadata for fragment in data.get_fragments()]
        if any(file.base_id is not None for fragment in made for file in fragment.files):
            raise UnfaceError(
                f"{self._where}: a shallow clone, whose vectors are in another table; sanitise a deep clone of it"
            )
        if (self._folder / "_mem_wal").exists() or any(getattr(fragment, "overlays", ()) for fragment in made):
            raise UnfaceError(f"{self._where}: has writes that are not in its data files yet; compact the table first")

    def _require_no_nulls(self, data: "LanceDataset") -> None:
        """Lance itself would accept them. The message names the id of the first, if there is an id column."""
        if self._id_column is not None:
            self._require_column(data, self._id_column)
        missing = f"`{self._column}` IS NULL"
        empty = data.count_rows(filter=missing)
        if not empty:
            return
        first = ""
        if self._id_column is not None:
            row_id = data.to_table(columns=[self._id_column], filter=missing, limit=1).column(0)[0]
            first = f" (first {self._id_column} {row_id.as_py()!r})"
        raise UnfaceError(f"{self._where}: {count(empty, 'row')} without a vector{first}; fill or delete such rows")

    def _metadata(self, data: "LanceDataset") -> dict[str, str]:
        metadata = data.schema.field(self._column).metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}

    def _is_swapped(self, data: "LanceDataset", mark: str) -> bool:
        swapped_with = self._metadata(data).get(_MARK)
        if swapped_with not in (None, mark):
            raise UnfaceError(f"{self._where}: already sanitised with projection {swapped_with[:12]}…")
        return swapped_with is not None

    def _resume_or_begin(self, data: "LanceDataset", mark: str) -> "Staging":
        """The note of an earlier run if it is still valid, or else a new one."""
        earlier = self._load_note()
        if earlier is not None and earlier.is_of(mark, data.version) and earlier.is_whole(self._folder):
            return earlier
        # A run that was killed in ``swap`` may already have dropped some.
        indices = {plan.name: plan for plan in (earlier.indices if earlier else [])}
        indices |= {plan.name: plan for plan in _index_plans(data, self._column)}
        note = Staging(mark=mark, version=data.version, indices=list(indices.values()))
        # It replaces the earlier note in one step: no other place records the indices that are already dropped.
        note.save(self._note)
        return note

    def _commit_for_read_back(self, data: "LanceDataset", note: "Staging") -> None:
        """Commit the future table as a detached version, which is in no history, so that it can be read back."""
        import lance

        indices = _INDEX_PLANS.dump_json(note.indices).decode()
        metadata: dict[str, str | None] = {_MARK: note.mark, _RAW: "kept", _INDICES: indices}
        changed = {_field_id(data, self._column): lance.LanceOperation.UpdateMap(metadata)}
        marked = self._commit_detached(lance.LanceOperation.UpdateConfig(field_metadata_updates=changed), note.version)
        replacement = _replacement(note, marked, self._column)
        note.read_back = self._commit_detached(replacement, note.version).version
        note.save(self._note)

    def _commit_detached(self, operation: "LanceOperation.BaseOperation", version: int) -> "LanceDataset":
        import lance

        return lance.LanceDataset.commit(
            self._folder, operation, read_version=version, detached=True, commit_message=self._detached_message()
        )

    def _commit_swap(self, note: "Staging", written: str) -> None:
        """Lance refuses it if rows have changed since the note's version; a retry would overwrite those changes."""
        import lance
        from lance.commit import CommitConflictError

        try:
            lance.LanceDataset.commit(
                self._folder,
                _replacement(note, self._open(note.read_back), self._column),
                read_version=note.version,
                max_retries=0,
            )
        except CommitConflictError as error:
            raise UnfaceError(written) from error

    def _rebuild_indices(self) -> None:
        """The last step of a swap; ends with the commit that makes the table count as sanitised."""
        data = self._open()
        recorded = self._metadata(data).get(_INDICES)
        if recorded is None:
            return
        plans, failed = _INDEX_PLANS.validate_json(recorded), []
        self._clean_indices = not self._others_wrote(data)
        # Lance lets others build an index from raw vectors up to the swap, and no longer reports its parameters then.
        for name in sorted(set(_index_names(data, self._column)) - {plan.name for plan in plans}):
            with self._lance_errors():
                data.drop_index(name)
            failed.append(f"{name!r}: another client built it during the swap, from raw vectors")
        for plan in plans:
            try:
                plan.build(data, self._column)
            except (OSError, ValueError, RuntimeError) as error:
                failed.append(f"{plan.describe()}: {reason(error)}")
        self._delete_note()
        with self._lance_errors():
            data.update_field_metadata({self._column: {_INDICES: None}})
        if failed:
            raise UnfaceError(
                f"{self._where}: sanitised, but an index could not be rebuilt; create it yourself: {'; '.join(failed)}"
            )

    def _load_note(self) -> "Staging | None":
        try:
            return Staging.model_validate_json(self._note.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            raise UnfaceError(
                f"{self._where}: {self._note.name} cannot be read; it may list vector indices that a killed run"
                " dropped: check which are missing, delete the file and run it again"
            ) from None

    def _complete_note(self) -> "Staging":
        note = self._load_note()
        if note is None or note.read_back is None:
            raise UnfaceError(f"{self._where}: nothing is staged; run it again")
        return note

    def _delete_note(self) -> None:
        """And what only it refers to; data files are Lance's to clean up."""
        self._delete_detached()
        self._note.unlink(missing_ok=True)

    def _delete_detached(self) -> None:
        """Delete the detached versions that this column was staged as; those of others stay."""
        for manifest in (self._folder / "_versions").glob("d*.manifest"):
            try:
                version = int(manifest.stem[1:])
                made = self._open(version).read_transaction(version)
            except (UnfaceError, OSError, ValueError, RuntimeError):
                continue  # not one that Lance can open
            properties = getattr(made, "transaction_properties", None) or {}
            if properties.get(_MESSAGE) == self._detached_message():
                manifest.unlink(missing_ok=True)

    def _detached_message(self) -> str:
        return f"unface: column {self._column!r} staged"


class IndexPlan(BaseModel):
    """How to build an index again; what Lance does not report (training samples, rounds) takes the default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: str
    """IVF_PQ, IVF_HNSW_SQ, …"""
    metric: str
    parameters: dict[str, int]

    def build(self, data: "LanceDataset", column: str) -> None:
        parameters: dict[str, Any] = dict(self.parameters)
        if "num_sub_vectors" in parameters:
            # Vectors of fewer dimensions may not be cut into as many parts.
            dim = data.schema.field(column).type.list_size
            parameters["num_sub_vectors"] = math.gcd(parameters["num_sub_vectors"], dim)
        data.create_index(column, self.kind, name=self.name, metric=self.metric, replace=True, **parameters)

    def describe(self) -> str:
        parameters = ", ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.name!r} ({self.kind}, {self.metric}, {parameters})"


_INDEX_PLANS = TypeAdapter(list[IndexPlan])


class Staging(BaseModel):
    """The note beside the table that lists what is staged, as JSON."""

    model_config = ConfigDict(extra="ignore")

    mark: str
    version: int
    """Of the table that was staged; rows of another version may differ."""
    fragments: dict[int, dict[str, Any]] = {}
    """By number: Lance's description of each fragment as it will be."""
    indices: list[IndexPlan] = []
    """Recorded here before they are dropped."""
    dim: int | None = None
    """Of the erased vectors."""
    read_back: int | None = None
    """Detached version that shows the whole table as it will be."""

    def save(self, path: Path) -> None:
        write_file(path, self.model_dump_json().encode())

    def is_of(self, mark: str, version: int) -> bool:
        return (self.mark, self.version) == (mark, version)

    def is_whole(self, folder: Path) -> bool:
        """Whether all files that it lists still exist: somebody may have cleaned up the table."""
        files = [folder / "data" / file["path"] for made in self.fragments.values() for file in made["files"]]
        if self.read_back is not None:
            files.append(folder / "_versions" / f"d{self.read_back}.manifest")
        return all(file.exists() for file in files)


def _index_plans(data: "LanceDataset", column: str) -> list[IndexPlan]:
    """Of the indices on a column, sorted by name. They hold raw vectors or codes of them, so they are rebuilt."""
    plans = []
    for name in _index_names(data, column):
        stats = data.stats.index_stats(name)
        # Rows added later may be in an index of their own, which has the parameters of the first.
        first = stats["indices"][0]
        inner = first["sub_index"]
        graph = inner.get("params", {})
        reported = {
            "num_partitions": first.get("num_partitions"),
            "num_sub_vectors": inner.get("num_sub_vectors"),
            "num_bits": inner.get("nbits", inner.get("num_bits")),
            "m": graph.get("m"),
            "ef_construction": graph.get("ef_construction"),
            "max_level": graph.get("max_level"),
        }
        parameters = {key: int(value) for key, value in reported.items() if value is not None}
        plans.append(IndexPlan(name=name, kind=stats["index_type"], metric=first["metric_type"], parameters=parameters))
    return plans


def _index_names(data: "LanceDataset", column: str) -> list[str]:
    return sorted(index.name for index in data.describe_indices() if index.field_names == [column])


def _erased_fragment(
    fragment: "LanceFragment", column: str, field: int, erase: Erase, progress: Progress, where: str
) -> dict[str, Any]:
    """Write the erased vectors of one fragment; returns its description with them in place of the raw ones."""
    import lance

    kind = fragment.schema.field(column).type
    released = pa.list_(kind.value_type, released_dim(erase, kind.list_size))
    failed: list[BaseException] = []

    def erased(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            values = erase(_vectors_of(batch.column(0), where))
            progress.advance("erase", len(values))
            numbers = values.astype(kind.value_type.to_pandas_dtype(), copy=False)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), type=released)
            return pa.record_batch([lists], schema=schema)
        except BaseException as error:
            failed.append(error)
            raise

    schema = pa.schema([pa.field(_staged_name(column), released)])
    rows = max(1, _BATCH_BYTES // (kind.list_size * kind.value_type.bit_width // 8))
    try:
        made, _ = fragment.merge_columns(lance.batch_udf(schema)(erased), columns=[column], batch_size=rows)
    except Exception:
        # Lance wraps errors of our function in a message of its own.
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


def _staged_name(column: str) -> str:
    """Of the column in the data files that we write; Lance reads it by its number."""
    return f"{column} erased by unface"


def _vectors_of(lists: pa.FixedSizeListArray, where: str) -> NDArray[np.floating]:
    """(n, d) in the type they are stored in."""
    flat = lists.flatten()
    if lists.null_count or flat.null_count:
        raise UnfaceError(f"{where}: a vector is null or contains a null; fill or delete such rows")
    values: NDArray[np.floating] = flat.to_numpy(zero_copy_only=False)
    return values.reshape(-1, lists.type.list_size)


def _replacement(note: Staging, marked: "LanceDataset", column: str) -> "LanceOperation.Merge":
    """The table with erased vectors and the mark, otherwise unchanged."""
    import lance

    made = [lance.FragmentMetadata.from_json(json.dumps(described)) for described in note.fragments.values()]
    before = marked.schema.field(column).type.list_size
    after = note.dim or before
    schema = marked.lance_schema if after == before else _resized(marked.lance_schema, column, before, after)
    return lance.LanceOperation.Merge(made, schema)


def _resized(schema: "LanceSchema", column: str, before: int, after: int) -> "LanceSchema":
    """The same fields and numbers of fields, with vectors of another dimension in a column.

    Lance makes no such schema itself: it is taken apart and put together as for a copy, and the type's name changed.
    """
    taken_apart: Any = schema.__reduce__()
    build, (metadata, *fields) = taken_apart
    at = [field.name() for field in schema.fields()].index(column)
    old = f":{before}".encode()
    # Of the text of a type, its length comes before it.
    start = fields[at].index(b"fixed_size_list:")
    length = fields[at][start - 1]
    kind = fields[at][start : start + length]
    if not kind.endswith(old):
        raise UnfaceError(f"column {column!r}: this version of Lance cannot change its dimension; use --keep-dimension")
    renamed = kind[: -len(old)] + f":{after}".encode()
    fields[at] = fields[at][: start - 1] + bytes([len(renamed)]) + renamed + fields[at][start + length :]
    made: LanceSchema = build(metadata, *fields)
    return made


def _field_id(data: "LanceDataset", column: str) -> int:
    """Lance's number for a column, which stays the same when its data changes."""
    field = data.lance_schema.field(column)
    assert field is not None  # inspect has checked it
    return field.id()


def _row_ids(data: "LanceDataset") -> NDArray[np.uint64]:
    ids: NDArray[np.uint64] = data.to_table(columns=[], with_row_id=True).column("_rowid").to_numpy()
    return ids
