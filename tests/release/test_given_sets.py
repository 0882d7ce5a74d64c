"""If these fail, a set is read as another one than it is, compared row by row with the wrong rows, or not refused."""

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests.refusals.table import refused
from unface.data import EmbeddingSet, Space, write_embeddings
from unface.data.embeddings import Columns, TooFewIdentities
from unface.metrics import Resolution
from unface.pairs import Nearest
from unface.release import Labelled, retrieval_risk, stranger_thresholds
from unface.release.check import aligned, require_comparable, with_people
from unface.release.cluster import cluster_people
from unface.release.copies import Reached, copied_people, drawn_people
from unface.release.crowding import crowding
from unface.release.embedded import COPIES, embedded_view
from unface.release.exchangeable import exchangeability
from unface.release.exposure import enrichment, exposed, fused, person_scores
from unface.release.faces import (
    STREAMED,
    Faces,
    Held,
    Streamed,
    compare,
    faces_of,
    near_pairs,
    parquet_faces,
    store_faces,
)
from unface.release.membership import measure_membership, permutation_test
from unface.release.paper import PaperSet, nearest_mean, paper_score
from unface.release.read import read_faces
from unface.release.retrieval import gallery_sizes
from unface.release.run import Plan, View, _holdout_notes, _own, _retrieval, _same_rows, measure_release, release
from unface.seeds import stream
from unface.verification import verify


def at(*degrees: float) -> NDArray[np.float32]:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None], np.float32)


def written(folder: Path, **columns: list[Any]) -> Path:
    vectors = stream(6, "written").standard_normal((6, 4)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
    path = folder / "set.parquet"
    pq.write_table(pa.table({"vector": lists, **columns}), path)
    return path


PEOPLE = list("aabbcc")
IDS = [f"row {n}" for n in range(6)]


def test_small_sets_are_held_and_large_ones_streamed_with_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, identity=PEOPLE, id=IDS, copy_of=list("uvwxyz"))
    held = read_faces(str(path), Columns(), role="training")
    assert isinstance(held.vectors, Held)
    assert held.made_of is not None
    assert held.made_of.tolist() == list("uvwxyz")
    # 6 rows of 4 numbers are 96 bytes: streamed where that is more than a sixth of the budget.
    for budget, kind in ((6 * 96, Held), (6 * 95, Streamed)):
        monkeypatch.setattr("unface.release.read.memory_budget", lambda budget=budget: budget)
        found = read_faces(str(path), Columns(), role="training")
        assert isinstance(found.vectors, kind)
        assert (found.names, found.people.tolist(), found.ids.tolist()) == (("a", "b", "c"), [0, 0, 1, 1, 2, 2], IDS)
        assert found.labelled
        assert (found.vectors.rows, found.vectors.dim, len(found)) == (6, 4, 6)
        assert found.sha256() == held.sha256()
        np.testing.assert_allclose(found.take(np.array([1, 4])), held.take(np.array([1, 4])), atol=1e-6)
    assert (found.notes, found.space.normalised) == ((STREAMED,), True)
    npy = tmp_path / "stored.npy"
    np.save(npy, held.take(np.arange(6)))
    stored = read_faces(f"npy:{npy}", Columns(identity=None), role="synthetic")
    assert isinstance(stored.vectors, Streamed)
    assert not stored.labelled
    assert stored.ids.tolist() == [str(row) for row in range(6)], "rows without ids are numbered"
    np.testing.assert_array_equal(stored.take(np.arange(6)), held.take(np.arange(6)))
    monkeypatch.setattr("unface.release.read.memory_budget", lambda: 6 * 96)
    assert isinstance(read_faces(f"npy:{npy}", Columns(identity=None), role="synthetic").vectors, Held)
    lists = pa.table({"vector": pa.array([[1.0, 2.0], [3.0, 4.0]]), "identity": ["a", "b"]})
    pq.write_table(lists, tmp_path / "lists.parquet")
    monkeypatch.setattr("unface.release.read.memory_budget", lambda: 6)
    assert isinstance(read_faces(str(tmp_path / "lists.parquet"), Columns(), role="holdout").vectors, Held)


def test_columns_that_are_missing_matter_by_role_and_by_who_named_them(tmp_path: Path) -> None:
    plain = str(written(tmp_path))
    for role in ("synthetic", "training", "holdout"):
        found = read_faces(plain, Columns(), role=role)
        assert not found.labelled
        assert len(found.names) == 6, "each row stands for itself"
    assert not read_faces(plain, Columns(identity="who"), role="synthetic").labelled
    with refused("missing-column", "set.parquet"):
        read_faces(plain, Columns(identity="who"), role="training")
    named = str(written(tmp_path, identity=PEOPLE, id=IDS))
    assert read_faces(named, Columns(id="file"), role="holdout").ids.tolist() == IDS, "the usual column, or numbers"
    with refused("missing-column", "set.parquet", "file"):
        read_faces(named, Columns(id="file"), role="synthetic")
    one = str(written(tmp_path, identity=["folder"] * 6))
    assert not read_faces(one, Columns(), role="synthetic").labelled
    with pytest.raises(TooFewIdentities):
        read_faces(one, Columns(), role="training")
    with refused("missing-column", "set.parquet", "vectors"):
        read_faces(named, Columns(vector="vectors"), role="synthetic")


