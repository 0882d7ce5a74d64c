"""If these fail, sanitising a store loses vectors, mixes them up, or leaves raw ones where anybody can read them."""

import importlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from tests.stores.contract import DIM, ROWS, Maker, StoreCase, Vectors, erased, projection, raw_vectors, shorter
from unface import Projection
from unface.data import Space
from unface.progress import Silent
from unface.scale import released_vectors
from unface.scale.receipt import Check
from unface.stores import sanitise_store
from unface.stores.npy import NpyStore
from unface.stores.ports import Holding

# Cases lie beside this file, one file for each kind of store.
MAKERS: dict[str, Maker] = {
    name: maker
    for file in sorted(Path(__file__).parent.glob("cases_*.py"))
    for name, maker in importlib.import_module(f"tests.stores.{file.stem}").MAKERS.items()
}
PROJECTION = projection()
MARK = PROJECTION.sha256
Held = dict[Hashable, NDArray[np.floating]]


@dataclass(frozen=True)
class Filled:
    """A store of raw vectors, and what must be in it after."""

    case: StoreCase
    raw: Vectors
    ids: list[Hashable]

    def holds_raw(self) -> bool:
        return self._holds(self.raw)

    def holds_erased(self) -> bool:
        return self._holds(erased(PROJECTION, self.raw, self.case.dtype))

    def in_files(self, vector: Vectors) -> bool:
        patterns = self.case.patterns(vector.astype(self.case.dtype).astype(np.float32))
        contents = [path.read_bytes() for path in self.case.files()]
        return any(pattern in content for pattern in patterns for content in contents)

    def _holds(self, vectors: NDArray[np.floating]) -> bool:
        wanted: Held = dict(zip(self.ids, vectors, strict=True))
        return same(self.case.read(), wanted, self.case.dtype)


