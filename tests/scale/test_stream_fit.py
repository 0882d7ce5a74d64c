"""If these fail, a projection fitted from files one batch at a time is not the one fitted from all rows in memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from unface.auditing import fit as streamed_fit
from unface.auditing import fit_certified, fit_streamed, is_streamed
from unface.data import EmbeddingSet, Space, make_identities, read_embeddings, write_embeddings
from unface.erase import ERASERS, Projection
from unface.progress import Silent
from unface.scale import local_executor, sums
from unface.scale.sums import HELD, Cut, NamesJob, SumsJob, cut_identities, gather_here, merge_sums, part_sums

DIM = 24
# Lengths far from one, so that forgetting to scale shows.
MADE = make_identities(60, 5, DIM, rank=8, between=2.0, seed=5)
PEOPLE = replace(MADE, vectors=MADE.vectors * np.linspace(0.1, 9, len(MADE))[:, None].astype(np.float32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Rows in no order, in three files of small row groups: every identity is in several."""
    order = np.random.default_rng(2).permutation(len(PEOPLE))
    for number, rows in enumerate(np.split(order, [110, 190])):
        write_embeddings(PEOPLE.take(rows), tmp_path / f"{number}.parquet")
        pq.write_table(pq.read_table(tmp_path / f"{number}.parquet"), tmp_path / f"{number}.parquet", row_group_size=17)
    return tmp_path


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "batch_rows", lambda dim: 16)


def matrix(projection: Projection) -> np.ndarray:
    read = projection.directions if projection.readers is None else projection.readers
    return projection.directions @ read.T


def require_equal(one: Projection, other: Projection) -> None:
    """As maps: columns may differ in sign."""
    assert (one.kind, one.rank, one.space) == (other.kind, other.rank, other.space)
    assert np.abs(matrix(one) - matrix(other)).max() < 1e-6 * np.abs(matrix(other)).max()
    assert np.allclose(one.spectrum, other.spectrum, rtol=1e-6, atol=1e-9 * other.spectrum[0])
    assert (one.mean is None) == (other.mean is None)
    if one.mean is not None and other.mean is not None:
        assert np.abs(one.mean - other.mean).max() < 1e-6
    if other.certificate is None:
        assert one.certificate is None
        return
    assert one.certificate is not None
    for name in ("energy_left", "fisher_before", "fisher_left"):
        a, b = getattr(one.certificate, name), getattr(other.certificate, name)
        assert np.allclose([a.value, a.low, a.high], [b.value, b.low, b.high], rtol=1e-4, atol=1e-7)
    assert (one.certificate.identities, one.certificate.images) == (
        other.certificate.identities,
        other.certificate.images,
    )


@pytest.mark.parametrize("method", ["isp", "isp-whitened", "leace", "sal", "fair-pca", "inlp", "random", "pca"])
@pytest.mark.parametrize("rule", [7, 0.8, None], ids=["rank", "energy", "usual"])
def test_streamed_and_in_memory_fits_are_equal(folder: Path, method: str, rule: int | float | None) -> None:
    assert is_streamed(method)
    require_equal(fit_streamed(folder, method, rank=rule), fit_certified(folder, method, rank=rule))


def test_what_looks_at_samples_is_not_streamed() -> None:
    assert {name for name in ERASERS if not is_streamed(name)} == {"rlace"}
    assert not is_streamed("utility-pca")


@pytest.mark.parametrize(("hold_out", "seed"), [(0.0, 0), (0.5, 0), (0.3, 7)])
def test_the_same_identities_are_held_out(folder: Path, hold_out: float, seed: int) -> None:
    streamed = fit_streamed(folder, rank=5, hold_out=hold_out, seed=seed)
    require_equal(streamed, fit_certified(folder, rank=5, hold_out=hold_out, seed=seed))


def test_of_those_held_out_whole_identities_are_kept_up_to_a_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit_streamed(folder, rank=5, hold_out=0.5)
    monkeypatch.setattr(streamed_fit, "_MOST_HELD_ROWS", 52)
    some = fit_streamed(folder, rank=5, hold_out=0.5)
    assert np.array_equal(matrix(some), matrix(whole))
    assert whole.certificate is not None
    assert some.certificate is not None
    assert (whole.certificate.identities, whole.certificate.images) == (30, 150)
    assert (some.certificate.identities, some.certificate.images) == (10, 50)


def jobs(folder: Path, cut: Cut, *, scatter: bool = True) -> list[SumsJob]:
    return [SumsJob(str(folder), f"{number}.parquet", DIM, scatter, cut) for number in range(3)]


def test_sums_of_files_merge_in_any_order_to_the_sums_of_all(folder: Path) -> None:
    cut = Cut(seed=0, fit_below="c", held_below="g")
    a, b, c = (part_sums(job) for job in jobs(folder, cut))
    whole = gather_here(jobs(folder, cut), Silent())
    for merged in (merge_sums(merge_sums(a, b), c), merge_sums(a, merge_sums(b, c)), merge_sums(merge_sums(c, a), b)):
        assert merged.rows == whole.rows == len(PEOPLE)
        assert merged.moments.identities == whole.moments.identities
        found, expected = merged.moments.moments(), whole.moments.moments()
        by_sum, as_expected = np.argsort(found.sums[:, 0]), np.argsort(expected.sums[:, 0])
        assert np.allclose(found.sums[by_sum], expected.sums[as_expected], rtol=1e-12)
        assert np.array_equal(found.counts[by_sum], expected.counts[as_expected])
        assert np.allclose(found.scatter, expected.scatter, rtol=1e-12)
        assert sorted(np.concatenate(merged.held_names)) == sorted(np.concatenate(whole.held_names))
    assert a.rows == 110, "merging must leave its parts as they were"