def test_bad_rows_are_left_out_only_where_that_is_asked_for(tmp_path: Path) -> None:
    vectors = np.ones((6, 4), np.float32)
    vectors[3, 1] = np.nan
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
    pq.write_table(pa.table({"vector": lists, "identity": PEOPLE}), tmp_path / "bad.parquet")
    with refused("vectors", "bad.parquet"):
        read_faces(str(tmp_path / "bad.parquet"), Columns(), role="training")
    assert len(read_faces(str(tmp_path / "bad.parquet"), Columns(), role="training", bad_rows="drop")) == 5


@pytest.mark.parametrize(
    ("columns", "given", "code", "named"),
    [
        ({}, Columns(), "missing-column", "'identity'"),
        ({"identity": PEOPLE}, Columns(vector="v"), "missing-column", "'v'"),
        ({"identity": ["a", "a", None, "b", "b", "b"]}, Columns(), "release", "row 2 "),
        ({"identity": ["a", "a", "b", "b", "b", ""]}, Columns(), "release", "row 5 "),
    ],
)
def test_a_file_that_cannot_be_streamed_is_refused(
    tmp_path: Path, columns: dict[str, list[Any]], given: Columns, code: str, named: str
) -> None:
    with refused(code, "set.parquet", named):
        parquet_faces(written(tmp_path, **columns), given)
    pq.write_table(pa.table({"vector": pa.array([[1.0], [2.0]])}), tmp_path / "lists.parquet")
    with refused("release", "lists.parquet", "'vector'"):
        parquet_faces(tmp_path / "lists.parquet", Columns(identity=None))


def test_a_stream_gives_even_pieces_of_batches_of_any_size_and_notices_a_change() -> None:
    vectors = stream(0, "pieces").standard_normal((23, 3))

    def batches() -> Any:
        return iter([vectors[:1], vectors[1:9], vectors[9:9], vectors[9:20], vectors[20:]])

    found = Streamed("set", 23, 3, batches)
    for rows, sizes in ((5, [5, 5, 5, 5, 3]), (23, [23]), (100, [23]), (1, [1] * 23)):
        blocks = list(found.blocks(rows))
        assert [len(block) for block in blocks] == sizes
        np.testing.assert_allclose(np.concatenate(blocks), unit(vectors), atol=1e-6)
        assert blocks[0].dtype == np.float32
    with refused("release", "set", "had 24", "has 23"):
        list(Streamed("set", 24, 3, batches).blocks(10))
    for bad, what in ((0.0, "only zeros"), (np.inf, "NaN or Inf"), (1e300, "NaN or Inf")):
        second = np.array([[1, 1], [bad, bad]])
        with refused("release", "set", "row 3", what):
            list(Streamed("set", 4, 2, partial(iter, [np.ones((2, 2)), second])).blocks(9))
    faces = Faces("set", found, np.arange(23).astype(str).astype(object), np.arange(23), (), Space(None, None, 3, True))
    some = np.array([0, 5, 16, 22])
    np.testing.assert_allclose(faces.take(some), unit(vectors)[some], atol=1e-6)


def test_the_hash_of_a_set_is_of_its_vectors_people_names_and_ids() -> None:
    given = EmbeddingSet.from_arrays(at(0, 90, 45), ["a", "b", "a"], ids=["x", "y", "z"], source="set")
    faces = faces_of(given)
    expected = hashlib.sha256(b"3 2")
    expected.update(given.unit().vectors.astype("<f4").tobytes())
    expected.update(np.array([0, 1, 0], "<i8").tobytes())
    expected.update(b"a\x1fb\x1fx\x1fy\x1fz")
    assert faces.sha256() == expected.hexdigest()
    assert (faces.source, faces.labelled, faces.made_of, faces.notes) == ("set", True, None, ())


def test_pieces_of_both_sides_find_the_nearest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.release.faces._PIECE", {"cpu": 4})
    rng = stream(2, "compare")
    left, right = unit(rng.standard_normal((19, 6))), unit(rng.standard_normal((11, 6)))
    sides = []
    for name, vectors in (("left", left), ("right", right)):
        held = faces_of(EmbeddingSet.from_arrays(vectors, [f"{n}" for n in range(len(vectors))], source=name))
        sides.append(replace(held, vectors=Streamed(name, len(vectors), 6, partial(iter, [vectors]))))
    whose = np.arange(11) // 2
    own = (np.arange(19) % 8 - 1, whose)
    for given in (None, own):
        scores = left @ right.T
        if given is not None:
            scores = np.where((own[0][:, None] == whose) & (own[0][:, None] >= 0), -2, scores)
        of_left, of_right = compare(sides[0], sides[1], own=given)
        np.testing.assert_array_equal(of_left.rows, scores.argmax(axis=1))
        np.testing.assert_array_equal(of_right.rows, scores.argmax(axis=0))
        np.testing.assert_allclose(of_right.scores, scores.max(axis=0), atol=1e-6)
    i, j, found = near_pairs(sides[0], right, 0.5)
    expected = {(int(a), int(b)) for a, b in np.argwhere(left @ right.T >= 0.5)}
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == expected
    np.testing.assert_allclose(found, (left @ right.T)[i, j], atol=1e-6)


