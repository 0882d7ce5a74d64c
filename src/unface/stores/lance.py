"""A LanceDB table: erased vectors go into data files beside the raw ones, and one commit puts them in their place."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from unface.data.files import reason
from unface.errors import UnfaceError
from unface.progress import Progress
from unface.stores.lance_index import IndexPlan, indices_on
from unface.stores.lance_refusals import require_no_nulls, require_plain, require_unreferenced, required_kind
from unface.stores.lance_staging import Staging, erased_fragment, holds_raw, vectors_of
from unface.stores.ports import Erase, Holding

if TYPE_CHECKING:
    from lance import LanceDataset, LanceOperation

# Keys in the metadata of the vector column: they are committed together with the vectors.
_MARK, _RAW, _INDICES = "unface.sanitised_with", "unface.raw", "unface.indices"
_PLANS = TypeAdapter(list[IndexPlan])


class LanceStore:
    """Column, name, place and type stay. No version of the table ever shows both raw and erased vectors.

    ``stage`` goes on after the last whole fragment, as long as nobody has written to the table since.
    ``swap`` drops indices on the raw vectors, commits, and makes them again from erased ones; a table killed before
    the last of them is there counts as not yet sanitised, and the same call goes on.
    """

    def __init__(self, directory: str, table: str, column: str = "vector", id_column: str | None = None) -> None:
        if "://" in directory:
            raise UnfaceError(f"{table}: only tables in a folder on this machine can be sanitised; copy it here first")
        self._folder = Path(directory) / f"{table}.lance"
        self._note = Path(directory) / f".{table}.{column}.unface.json"
        self._column, self._id_column = column, id_column
        self._where = f"{table}.lance, column {column!r}"

    def inspect(self) -> Holding:
        data = self._open()
        kind = required_kind(data, self._column, self._where)
        require_plain(data, self._folder, self._where)
        require_no_nulls(data, self._column, self._id_column, self._where)
        told = self._told(data)
        return Holding(
            where=self._where,
            rows=data.count_rows(),
            dim=kind.list_size,
            sanitised_with=None if _INDICES in told else told.get(_MARK),
            raw_kept=told.get(_RAW) == "kept",
        )

    def stage(self, erase: Erase, mark: str, progress: Progress) -> None:
        data = self._open()
        if self._is_swapped(data, mark):
            return
        note = self._begun(data, mark)
        progress.start("erase", data.count_rows())
        with self._in_words():
            for fragment in data.get_fragments():
                if fragment.fragment_id in note.fragments:
                    progress.advance("erase", fragment.count_rows())
                    continue
                described = erased_fragment(
                    fragment, self._column, _field(data, self._column), erase, progress, self._where
                )
                note.fragments[fragment.fragment_id] = described
                note.save(self._note)
            if note.read_back is None:
                self._show(data, note)

    def staged(self) -> Iterator[NDArray[np.floating]]:
        data = self._open()
        if _MARK not in self._told(data):
            data = self._open(self._staging().read_back)
        for batch in data.to_batches(columns=[self._column]):
            yield vectors_of(batch.column(0), self._where)

    def unmatched(self) -> int:
        data = self._open()
        if _MARK in self._told(data):
            return 0
        note = self._staging()
        if note.version == data.version:
            return 0  # the same fragments, and no row of them has changed
        return len(np.setxor1d(_row_ids(data), _row_ids(self._open(note.read_back))))

    def swap(self, mark: str) -> None:
        data = self._open()
        if not self._is_swapped(data, mark):
            note = self._staging()
            if not note.is_of(mark, data.version):
                raise UnfaceError(f"{self._where}: was written to since it was staged; stop writers and run it again")
            with self._in_words():
                for plan in indices_on(data, self._column):
                    data.drop_index(plan.name)
                # From here on the plans are in the note alone, so it must stay valid.
                note.version = data.version
                note.save(self._note)
                self._commit(_replacement(note, self._open(note.read_back)), note.version)
        self._make_indices()
        self._forget()

    def purge(self) -> list[str]:
        """Lance deletes files of other writers' unfinished work too: there must be none."""
        data = self._open()
        if _MARK not in self._told(data):
            raise UnfaceError(f"{self._where}: not sanitised yet; there is nothing to purge")
        require_unreferenced(data, self._where)
        self._make_indices()
        data = self._open()
        with self._in_words():
            # Data files hold columns that are no longer shown until they are rewritten; below zero means all of them.
            data.optimize.compact_files(materialize_deletions_threshold=-1.0)
            data = self._open()
            if any(holds_raw(fragment) for fragment in data.get_fragments()):
                raise UnfaceError(f"{self._where}: Lance did not rewrite all data files; raw vectors are still there")
            data.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
            self._forget()
            data.update_field_metadata({self._column: {_RAW: "purged"}})
        return []

    def _open(self, version: int | None = None) -> "LanceDataset":
        try:
            import lance
        except ImportError:
            raise UnfaceError("LanceDB tables need the package 'pylance'; pip install 'unface[stores]'") from None
        if not self._folder.is_dir():
            told = f"there is no folder {self._folder.name!r} in the database's; check both names"
            raise UnfaceError(f"{self._where}: {told}")
        with self._in_words():
            return lance.dataset(self._folder, version=version)

    def _told(self, data: "LanceDataset") -> dict[str, str]:
        found = data.schema.field(self._column).metadata or {}
        return {key.decode(): value.decode() for key, value in found.items()}

    def _is_swapped(self, data: "LanceDataset", mark: str) -> bool:
        found = self._told(data).get(_MARK)
        if found not in (None, mark):
            raise UnfaceError(f"{self._where}: sanitised already, with the projection {found[:12]}…")
        return found is not None

    def _begun(self, data: "LanceDataset", mark: str) -> Staging:
        """What an earlier run staged, or a new beginning."""
        earlier = Staging.load(self._note)
        if earlier is not None and earlier.is_of(mark, data.version) and earlier.is_whole(self._folder):
            return earlier
        # A run that was killed in ``swap`` may have dropped some already.
        indices = {plan.name: plan for plan in (earlier.indices if earlier else [])}
        indices |= {plan.name: plan for plan in indices_on(data, self._column)}
        self._forget()
        note = Staging(mark=mark, version=data.version, indices=list(indices.values()))
        note.save(self._note)
        return note

    def _show(self, data: "LanceDataset", note: Staging) -> None:
        """Commit what the table will be as a version that is in nobody's history, to be read back."""
        import lance

        told: dict[str, str | None] = {_MARK: note.mark, _RAW: "kept"}
        if note.indices:
            told[_INDICES] = _PLANS.dump_json(note.indices).decode()
        changed = {_field(data, self._column): lance.LanceOperation.UpdateMap(told)}
        marked = self._commit(
            lance.LanceOperation.UpdateConfig(field_metadata_updates=changed), note.version, detached=True
        )
        whole = self._commit(_replacement(note, marked), note.version, detached=True)
        note.manifests = [f"d{made.version}.manifest" for made in (marked, whole)]
        note.read_back = whole.version
        note.save(self._note)

    def _commit(
        self, operation: "LanceOperation.BaseOperation", version: int, *, detached: bool = False
    ) -> "LanceDataset":
        import lance

        # Tried again, a commit to the table would go over what others have written meanwhile.
        retries = 20 if detached else 0
        return lance.LanceDataset.commit(
            self._folder, operation, read_version=version, detached=detached, max_retries=retries
        )

    def _make_indices(self) -> None:
        data = self._open()
        wanted = self._told(data).get(_INDICES)
        if wanted is None:
            return
        failed = []
        for plan in _PLANS.validate_json(wanted):
            try:
                plan.build(data, self._column)
            except (OSError, ValueError, RuntimeError) as error:
                failed.append(f"{plan.sentence()}: {reason(error)}")
        data.update_field_metadata({self._column: {_INDICES: None}})
        if failed:
            raise UnfaceError(f"{self._where}: sanitised, but make its index anew yourself: {'; '.join(failed)}")

    def _staging(self) -> Staging:
        note = Staging.load(self._note)
        if note is None or note.read_back is None:
            raise UnfaceError(f"{self._where}: nothing is staged; run it again")
        return note

    def _forget(self) -> None:
        note = Staging.load(self._note)
        if note is not None:
            note.forget(self._note, self._folder)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """What Lance says, as one line."""
        try:
            yield
        except UnfaceError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise UnfaceError(f"{self._where}: Lance says: {reason(error)}") from error


def _replacement(note: Staging, marked: "LanceDataset") -> "LanceOperation.Merge":
    """The table with erased vectors and the mark, and but for them as it is."""
    import lance

    made = [lance.FragmentMetadata.from_json(json.dumps(described)) for described in note.fragments.values()]
    return lance.LanceOperation.Merge(made, marked.lance_schema)


def _field(data: "LanceDataset", column: str) -> int:
    """Lance's number for a column, which stays when its data changes."""
    field = data.lance_schema.field(column)
    assert field is not None  # inspect has found it
    return field.id()


def _row_ids(data: "LanceDataset") -> NDArray[np.uint64]:
    ids: NDArray[np.uint64] = data.to_table(columns=[], with_row_id=True).column("_rowid").to_numpy()
    return ids