def test_a_cut_holds_out_as_many_whole_identities_as_fit(folder: Path) -> None:
    named = [NamesJob(str(folder), f"{number}.parquet", "identity") for number in range(3)]
    for most, expected in ((10**6, 12), (60, 12), (59, 11), (0, 0)):
        cut = cut_identities(local_executor(), named, 0.2, 0, most)
        assert sum(cut.role(name) == HELD for name in PEOPLE.names) == expected
    assert cut_identities(local_executor(), [], 0, 7, 10) == Cut(seed=7), "everyone is fitted on, and nothing is read"


def spoilt(folder: Path, vectors: np.ndarray, names: list[str | None]) -> None:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    pq.write_table(pa.table({"vector": column, "identity": names}), folder / "3.parquet")


@pytest.mark.parametrize(
    ("value", "name", "told"),
    [
        (np.nan, "p", "NaN"),
        (np.inf, "p", "NaN"),
        (0, "p", "NaN"),
        (1, None, "identity"),
        (1, "", "identity"),
    ],
)
def test_bad_rows_are_named_or_left_out(folder: Path, value: float, name: str | None, told: str) -> None:
    expected = fit_streamed(folder, rank=5)
    kept = PEOPLE.vectors[:30].copy()
    kept[20] = value
    identities: list[str | None] = [PEOPLE.names[code] for code in PEOPLE.identities[:30]]
    identities[20] = name
    spoilt(folder, kept, identities)
    for path in folder.glob("[012].parquet"):
        pq.write_table(pq.read_table(path).select(["vector", "identity"]), path)
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with refused("apply", "3.parquet", "row 20", told):
        fit_streamed(folder, rank=5)
    skipped = fit_streamed(folder, rank=5, bad_rows="drop")
    assert np.abs(matrix(skipped) - matrix(expected)).max() > 1e-6, "the other 29 rows count"
    rows = [row for row in range(30) if row != 20]
    both = EmbeddingSet.from_arrays(
        np.concatenate([PEOPLE.vectors, kept[rows]]),
        [PEOPLE.names[code] for code in [*PEOPLE.identities, *PEOPLE.identities[rows]]],
    )
    assert np.abs(matrix(skipped) - matrix(fit_certified(both, rank=5))).max() < 1e-6


def test_lists_are_as_long_as_the_first_that_is_there(tmp_path: Path) -> None:
    names = [PEOPLE.names[code] for code in PEOPLE.identities]
    lists = pa.array([None, *PEOPLE.vectors[1:].tolist()], pa.list_(pa.float32()))
    pq.write_table(pa.table({"vector": lists, "identity": names}), tmp_path / "a.parquet")
    with refused("apply", "a.parquet", "row 0"):
        fit_streamed(tmp_path, rank=5)
    expected = EmbeddingSet.from_arrays(PEOPLE.vectors[1:], names[1:])
    require_equal(fit_streamed(tmp_path, rank=5, bad_rows="drop"), fit_certified(expected, rank=5))
    nothing = pa.array([None] * len(names), pa.list_(pa.float32()))
    pq.write_table(pa.table({"vector": nothing, "identity": names}), tmp_path / "a.parquet")
    with refused("audit", "test_lists_are_as_long_as_the_0", "'vector'"):
        fit_streamed(tmp_path, rank=5, bad_rows="drop")


def test_lists_of_double_precision_and_coded_names_are_read_alike(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    for path in folder.glob("*.parquet"):
        given = pq.read_table(path)
        lists = given.column("vector").to_pylist()
        given = given.set_column(given.column_names.index("vector"), "vector", pa.array(lists, pa.list_(pa.float64())))
        coded = given.column("identity").dictionary_encode()
        given = given.set_column(given.column_names.index("identity"), "identity", coded)
        pq.write_table(given, other / path.name)
    require_equal(fit_streamed(other, rank=5), fit_streamed(folder, rank=5))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (DIM + 1, "rank 25"),
        (1.5, "energy 1.5"),
    ],
)
def test_a_rank_that_cannot_be_is_told_before_vectors_are_read(
    folder: Path, rule: int | float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_fit, "cut_identities", lambda *_: pytest.fail("was read"))
    with refused("fit", "isp", told):
        fit_streamed(folder, rank=rule)


def test_two_spaces_never_mix(folder: Path) -> None:
    named = replace(PEOPLE, space=Space("clip", None, DIM, normalised=False))
    write_embeddings(named, folder / "9.parquet")
    with refused("vectors"):
        fit_streamed(folder, rank=5)


def test_the_space_of_the_files_is_that_of_the_projection(tmp_path: Path) -> None:
    space = Space("clip", "cd" * 32, DIM, normalised=False)
    write_embeddings(replace(PEOPLE, space=space), tmp_path / "a.parquet")
    assert fit_streamed(tmp_path, rank=5).space == read_embeddings(tmp_path).unit().space


def test_a_url_is_fitted_like_a_folder(folder: Path) -> None:
    require_equal(fit_streamed(folder.as_uri(), rank=5), fit_streamed(folder, rank=5))


def test_tensors_of_one_dimension_are_summed_like_lists(folder: Path) -> None:
    expected = fit_streamed(folder, rank=7)
    for path in folder.iterdir():
        given = pq.read_table(path)
        lists = given.column("vector").combine_chunks()
        tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [DIM]), lists)
        pq.write_table(given.set_column(given.column_names.index("vector"), "vector", tensors), path)
    require_equal(fit_streamed(folder, rank=7), expected)