@pytest.fixture(params=MAKERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> StoreCase:
    return MAKERS[request.param](tmp_path)


@pytest.fixture
def filled(case: StoreCase) -> Filled:
    raw = raw_vectors()
    return Filled(case, raw, list(case.fill(raw)))


def erase(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
    return released_vectors(PROJECTION, vectors, "here")


def same(found: dict[Hashable, NDArray[np.floating]], wanted: dict[Hashable, NDArray[np.floating]], dtype: str) -> bool:
    near = 1e-3 if dtype == "float16" else 1e-6
    return found.keys() == wanted.keys() and all(
        np.allclose(found[key], wanted[key], rtol=0, atol=near) for key in found
    )


def test_every_id_keeps_its_vector_erased_and_no_row_comes_or_goes(filled: Filled) -> None:
    receipt = sanitise_store(PROJECTION, filled.case.open())
    assert filled.holds_erased()
    assert not filled.holds_raw()
    assert (receipt.rows, receipt.degenerate, receipt.raw_purged) == (ROWS, 0, False)


def test_it_is_searched_by_erased_vectors_after_as_by_raw_ones_before(filled: Filled) -> None:
    before = [filled.case.search(vector) for vector in filled.raw[:20]]
    assert before == filled.ids[:20]
    sanitise_store(PROJECTION, filled.case.open(), purge=True)
    after = [filled.case.search(vector) for vector in PROJECTION.apply(filled.raw[:20])]
    assert after == filled.ids[:20]


def test_vectors_become_shorter_where_the_projection_keeps_fewer_dimensions(filled: Filled) -> None:
    made = shorter()
    receipt = sanitise_store(made, filled.case.open(), purge=True)
    assert (receipt.dim, receipt.released_dim, receipt.rows) == (DIM, 12, ROWS)
    wanted: Held = dict(zip(filled.ids, erased(made, filled.raw, filled.case.dtype), strict=True))
    assert same(filled.case.read(), wanted, filled.case.dtype)
    held = filled.case.open().inspect()
    assert (held.rows, held.dim, held.sanitised_with, held.raw_kept) == (ROWS, 12, made.sha256, False)
    assert [filled.case.search(vector) for vector in made.apply(filled.raw[:20])] == filled.ids[:20]
    assert not any(filled.in_files(vector) for vector in filled.raw[:5])


def test_an_interrupted_run_with_shorter_vectors_continues(filled: Filled) -> None:
    made = shorter()
    filled.case.open().stage(lambda vectors: released_vectors(made, vectors, "here"), made.sha256, Silent())
    assert filled.holds_raw()
    sanitise_store(made, filled.case.open())
    assert filled.case.open().inspect().dim == 12


def test_a_store_of_one_dimension_is_refused_with_the_way_out(tmp_path: Path) -> None:
    class OfOneDimension(NpyStore):
        def inspect(self) -> Holding:
            return replace(super().inspect(), resizable=False)

    np.save(tmp_path / "faces.npy", raw_vectors())
    with refused("store", "faces.npy", "of 12", "of 32", "--keep-dimension"):
        sanitise_store(shorter(), OfOneDimension(tmp_path / "faces.npy"))
    sanitise_store(shorter().in_same_dimension(), OfOneDimension(tmp_path / "faces.npy"))
    assert np.load(tmp_path / "faces.npy").shape == (ROWS, DIM)


def test_the_store_tells_where_it_stands(filled: Filled) -> None:
    held = filled.case.open().inspect()
    assert (held.rows, held.dim, held.sanitised_with, held.raw_kept) == (ROWS, DIM, None, False)
    sanitise_store(PROJECTION, filled.case.open())
    held = filled.case.open().inspect()
    assert (held.rows, held.dim, held.sanitised_with, held.raw_kept) == (ROWS, DIM, MARK, True)
    sanitise_store(PROJECTION, filled.case.open(), purge=True)
    held = filled.case.open().inspect()
    assert (held.rows, held.dim, held.sanitised_with, held.raw_kept) == (ROWS, DIM, MARK, False)


def test_a_second_run_is_refused_and_so_is_another_projection(filled: Filled) -> None:
    sanitise_store(PROJECTION, filled.case.open())
    with refused("store", ..., "still"):
        sanitise_store(PROJECTION, filled.case.open())
    with refused("store", ..., "applied"):
        sanitise_store(projection(seed=1), filled.case.open(), purge=True)
    sanitise_store(PROJECTION, filled.case.open(), purge=True)
    with refused("store", ..., "nothing"):
        sanitise_store(PROJECTION, filled.case.open(), purge=True)
    assert filled.holds_erased()


@pytest.mark.parametrize("later", [False, True])
def test_after_a_purge_no_file_of_the_store_holds_a_raw_vector(filled: Filled, later: bool) -> None:
    planted = filled.raw[7]
    assert filled.in_files(planted), "the search for bytes finds nothing even where there is something"
    if later:
        sanitise_store(PROJECTION, filled.case.open())
        assert filled.in_files(planted), "raw vectors are kept until they are purged"
    assert sanitise_store(PROJECTION, filled.case.open(), purge=True).raw_purged
    assert not filled.in_files(planted)
    assert filled.in_files(erased(PROJECTION, planted[None], filled.case.dtype)[0])
    assert filled.holds_erased()


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("twice", [False, True])
def test_killed_between_steps_the_same_call_ends_the_same(filled: Filled, steps: int, twice: bool) -> None:
    """Every step by a store opened anew; each that may be repeated, repeated."""
    for _ in range(1 + twice):
        filled.case.open().stage(erase, MARK, Silent())
    assert filled.holds_raw()
    if steps > 1:
        filled.case.open().swap(MARK)
        assert filled.holds_erased()
    if steps > 2:
        for _ in range(1 + twice):
            filled.case.open().purge()
    if steps < 3:
        sanitise_store(PROJECTION, filled.case.open(), purge=True)
    assert filled.holds_erased()
    assert not filled.in_files(filled.raw[7])
    held = filled.case.open().inspect()
    assert (held.rows, held.sanitised_with, held.raw_kept) == (ROWS, MARK, False)


def test_cut_off_while_staging_the_raw_vectors_stay_and_the_same_call_ends_right(filled: Filled) -> None:
    class Cut(BaseException):
        pass

    def cut(vectors: NDArray[np.generic]) -> NDArray[np.float32]:
        raise Cut

    with pytest.raises(Cut):
        filled.case.open().stage(cut, MARK, Silent())
    assert filled.holds_raw()
    assert filled.case.open().inspect().sanitised_with is None
    sanitise_store(PROJECTION, filled.case.open(), purge=True)
    assert filled.holds_erased()


def test_what_was_staged_with_another_projection_is_not_taken_up(filled: Filled) -> None:
    other = projection(seed=1)
    filled.case.open().stage(lambda vectors: released_vectors(other, vectors, "here"), other.sha256, Silent())
    sanitise_store(PROJECTION, filled.case.open(), purge=True)
    assert filled.holds_erased()
    assert not filled.in_files(erased(other, filled.raw[7:8], filled.case.dtype)[0])


def test_what_lies_staged_is_read_back_whole_and_matched(filled: Filled) -> None:
    filled.case.open().stage(erase, MARK, Silent())
    store = filled.case.open()
    found = np.concatenate(list(store.staged()))
    assert found.dtype.name == filled.case.dtype
    wanted = erased(PROJECTION, filled.raw, filled.case.dtype)
    # Stores may read back in another order than they were given.
    order = np.argmax(wanted.astype(np.float64) @ found.astype(np.float64).T, axis=1)
    assert sorted(order) == list(range(ROWS))
    assert np.allclose(found[order], wanted, rtol=0, atol=1e-3 if found.itemsize == 2 else 1e-6)
    assert store.unmatched() == 0


def test_nan_in_a_vector_is_refused_and_nothing_changes(case: StoreCase) -> None:
    if not case.holds_nan:
        pytest.skip("this store refuses NaN itself")
    raw = raw_vectors()
    raw[ROWS // 2, 3] = np.nan
    ids = list(case.fill(raw))
    with refused("apply", ...):
        sanitise_store(PROJECTION, case.open(), purge=True)
    found = case.read()
    assert np.array_equal([found[key] for key in ids], raw.astype(case.dtype), equal_nan=True)
    assert case.open().inspect().sanitised_with is None


def test_a_store_of_no_vectors_stays_one(case: StoreCase) -> None:
    case.fill(raw_vectors(0))
    assert sanitise_store(PROJECTION, case.open(), purge=True).rows == 0
    assert case.read() == {}
    assert case.open().inspect().sanitised_with == MARK


def test_a_projection_of_another_dimension_is_refused_before_a_byte_is_written(filled: Filled) -> None:
    names = sorted(filled.case.files())
    with refused("apply", ..., "of 32", "for 24"):
        sanitise_store(projection(dim=24), filled.case.open(), purge=True)
    assert filled.holds_raw()
    assert sorted(filled.case.files()) == names


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("normalise", [True, False])
def test_raw_vectors_do_not_pass_where_erased_ones_keep_the_mean(rank: int, normalise: bool) -> None:
    """Of a single direction all that is left is the mean's part, and whether a vector has just that must be seen."""
    directions = np.eye(DIM)[:, :rank]
    by = Projection(
        "leace",
        directions,
        np.ones(rank),
        Space(None, None, DIM, normalised=True),
        readers=directions.copy(),
        mean=np.full(DIM, 0.1),
        normalise=normalise,
    )
    after, before = Check(by), Check(by)
    after.add(by.apply(raw_vectors()))
    after.require(ROWS, "here")
    assert after.largest_left < 1e-6
    before.add(raw_vectors())
    with refused("apply", "here"):
        before.require(ROWS, "here")