def test_a_store_with_people_is_labelled_and_one_that_changes_is_noticed(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    vectors = unit(stream(0, "store").standard_normal((6, 4)))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
    table = lancedb.connect(tmp_path / "lance").create_table(
        "faces", pa.table({"id": IDS, "identity": PEOPLE, "vector": lists})
    )
    url = f"lancedb:{tmp_path / 'lance'}?table=faces"
    found = store_faces(url, Columns())
    assert (found.names, found.people.tolist(), found.ids.tolist()) == (("a", "b", "c"), [0, 0, 1, 1, 2, 2], IDS)
    assert (found.labelled, found.notes, found.space) == (True, (STREAMED,), Space(None, None, 4, True))
    np.testing.assert_allclose(found.take(np.arange(6)), vectors, atol=1e-6)
    unlabelled = store_faces(url, Columns(identity=None))
    assert (unlabelled.labelled, len(unlabelled.names)) == (False, 6)
    table.update(where="id = 'row 2'", values={"id": "another"})
    with refused("release", "lancedb:lance?table=faces", "changed"):
        found.sha256()
    table.update(where="id = 'row 4'", values={"identity": None})
    with refused("release", "lancedb:lance?table=faces", "'row 4'", "'identity'"):
        store_faces(url, Columns())


def faces(name: str, vectors: NDArray[np.float32], people: str, **more: Any) -> Faces:
    made = EmbeddingSet.from_arrays(vectors, list(people), ids=[f"{name} {n}" for n in range(len(people))], source=name)
    return replace(faces_of(made), **more)


def test_views_are_compared_over_the_rows_that_all_have_in_the_first_ones_order() -> None:
    def view(name: str, order: list[int]) -> View:
        sides = []
        for side, people in (("s", "uvwxyz"), ("t", "aabbcc"), ("h", "ddeeff")):
            whole = faces(side, at(*range(6)), people, made_of=np.array(list("123456"), object))
            rows = np.array(order)
            names = [whole.names[whole.people[row]] for row in order]
            kept = faces_of(EmbeddingSet.from_arrays(whole.take(rows), names, ids=whole.ids[rows], source=side))
            sides.append(replace(kept, made_of=np.array(list("123456"), object)[rows], notes=("n",)))
        return View(name, *sides)

    views, dropped = _same_rows([view("face", [0, 1, 2, 3, 4]), view("eyes", [5, 4, 2, 0])])
    assert [(one.severity, one.about, one.text) for one in dropped] == [
        ("note", side, "2 rows left out: not every view has them") for side in ("synthetic", "training", "holdout")
    ]
    for one in views:
        assert one.training.ids.tolist() == ["t 0", "t 2", "t 4"]
        np.testing.assert_allclose(one.training.take(np.arange(3)), at(0, 2, 4), atol=1e-6)
        assert one.training.names == ("a", "b", "c")
        assert one.training.people.tolist() == [0, 1, 2]
        assert one.training.made_of is not None
        assert one.training.made_of.tolist() == ["1", "3", "5"]
        assert (one.training.source, one.training.labelled, one.training.notes) == ("t", True, ("n",))
    assert [one.name for one in views] == ["face", "eyes"]
    same = view("face", [0, 1, 2, 3, 4])
    again, nothing = _same_rows([same, replace(same, name="eyes")])
    assert (again[0].training is same.training, nothing) == (True, [])
    alone, _ = _same_rows([same])
    assert alone == [same]
    streamed = replace(same.holdout, vectors=Streamed("h", 5, 2, lambda: iter([])))
    with refused("release", "holdout"):
        _same_rows([same, replace(same, name="eyes", holdout=streamed)])
    with refused("release", "t", "face"):
        aligned({"face": view("", [0, 2]).training, "eyes": view("", [1, 3]).training})


def test_spaces_are_compared_where_both_are_known_and_noted_where_one_is() -> None:
    known = Space("sface", "00", 2, False)
    sets = faces("s", at(1, 2), "uv"), faces("t", at(3, 4), "ab"), faces("h", at(5, 6), "cd")
    assert require_comparable(*sets).notes == []
    one = require_comparable(sets[0], replace(sets[1], space=known), sets[2]).notes
    assert [text.split(":")[0] for text in one] == ["t and s", "t and h"]
    assert all("one does not say which encoder made it" in text for text in one)
    whole = [replace(side, space=known) for side in sets]
    assert require_comparable(*whole).notes == []
    unit_space = replace(whole[0], space=replace(known, normalised=True))
    assert require_comparable(unit_space, *whole[1:]).notes == [], "vectors are brought to unit length anyway"
    with refused("vectors"):
        require_comparable(replace(whole[0], space=replace(known, encoder="other")), *whole[1:])
    copies = require_comparable(faces("s", at(7, 5, 4, 3), "uvwx"), *sets[1:])
    assert (copies.training, copies.holdout) == ([(2, 1), (3, 0)], [(1, 0)])
    with refused("release", "s", "'c'"):
        require_comparable(faces("s", at(1, 2), "cx"), *sets[1:])
    shown = require_comparable(faces("s", at(1, 2), "cx", labelled=False), *sets[1:])
    assert shown.notes == []
    unknown = replace(sets[1], labelled=False)
    assert with_people(sets[1], sets[2], device="cpu", threads=1)[2] is None
    for training, holdout, where, named in (
        (replace(sets[1], names=("a",)), sets[2], "t", "1 person"),
        (sets[1], replace(sets[2], names=()), "h", "0 people"),
    ):
        with refused("release", where, named):
            with_people(training, holdout, device="cpu", threads=1)
    far = replace(unknown, vectors=Held(at(90, 180)))
    clustered, others, note = with_people(far, replace(sets[2], vectors=Held(at(5, 275))), device="cpu", threads=1)
    assert (clustered.names, others.names) == (("cluster 0", "cluster 1"), ("cluster 0", "cluster 1"))
    assert note is not None
    assert "--identity-column" in note


def test_pictures_are_one_person_where_they_are_nearer_than_any_two_strangers() -> None:
    """Training at 0°, 3°, 6° and 50°, holdout from 100° on: the nearest strangers are 50° apart."""
    found = cluster_people(at(0, 3, 6, 50.5), at(100, 149, 199.5, 249.6))
    assert found.cosine == pytest.approx(np.cos(np.radians(49.5)), abs=1e-6)
    assert found.training.tolist() == [0, 0, 0, 0], "in a chain"
    assert found.holdout.tolist() == [0, 0, 1, 2]
    assert cluster_people(at(0), at(90, 95)).training.tolist() == [0]


def test_what_a_row_names_counts_only_where_training_people_have_names() -> None:
    training = faces("t", at(1, 2, 3), "abb")
    named = faces("s", at(4, 5, 6), "bxa")
    found = _own(named, training)
    assert found is not None
    assert found.tolist() == [1, -1, 0]
    assert _own(faces("s", at(4, 5), "xy"), training) is None
    assert _own(replace(named, labelled=False), training) is None
    assert _own(named, replace(training, labelled=False)) is None
    assert _retrieval(named, training, None, Plan()) == ([], ["retrieval risk: synthetic rows name no training person"])
    one = _retrieval(named, training, np.array([1, -1, 1]), Plan())
    assert one == ([], ["retrieval risk: synthetic rows name one training person; two are needed"])
    sourced = replace(named, made_of=np.array(["t 2", None, "gone"], object))
    risks, missing = _retrieval(sourced, training, found, Plan(k=(1, 2, 3)))
    assert missing == []
    assert {one.k for one in risks} == {1, 2}, "two rows name a training person, so there is no third"
    assert [(one.pictures, one.k, one.share.denominator) for one in risks] == [
        ("same", 1, 1), ("same", 2, 1), ("other", 1, 2), ("other", 2, 2),
    ]  # fmt: skip


def test_how_many_people_must_be_exposed_before_anybody_is_listed_is_said() -> None:
    (small,) = _holdout_notes(11, 10, 18)
    assert (small.severity, small.about) == ("warning", "holdout")
    assert "too small to list anybody; at least 19 people" in small.text
    assert _holdout_notes(1, 10, 400) == []
    (some,) = _holdout_notes(10, 10, 1)
    assert (some.severity, some.about) == ("note", "holdout")
    assert some.text.startswith("with 1 holdout person nobody can be listed before 10 are nearer")


def test_an_encoder_that_does_not_link_people_concludes_nothing() -> None:
    rng = stream(9, "unlinked")
    sides = [unit(rng.standard_normal((rows, 8))) for rows in (40, 60, 90)]
    people = [
        [f"{name}{n // each}" for n in range(rows)] for name, rows, each in (("s", 40, 1), ("t", 60, 3), ("h", 90, 3))
    ]
    drawn, training, holdout = (
        EmbeddingSet.from_arrays(vectors, names, source=name)
        for vectors, names, name in zip(sides, people, ("s", "t", "h"), strict=True)
    )
    found = release(drawn, training, holdout, plan=Plan(far=(1e-2,), k=(1,))).result
    assert found.main.linking is not None
    assert not found.main.linking.above_chance
    real = verify(np.concatenate(sides[1:]), np.arange(150) // 3, far=1e-2).at[1e-2]
    tar = found.main.linking.tar
    assert (tar.numerator, tar.denominator, tar.identities) == (real.accepted, real.mated, 50)
    assert 0 <= tar.low < tar.value < tar.high < 0.1
    assert any(one.about == "face" and "does not link real people" in one.text for one in found.findings)
    assert any(
        text.startswith("face: this encoder does not link real people above chance (") for text in found.not_measured
    )
    single = EmbeddingSet.from_arrays(sides[1], [f"t{n}" for n in range(60)], source="t")
    others = EmbeddingSet.from_arrays(sides[2], [f"h{n}" for n in range(90)], source="h")
    alone = release(drawn, single, others, plan=Plan(far=(1e-2,), k=(1,))).result
    assert alone.main.linking is None
    assert [one.text for one in alone.findings if one.about == "face"] == [
        "no real person has two pictures: whether it links people is unknown"
    ]
    first = faces_of(EmbeddingSet.from_arrays(sides[1], ["t0"] * 59 + ["t1"], source="t"))
    only = replace(first, people=np.zeros(60, np.int64))
    view = View(
        "face", faces_of(EmbeddingSet.from_arrays(sides[0], ["t0"] * 20 + ["t1"] * 20)), only, faces_of(holdout)
    )
    with refused("release", "arrays", "'0'"):
        measure_release([view], Plan(k=(1,)))


def test_the_demo_plants_twenty_copies_behind_the_faces_that_are_drawn() -> None:
    view = embedded_view()
    assert (view.name, COPIES) == ("sface", 20)
    sizes = [len(side.names) for side in (view.training, view.holdout)]
    quarter = sizes[0]
    assert sizes == [quarter, 2 * quarter]
    assert [len(side) for side in (view.training, view.holdout)] == [4 * quarter, 8 * quarter]
    assert [side.source for side in (view.synthetic, view.training, view.holdout)] == [
        "synthetic set", "training set", "holdout",
    ]  # fmt: skip
    assert (view.synthetic.labelled, view.training.labelled) == (False, True)
    drawn = len(view.synthetic) - COPIES
    assert view.synthetic.ids[[0, -1]].tolist() == ["drawn 000", f"drawn {drawn + 19:03d}"]
    first = view.training.take(np.unique(view.training.people, return_index=True)[1][:COPIES])
    copies = view.synthetic.take(np.arange(drawn, drawn + COPIES))
    cosines = (first * copies).sum(axis=1)
    np.testing.assert_allclose(cosines, 1 / np.sqrt(1.25), atol=0.08)
    others = view.synthetic.take(np.arange(drawn)) @ first.T
    assert others.max() < cosines.min()
    assert view.synthetic.space.encoder == view.training.space.encoder


def test_people_are_drawn_whole_until_there_are_enough_pictures() -> None:
    people = np.repeat(np.arange(30), np.arange(30) % 4 + 1)
    assert drawn_people(people, len(people), 0).tolist() == list(range(len(people)))
    rows = drawn_people(people, 40, 0)
    chosen = set(people[rows].tolist())
    assert set(np.flatnonzero(np.isin(people, list(chosen))).tolist()) == set(rows.tolist())
    assert 37 <= len(rows) <= 40
    assert rows.tolist() == sorted(rows.tolist())
    assert drawn_people(people, 40, 1).tolist() != rows.tolist()
    assert len(set(people[drawn_people(people, 1, 0)].tolist())) == 2, "there are always strangers"


def test_thresholds_are_the_same_whether_scores_are_listed_or_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = stream(4, "ranked")
    vectors, people = unit(rng.standard_normal((60, 6))), np.arange(60) // 2
    listed = stranger_thresholds(vectors, people, (0.1, 0.01))
    monkeypatch.setattr("unface.release.copies._LISTED_AT_MOST", 0)
    assert stranger_thresholds(vectors, people, (0.1, 0.01)) == listed
    assert [one.strangers for one in listed] == [60 * 58 // 2] * 2
    assert [one.false_accepts for one in listed] == [174, 17]
    assert [one.resolution for one in listed] == [Resolution.RESOLVED, Resolution.COARSE]
    monkeypatch.setattr("unface.release.copies._MOST_STRANGERS", 20)
    (few,) = stranger_thresholds(vectors, people, (0.1,), seed=3)
    assert few.strangers == 20 * 18 // 2
    kept = drawn_people(people, 20, 3)
    assert few == stranger_thresholds(vectors[kept], people[kept], (0.1,))[0]


def test_blocks_of_crowding_are_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = stream(5, "blocks")
    vectors, people = unit(rng.standard_normal((31, 5))), np.arange(31) // 3
    whole = crowding([vectors], people, vectors, people)
    monkeypatch.setattr("unface.release.crowding.BLOCK", 4)
    np.testing.assert_array_equal(crowding([vectors[:9], vectors[9:]], people, vectors, people), whole)
    assert whole.dtype == np.float32


def test_a_holdout_is_told_from_training_by_cross_validation_alone() -> None:
    rng = stream(6, "camera")
    one, other = unit(rng.standard_normal((30, 4)) + 3), unit(rng.standard_normal((25, 4)) - 3)
    found = exchangeability(one, other)
    assert found is not None
    assert (found.auc, found.people, found.holds) == (1.0, 25, False)
    assert found.limit == pytest.approx(0.5 + 4 * np.sqrt(51 / (12 * 625)))
    assert exchangeability(one[:9], other) is None
    many = exchangeability(unit(rng.standard_normal((5100, 3))), unit(rng.standard_normal((5050, 3))))
    assert many is not None
    assert many.people == 5000
    assert many.limit == pytest.approx(0.5 + max(4 * np.sqrt(10_001 / (12 * 25e6)), 0.03))


def test_scores_of_a_person_are_the_best_of_the_first_pictures_in_a_random_order() -> None:
    scores, people = np.array([5, 1, 3, 9, 2], np.float32), np.array([1, 0, 1, 1, 0])
    found = person_scores(scores, people, 2, seed=0, side="training")
    assert found.pictures.tolist() == [2, 3]
    assert found.best.shape == (2, 3)
    assert found.best[:, 2].tolist() == [2, 9]
    assert (np.diff(found.best, axis=1) >= 0).all()
    assert found.best[0, 1] == found.best[0, 2], "who has two pictures repeats the last value"
    assert found.of(3).tolist() == [9]
    assert sorted(found.of(2).tolist()) == sorted(found.best[:, 1].tolist())
    assert person_scores(scores, people, 2, seed=0, side="training", most=2).best.shape == (2, 2)
    assert person_scores(scores, people, 2, seed=0, side="training", most=9).best.shape == (2, 3)
    firsts = {tuple(person_scores(scores, people, 2, seed=n, side="training").best[:, 0]) for n in range(40)}
    assert firsts == {(a, b) for a in (1, 2) for b in (5, 3, 9)}
    with refused("release", "training", "person 1"):
        person_scores(scores, np.array([0, 0, 2, 2, 2]), 3, seed=0, side="training")


def scored(side: str, *scores: float) -> Any:
    return person_scores(np.array(scores, np.float32), np.arange(len(scores)), len(scores), seed=0, side=side)


def test_several_traits_are_ranked_among_holdout_people_by_hand() -> None:
    """Three holdout people; a training person who is first in one trait and last in the other."""
    ours = {"a": scored("training", 9), "b": scored("training", 0)}
    others = {"a": scored("holdout", 1, 2, 3), "b": scored("holdout", 3, 2, 1)}
    found = fused(ours, others)
    log = np.log(np.array([1, 2, 3, 4]) / 4) ** 2
    assert found.scores[0] == pytest.approx(log[0] + log[3])
    # Holdout ranks from above with the person among them: in a 4, 3, 2, in b 1, 2, 3.
    joint = [log[3] + log[0], log[2] + log[1], log[1] + log[2]]
    assert found.p[0] == pytest.approx((1 + sum(one >= log[0] + log[3] - 1e-9 for one in joint)) / 4)
    assert (found.least, found.pictures, found.people, found.cut) == (5, 1, 0, 0.0)
    pairs = person_scores(np.ones(4, np.float32), np.arange(4) // 2, 2, seed=0, side="holdout")
    all_three = enrichment(scored("training", 1), pairs)
    assert (all_three.nearest, all_three.training, all_three.expected, all_three.p) == (3, 1, 1.0, 1.0)
    wide = exposed(scored("training", *range(100, 120)), scored("holdout", *range(60)))
    assert (wide.people, wide.cut, wide.least) == (20, 1 / 61, 7)
    assert exposed(scored("training", 5.0), scored("holdout", *range(10)), fdr=0.5).p[0] == pytest.approx(6 / 11)


def test_random_labels_are_drawn_without_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.release.membership._MOST_CELLS", 0)
    counts = np.array([5, 3, 0, 1])
    drawn = permutation_test(counts, 2, 6, seed=1)
    # Of the six pairs two sum to six or more: 5 + 3 and 5 + 1.
    assert drawn.p == pytest.approx(2 / 6, abs=0.02)
    assert (drawn.exact, drawn.permutations) == (False, 9_999)
    assert permutation_test(counts, 2, 0, seed=1).p == 1.0
    assert permutation_test(counts, 2, 6, seed=1) == drawn
    assert permutation_test(counts, 2, 6, seed=2) != drawn
    found = measure_membership(np.array([0, 0, 1, 3, 3, 3, 3]), 2, 2, seed=4)
    assert (found.share.identities, found.share.level, found.null) == (4, 0.95, 0.5)
    assert found.share.low < 0.15, "three people decide"
    assert found.share.high > 0.8


def test_galleries_grow_by_tens_and_ties_count_against_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gallery_sizes(10) == [10]
    assert gallery_sizes(11) == [10, 11]
    assert gallery_sizes(1000) == [10, 100, 1000]
    side = Labelled(at(0, 90, 0), np.array([0, 1, 2]), np.array([0, 1, 2]))
    released = Labelled(at(0, 90, 0), np.array([0, 1, 2]), np.full(3, -1))
    (tied,) = retrieval_risk(side, released, (1,))
    assert tied.share.numerator == 1, "two of the three share their place with a stranger"
    rng = stream(8, "pieces")
    owner = np.repeat(np.arange(9), 3)
    queries = Labelled(unit(rng.standard_normal((27, 4))), owner, np.arange(27))
    faces = Labelled(unit(rng.standard_normal((18, 4))), np.repeat(np.arange(9), 2), np.arange(18) * 27 // 18)
    whole = retrieval_risk(queries, faces, (1, 4), seed=2)
    monkeypatch.setattr("unface.release.retrieval._QUERIES_AT_ONCE", 5)
    monkeypatch.setattr("unface.release.retrieval._RELEASED_AT_ONCE", 4)
    assert retrieval_risk(queries, faces, (1, 4), seed=2) == whole
    scores = queries.vectors @ faces.vectors.T
    for one in whole:
        hits = asked = 0
        for row in range(27):
            made = faces.pictures == row
            mine = (faces.people == owner[row]) & (made if one.pictures == "same" else ~made)
            others = faces.people != owner[row]
            asked += bool(mine.any())
            hits += bool(mine.any()) and int((scores[row, others] >= scores[row, mine].max()).sum()) < one.k
        assert (one.share.numerator, one.share.denominator) == (hits, asked)
        assert (one.identities, one.released, one.share.identities) == (9, 18, 9)
        assert 0 < one.share.high - one.share.low < 0.5
    with refused("release", None, "retrieval"):
        retrieval_risk(queries, Labelled(faces.vectors, np.full(18, -1), faces.pictures), (1,))


def test_the_papers_score_needs_nine_pictures_and_leaves_a_picture_itself_out() -> None:
    rng = stream(10, "paper")
    training, drawn, held = (unit(rng.standard_normal((rows, 5))) for rows in (12, 9, 12))
    people = np.arange(12) // 2
    (found,) = paper_score({"face": PaperSet(training, drawn, held)}, people, people, k=2, seed=1)
    assert found.trait == "face"
    with refused("release", None, "least 9", "8"):
        paper_score({"face": PaperSet(training, drawn[:8], held)}, people, people)
    rows = np.arange(12)
    whole = nearest_mean(training, training, 3, excluded=(rows, rows))
    distances = np.linalg.norm(training[:, None].astype(float) - training, axis=2)
    np.testing.assert_allclose(whole, np.sort(distances, axis=1)[:, 1:4].mean(axis=1), atol=1e-6)


def test_a_written_set_says_which_encoder_made_it_when_it_is_streamed(tmp_path: Path) -> None:
    given = EmbeddingSet.from_arrays(at(0, 20, 40), list("abc"), source="set")
    write_embeddings(replace(given, space=Space("sface", "00", 2, False)), tmp_path / "set.parquet")
    found = parquet_faces(tmp_path / "set.parquet", Columns())
    assert found.space == Space("sface", "00", 2, True)


def test_a_face_at_the_threshold_reaches_it() -> None:
    nearest = Nearest(np.array([0.25, 0.5, 0.75], np.float32), np.array([0, 1, 1]))
    side = Reached(nearest, np.array([3, 4]), np.ones(5, np.int64))
    assert side.hits(0.5).tolist() == [1, 2]
    assert copied_people((side, side), 0.5).tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="people were not counted"):
        side.among(np.array([0]), {1: 1})
    counted = replace(side, numbers=np.full((3, 1), np.nan))
    assert counted.among(np.array([0, 2]), {1: 2}).tolist() == [0.4, 0.4], "nobody was counted: two of five people"
    assert side.among(np.array([0]), {1: 5}).tolist() == [1.0]


def test_ties_are_decided_exactly_in_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten queries, each with a copy of its own and, for every third, a stranger in the very same place."""
    vectors = unit(stream(11, "ties").standard_normal((10, 5)))
    queries = Labelled(vectors, np.arange(10), np.arange(10))
    tied = np.arange(0, 10, 3)
    released = Labelled(
        np.concatenate([vectors, vectors[tied]]),
        np.concatenate([np.arange(10), (tied + 1) % 10]),
        np.full(14, -1),
    )
    for queries_at_once, released_at_once in ((1024, 2048), (3, 4), (1, 1)):
        monkeypatch.setattr("unface.release.retrieval._QUERIES_AT_ONCE", queries_at_once)
        monkeypatch.setattr("unface.release.retrieval._RELEASED_AT_ONCE", released_at_once)
        (found,) = retrieval_risk(queries, released, (1,), sizes=(10,))
        assert found.share.numerator == 10 - len(tied), "a tie counts against the query"


def test_a_store_is_read_in_batches_in_which_ids_stay_with_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(stream(12, "batches").standard_normal((7, 4)))
    names = [f"row {n}" for n in range(7)]

    class Collection:
        name, rows, dim, erased_with = "made", 7, 4, "ab"
        changed = missing = False
        named = True

        def batches(self, columns: object) -> Any:
            for rows in (slice(0, 3), slice(3, 5), slice(5, 7)):
                lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[rows].reshape(-1)), 4)
                if self.missing and rows.start == 3:
                    lists = pa.array([vectors[3].tolist(), None], lists.type)
                ids = names[rows] if not self.changed else names[rows][::-1]
                people = pa.array([f"p{n // 2}" for n in range(7)][rows])
                whole = pa.RecordBatch.from_arrays([pa.array(ids), people, lists], ["id", "identity", "vector"])
                yield whole if self.named else whole.select(["identity", "vector"])

    collection = Collection()

    @contextmanager
    def opened(url: str, columns: Columns) -> Any:
        assert url == "made:x"
        yield collection

    monkeypatch.setattr("unface.stores.open_collection", opened)
    found = store_faces("made:x", Columns())
    assert (found.source, found.ids.tolist(), found.people.tolist()) == ("made", names, [0, 0, 1, 1, 2, 2, 3])
    assert (found.names, found.labelled) == (("p0", "p1", "p2", "p3"), True)
    assert found.space == Space(None, "ab", 4, True)
    np.testing.assert_allclose(found.take(np.arange(7)), vectors, atol=1e-6)
    collection.named = False
    assert store_faces("made:x", Columns()).ids.tolist() == [str(row) for row in range(7)], "rows are numbered"
    collection.named, collection.missing = True, True
    with refused("release", "made", "vector"):
        found.sha256()
    collection.missing, collection.changed = False, True
    with refused("release", "made", "changed"):
        found.sha256()


def test_a_file_with_a_row_without_a_vector_is_refused_when_it_is_streamed(tmp_path: Path) -> None:
    kind = pa.list_(pa.float32(), 2)
    pq.write_table(pa.table({"vector": pa.array([[1.0, 2.0], None], kind)}), tmp_path / "set.parquet")
    faces = parquet_faces(tmp_path / "set.parquet", Columns(identity=None))
    with refused("release", "set.parquet", "vector"):
        faces.sha256()


def test_notes_about_the_sets_and_copies_of_vectors_are_in_the_result() -> None:
    rng = stream(13, "noted")
    vectors = [unit(rng.standard_normal((rows, 6))) for rows in (30, 24, 36)]
    vectors[0][:3], vectors[0][3] = vectors[1][[0, 1, 5]], vectors[2][4]
    drawn, training, holdout = (
        EmbeddingSet.from_arrays(
            one, [f"{name}{n // 2}" for n in range(len(one))], source=name, ids=[f"{name}-{n}" for n in range(len(one))]
        )
        for one, name in zip(vectors, "sth", strict=True)
    )
    known = replace(training, space=Space("sface", "00", 6, False))
    done = release(drawn, known, holdout, plan=Plan(far=(1e-2,), k=(1,)))
    said = [(one.severity, one.text) for one in done.result.findings if one.about == "sets"]
    assert [severity for severity, _ in said] == ["note", "note", "warning", "warning"]
    assert said[0][1].startswith("t and s: one does not say which encoder made it")
    assert [text for _, text in said[2:]] == [
        "3 synthetic faces have exactly the vector of a training picture",
        "1 synthetic face has exactly the vector of a holdout picture",
    ]
    exact = done.result.exact
    assert (exact.faces, exact.people, exact.holdout) == (3, 2, 1)
    rows = [row for row in done.exposed.rows if row[1] == "exact copy"]
    assert rows == [
        ("t0", "exact copy", "0", "1.0000", "2", "s-0 s-1"), ("t2", "exact copy", "0", "1.0000", "1", "s-2"),
    ]  # fmt: skip


def test_the_papers_accuracy_is_the_mean_over_both_classes_at_gamma() -> None:
    """Members have a sibling right beside them, synthetic faces nobody."""
    rng = stream(14, "separate")
    people = np.repeat(np.arange(30), 2)
    bases = rng.standard_normal((60, 20))
    training, held = (
        unit(np.repeat(some, 2, axis=0) + 0.01 * rng.standard_normal((60, 20))) for some in (bases[:30], bases[30:])
    )
    drawn = unit(rng.standard_normal((60, 20)))
    (found,) = paper_score({"face": PaperSet(training, drawn, held)}, people, people, k=1)
    assert found.accuracy > 0.9
    assert found.flagged < 0.15
    assert found.average_precision > 0.95
