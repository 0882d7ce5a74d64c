"""If these fail, a LanceDB table that was cut off or written to meanwhile loses a row or an index, or stays raw."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stores.cases_lance import TABLE, table_of
from tests.stores.contract import raw_vectors
from tests.stores.lance_table import (
    MARK,
    PROJECTION,
    ROWS,
    erase,
    holding,
    lance,
    lancedb,
    opened,
    rows,
    table_in,
    told,
    vectors,
)
from tests.stores.stepped import killing
from unface import UnfaceError
from unface.progress import Silent
from unface.stores import sanitise_store
from unface.stores.lance import LanceStore
from unface.stores.lance_staging import Staging


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return table_in(tmp_path)


def test_staging_goes_on_after_the_last_whole_fragment(folder: Path) -> None:
    def dies(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        seen.append(len(vectors))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return erase(vectors)

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        LanceStore(str(folder), TABLE).stage(dies, MARK, Silent())
    assert seen == [ROWS // 2, ROWS // 2]
    seen = [0] * 9
    LanceStore(str(folder), TABLE).stage(dies, MARK, Silent())
    assert seen[9:] == [ROWS // 2]


@pytest.mark.parametrize("step", ["drop_index", "save", "commit", "create_index", "update_field_metadata"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_around_each_step_of_the_swap_the_same_call_ends_right(
    folder: Path, step: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    where: Any = lance.LanceDataset
    if step == "save":
        where = Staging
    with monkeypatch.context() as patch:
        patch.setattr(where, step, killing(getattr(where, step), before))
        with pytest.raises(KeyboardInterrupt):
            store.swap(MARK)
    held = LanceStore(str(folder), TABLE).inspect()
    if (step, before) == ("update_field_metadata", False):
        assert held.sanitised_with == MARK
        LanceStore(str(folder), TABLE).purge()
    else:
        assert held.sanitised_with is None
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert told(folder).keys() == {"vector_idx", "row_idx"}
    assert holding(folder, raw_vectors(ROWS)[7]) == []
    assert LanceStore(str(folder), TABLE).inspect().sanitised_with == MARK


@pytest.mark.parametrize("step", ["cleanup_old_versions", "update_field_metadata"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_around_each_step_of_a_purge_the_same_call_ends_right(
    folder: Path, step: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, step, killing(getattr(lance.LanceDataset, step), before))
        with pytest.raises(KeyboardInterrupt):
            LanceStore(str(folder), TABLE).purge()
    unpurged = LanceStore(str(folder), TABLE).inspect().raw_kept
    assert unpurged is not (step == "update_field_metadata" and not before)
    if unpurged:
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(erase(raw_vectors(ROWS)), abs=1e-6)
    assert holding(folder, raw_vectors(ROWS)[7]) == []


@pytest.mark.parametrize("write", ["add", "update", "delete"])
def test_what_is_written_after_staging_is_neither_lost_nor_left_raw(folder: Path, write: str) -> None:
    store = LanceStore(str(folder), TABLE)
    store.stage(erase, MARK, Silent())
    if write == "add":
        opened(folder).add(table_of(-raw_vectors(1), ["late"]))
    elif write == "update":
        opened(folder).update(where="row = 3", values={"vector": (-raw_vectors(1)[0]).tolist()})
    else:
        opened(folder).delete("row = 3")
    assert store.unmatched() > 0
    with pytest.raises(UnfaceError, match="was written to since it was staged; stop writers and run it again"):
        store.swap(MARK)
    wanted = erase(vectors(folder))
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert vectors(folder) == pytest.approx(wanted, abs=1e-6)


def test_rows_added_raw_after_the_swap_stop_a_purge_and_its_receipt(folder: Path) -> None:
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE))
    opened(folder).add(rows(0, 1))
    with pytest.raises(UnfaceError, match="not erased; were some added since"):
        sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)


def test_an_index_that_cannot_be_made_again_is_named_and_does_not_stand_in_the_way_of_a_purge(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise RuntimeError("no memory")

    opened(folder).create_index("vector", config=lancedb.index.IvfFlat(num_partitions=2))
    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, "create_index", fails)
        with pytest.raises(
            UnfaceError,
            match=r"make its index anew yourself: 'vector_idx' \(IVF_FLAT, l2, num_partitions=2\): no memory",
        ):
            sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    sanitise_store(PROJECTION, LanceStore(str(folder), TABLE), purge=True)
    assert holding(folder, raw_vectors(ROWS)[7]) == []
