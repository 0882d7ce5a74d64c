"""If these fail, a release lists the wrong people, hides what it found, or measures sets that cannot be compared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals.table import refused
from tests.release.made import DIM, FACES, Sets, sets
from unface.data import EmbeddingSet, Space, write_embeddings
from unface.data.embeddings import Columns
from unface.release.faces import Faces, compare, faces_of, parquet_faces, store_faces
from unface.release.run import Plan, View, measure_release, release
from unface.result.release import ExactCopies, ReleaseResult
from unface.seeds import stream

QUICK = Plan(far=(1e-2, 1e-3), k=(1, 2))


def measured(given: Sets, **more: object) -> ReleaseResult:
    return release(given.synthetic, given.training, given.holdout, plan=QUICK, **more).result  # type: ignore[arg-type]


def test_planted_copies_are_found_by_person_and_by_picture() -> None:
    given = sets(25)
    done = release(given.synthetic, given.training, given.holdout, plan=QUICK)
    result = done.result
    assert result.decision == "exposes people"
    assert "exposes" in result.verdict
    people = [row[0] for row in done.exposed.rows]
    planted = set(given.training.names[:25])
    assert planted <= set(people)
    assert len(people) <= 28, "at most five percent of the listed are listed by accident, on average"
    first = {row[0]: row[5].split(" ") for row in done.exposed.rows}
    for number, name in enumerate(given.training.names[:25]):
        assert first[name][0] == f"s{FACES - 25 + number:03d}.png", "the copy of this person's picture comes first"
    assert {one.id for one in result.main.riskiest[:20]} <= {f"s{n:03d}.png" for n in range(FACES - 25, FACES)}
    assert result.main.copies[-1].copies.numerator >= 25
    assert result.main.copies[-1].excess.low > 0
    # No name is in the file that is passed on.
    assert not any(name in result.file_text() for name in given.training.names[:25])


def test_nothing_planted_is_no_evidence_and_says_what_could_have_been_seen() -> None:
    result = measured(sets(0, seed=4))
    assert result.decision == "no evidence"
    assert result.exposure.listed == 0
    assert result.exposure.least == 7, "100 / (0.05 · 301)"
    assert "exposure of 7 people or more" in result.verdict
    assert result.main.membership.share.low <= 0.25 <= result.main.membership.share.high
    assert result.exchangeable is not None
    assert result.exchangeable.holds


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    given = sets(20)
    done = release(given.synthetic, given.training, given.holdout, plan=QUICK)
    path = done.result.save(tmp_path, exposed=done.exposed)
    assert ReleaseResult.load(path) == done.result
    assert (tmp_path / "exposed.csv").stat().st_mode & 0o777 == 0o600
    assert "person,view,p,score,pictures,synthetic" in (tmp_path / "exposed.csv").read_text().splitlines()
    none = release(*(getattr(sets(0), side) for side in ("synthetic", "training", "holdout")), plan=QUICK)
    none.result.save(tmp_path, exposed=none.exposed)
    assert not (tmp_path / "exposed.csv").exists(), "a list of an earlier run would name people who are not exposed"


def test_own_identity_is_left_out_and_retrieval_risk_is_measured_instead() -> None:
    given = sets(0)
    # Every face is made of one training picture and says so.
    sources = given.training.take(np.arange(0, len(given.training), 3))
    vectors = sources.vectors + 0.1 * stream(0, "own").standard_normal(sources.vectors.shape).astype(np.float32)
    names = [sources.names[code] for code in sources.identities]
    made = EmbeddingSet.from_arrays(
        vectors, names, ids=[f"s-{n}" for n in range(len(names))], labels={"copy_of": sources.ids}
    )
    result = measured(replace(given, synthetic=made), named=True)
    assert result.exposure.listed == 0, "the person a row names is not compared with it"
    risks = {(one.pictures, one.k, one.identities): one for one in result.retrieval}
    assert risks["same", 1, 100].share.value == 1.0
    assert risks["other", 1, 100].share.value > 0.5
    assert risks["other", 1, 100].chance == pytest.approx(0, abs=0.02)
    assert risks["same", 2, 10].chance == pytest.approx(2 / 10)
    hidden = measured(replace(given, synthetic=made))
    assert hidden.exposure.listed == 100, "rows that name nobody expose everybody"
    assert hidden.retrieval == []


def test_streams_find_what_memory_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.release.faces._PIECE", {"cpu": 64})
    given = sets(10)
    paths = {}
    for name in ("synthetic", "training", "holdout"):
        paths[name] = tmp_path / f"{name}.parquet"
        write_embeddings(getattr(given, name), paths[name])
    columns = {name: Columns(identity=None if name == "synthetic" else "identity") for name in paths}
    streamed = View("face", **{name: parquet_faces(path, columns[name]) for name, path in paths.items()})
    one, two = measured(given), measure_release([streamed], QUICK).result
    assert (one.views, one.exchangeable) == (two.views, two.exchangeable)
    assert [one.training.sha256, one.holdout.sha256] == [two.training.sha256, two.holdout.sha256]


def faiss_index(folder: Path, vectors: np.ndarray) -> str:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "s.faiss"))
    return f"faiss:{folder / 's.faiss'}"


def npy_file(folder: Path, vectors: np.ndarray) -> str:
    np.save(folder / "s.npy", vectors)
    return f"npy:{folder / 's.npy'}"


def lance_table(folder: Path, vectors: np.ndarray) -> str:
    lancedb = pytest.importorskip("lancedb")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    lancedb.connect(folder / "lance").create_table("faces", pa.table({"vector": lists}))
    return f"lancedb:{folder / 'lance'}?table=faces"


def qdrant_folder(folder: Path, vectors: np.ndarray) -> str:
    client_module = pytest.importorskip("qdrant_client")
    client = client_module.QdrantClient(path=str(folder / "qdrant"))
    models = client_module.models
    client.create_collection("faces", models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE))
    points = [models.PointStruct(id=n, vector=row.tolist()) for n, row in enumerate(vectors)]
    client.upsert("faces", points)
    client.close()
    return f"qdrant:{folder / 'qdrant'}?collection=faces"


@pytest.mark.parametrize("make", [npy_file, faiss_index, lance_table, qdrant_folder])
def test_a_store_is_read_as_it_is(tmp_path: Path, make: Callable[[Path, np.ndarray], str]) -> None:
    given = sets(5)
    url = make(tmp_path, given.synthetic.unit().vectors)
    stored = store_faces(url, Columns(identity=None))
    training = faces_of(given.training)
    for one, other in zip(compare(stored, training), compare(faces_of(given.synthetic), training), strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_people_without_labels_are_clustered_and_that_is_said() -> None:
    given = sets(20)
    views = [
        View(
            "face",
            faces_of(given.synthetic, labelled=False),
            *(replace(faces_of(side), labelled=False) for side in (given.training, given.holdout)),
        )
    ]
    result = measure_release(views, QUICK).result
    assert result.training.clustered
    assert any("clustered" in finding.text and finding.severity == "warning" for finding in result.findings)
    assert result.training.people == 100
    assert result.exposure.listed >= 20


def test_traits_that_do_not_link_people_are_left_out_and_rows_without_a_trait_too() -> None:
    given = sets(20)

    def view(name: str, change: Callable[[Faces], Faces]) -> View:
        return View(
            name,
            *(
                change(faces_of(side, labelled=side is not given.synthetic))
                for side in (given.synthetic, given.training, given.holdout)
            ),
        )

    def noise(faces: Faces) -> Faces:
        vectors = stream(1, "noise", faces.source, len(faces)).standard_normal((len(faces), DIM)).astype(np.float32)
        held = faces_of(EmbeddingSet.from_arrays(vectors, [faces.names[code] for code in faces.people], ids=faces.ids))
        return replace(held, labelled=faces.labelled, source=faces.source)

    def fewer(faces: Faces) -> Faces:
        kept = EmbeddingSet.from_arrays(
            faces.take(np.arange(len(faces) - 5)),
            [faces.names[code] for code in faces.people[:-5]],
            ids=faces.ids[:-5],
            source=faces.source,
        )
        return faces_of(kept, labelled=faces.labelled)

    done = measure_release([view("face", lambda faces: faces), view("eyes", fewer), view("hat", noise)], QUICK)
    result = done.result
    assert [one.name for one in result.views] == ["face", "eyes"]
    assert any(text.startswith("hat: this encoder does not link real people") for text in result.not_measured)
    assert result.synthetic.rows == FACES - 5
    assert result.fused is not None
    assert result.fused.listed >= 14, "the last copies are rows that one trait lacks"


def test_one_copied_trait_changes_the_verdict() -> None:
    face = sets(0, seed=4)

    def told(*traits: Sets) -> ReleaseResult:
        views = [
            View(f"view{n}", faces_of(one.synthetic, labelled=False), faces_of(one.training), faces_of(one.holdout))
            for n, one in enumerate((face, *traits))
        ]
        return measure_release(views, QUICK).result

    assert told(sets(0, seed=5), sets(0, seed=6)).decision == "no evidence"
    # Six people are too few for any list (seven are needed), and the first view sees nothing of them.
    few = told(sets(6, seed=5), sets(0, seed=6))
    assert few.decision == "leaks"
    assert [one.name for one in few.enriched] == ["view1"]
    assert "by view1, " in few.verdict
    assert few.corrected["view1"] == pytest.approx(3 * few.views[1].enrichment.p)  # type: ignore[union-attr]
    # Eight are listed by that trait; all views together list fewer, and the first view nobody.
    many = told(sets(8, seed=5), sets(0, seed=6))
    assert many.decision == "exposes people"
    assert many.main.exposure.listed == 0
    assert many.exposure is many.views[1].exposure
    assert many.exposure.listed >= 8
    assert "of its 100 training people by view1 alone" in many.verdict


def test_a_holdout_from_another_camera_marks_the_result() -> None:
    given = sets(0)
    moved = given.holdout.vectors + 0.5 * stream(0, "camera").standard_normal(DIM).astype(np.float32)
    other = EmbeddingSet.from_arrays(moved, [given.holdout.names[code] for code in given.holdout.identities])
    result = measured(replace(given, holdout=other))
    assert result.decision == "not comparable"
    assert "cannot decide" in result.verdict
    assert any(finding.about == "holdout" and finding.severity == "warning" for finding in result.findings)


def first_rows(given: EmbeddingSet, rows: int, **more: object) -> EmbeddingSet:
    names = [given.names[code] for code in given.identities[:rows]]
    return EmbeddingSet.from_arrays(given.vectors[:rows], names, ids=given.ids[:rows], source=given.source, **more)  # type: ignore[arg-type]


def with_row(base: EmbeddingSet, vector: np.ndarray, row_id: str) -> EmbeddingSet:
    names = [base.names[code] for code in base.identities]
    return EmbeddingSet.from_arrays(
        np.concatenate([base.vectors, vector]), [*names, "someone"], ids=[*base.ids, row_id], source=base.source
    )


@pytest.mark.parametrize("fault", ["people", "pictures", "file", "space", "dim", "k", "named"])
def test_sets_that_cannot_be_compared_are_refused_in_one_line(fault: str) -> None:
    given, plan, named = sets(0), QUICK, False
    match fault:
        case "people":
            given = replace(given, holdout=first_rows(given.training, 30))
            text = "share 10 people, such as 'p0001'"
        case "pictures":
            given = replace(given, holdout=with_row(given.holdout, given.training.vectors[:1], "again"))
            text = "share 1 picture, such as 'p0001-0' and 'again'"
        case "file":
            given = replace(given, synthetic=with_row(given.synthetic, given.training.vectors[:1], "p0001-0"))
            text = "share the file 'p0001-0'"
        case "space":
            spaces = [Space(name, "00", DIM, False) for name in ("one", "two")]
            given = Sets(
                given.synthetic, replace(given.training, space=spaces[0]), replace(given.holdout, space=spaces[1])
            )
            text = "spaces"
        case "dim":
            cut = EmbeddingSet.from_arrays(given.synthetic.vectors[:, :-1], given.synthetic.ids, source="synthetic")
            given, text = replace(given, synthetic=cut), "spaces"
        case "k":
            plan, text = replace(QUICK, k=(FACES + 1,)), "300 faces"
        case _:
            made = EmbeddingSet.from_arrays(given.synthetic.vectors, [given.holdout.names[0], *["x"] * (FACES - 1)])
            given, named, text = replace(given, synthetic=made), True, "who is in the holdout"
    with refused("vectors" if fault in ("space", "dim") else "release", ..., text):
        release(given.synthetic, given.training, given.holdout, named=named, plan=plan)


def test_an_exact_copy_of_one_training_picture_is_evidence_by_itself() -> None:
    # One person is far too few for the list (7 are needed with this holdout) and for the tests over the whole set.
    given = sets(0)
    assert measured(given).decision == "no evidence"
    given = replace(given, synthetic=with_row(given.synthetic, given.training.vectors[:1], "drawn.png"))
    found = release(given.synthetic, given.training, given.holdout, plan=QUICK)
    assert found.result.exact == ExactCopies(faces=1, people=1, holdout=0)
    assert found.result.decision == "leaks"
    assert "1 synthetic face is an exact copy of a picture of 1 training person" in found.result.verdict
    assert found.exposed.rows[0][:2] == ("p0001", "exact copy")
    assert found.exposed.rows[0][-1] == "drawn.png"
    assert found.result.main.riskiest[0].id == "drawn.png"


def test_exact_vectors_that_the_holdout_shares_as_often_are_no_evidence() -> None:
    given = sets(0)
    drawn = with_row(with_row(given.synthetic, given.training.vectors[:1], "a.png"), given.holdout.vectors[:1], "b.png")
    result = measured(replace(given, synthetic=drawn))
    assert result.exact == ExactCopies(faces=1, people=1, holdout=1)
    assert result.decision == "no evidence"
    assert sum("exactly the vector" in finding.text for finding in result.findings) == 2


def test_a_holdout_that_can_list_nobody_is_said_in_the_verdict() -> None:
    large, small = (measured(sets(0, people=10, holdout=number)) for number in (19, 18))
    assert "too small to list anybody: it has 18 people, and at least 19 are needed" in small.verdict
    assert "exposure of 10 people or more" in large.verdict


def test_false_accept_rates_that_cannot_be_resolved_are_named() -> None:
    given = sets(0, people=10, holdout=19)
    plan = replace(QUICK, far=(1e-2, 1e-6))
    result = release(given.synthetic, given.training, given.holdout, plan=plan).result
    assert [one.far for one in result.main.copies] == [1e-2]
    assert any(text.startswith("copies at FAR 1e-6: too few pairs") for text in result.not_measured)


def test_a_stream_refuses_bad_vectors_by_row(tmp_path: Path) -> None:
    vectors = np.ones((5, 4), np.float32)
    vectors[3, 1] = np.nan
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
    pq.write_table(pa.table({"vector": lists}), tmp_path / "bad.parquet")
    faces = parquet_faces(tmp_path / "bad.parquet", Columns(identity=None))
    with refused("release", "bad.parquet", "row 3"):
        faces.sha256()
