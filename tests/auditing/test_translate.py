"""If these fail, an audit says that a recogniser's templates can, or cannot, be made of vectors, and is wrong."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.auditing.audits import PEOPLE, RANK, quick, refusal
from tests.kit import documents
from tests.kit.command import unface
from tests.kit.results import AuditResult
from unface.auditing import Translate
from unface.auditing.translate import TranslatedAt, TranslateResults, headline
from unface.data import EmbeddingSet
from unface.judge.template import learn_translation, stranger_thresholds
from unface.linear import PairSums
from unface.seeds import stream


def recogniser(dim: int = 24) -> EmbeddingSet:
    """Sees the directions that people differ in, rotated, and nothing else; so a linear map gives its vectors."""
    unit = PEOPLE.unit()
    between = unit.vectors - unit.vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(between, full_matrices=False)
    seen = between @ axes[:RANK].T @ stream(0, "recogniser").standard_normal((RANK, dim))
    return replace(
        EmbeddingSet.from_arrays(seen, np.array(PEOPLE.names)[PEOPLE.identities], ids=PEOPLE.ids), source="r"
    )


@cache
def audited() -> AuditResult:
    return quick(parts=(Translate(recogniser()),))


def found() -> TranslateResults:
    section = Translate.of(audited())
    assert section is not None
    return section


def at(space: str, far: float = 1e-2) -> TranslatedAt:
    (one,) = [space_ for space_ in found().spaces if space_.space == space]
    return next(point for point in one.at if point.far == far)


def test_vectors_that_hold_the_template_give_it_away_and_an_eraser_of_the_planted_rank_takes_it() -> None:
    raw, isp = at("raw"), at("isp")
    assert raw.same.value > 0.9
    assert raw.other is not None
    assert raw.other.value > 0.2
    assert isp.other is not None
    assert isp.other.low <= 2e-2
    assert isp.change is not None
    assert isp.change.high < 0
    assert isp.change.value == pytest.approx(isp.other.value - raw.other.value)
    assert raw.change is None


def test_strangers_are_accepted_at_about_the_stated_rate_in_every_space() -> None:
    for space in found().spaces:
        for point in space.at:
            assert point.chance.value < 5 * point.far


def test_controls_of_equal_rank_stand_beside_the_eraser() -> None:
    assert [(space.space, space.control) for space in found().spaces] == [
        ("raw", False),
        ("isp", False),
        ("random", True),
        ("pca", True),
    ]
    random = at("random")
    assert random.other is not None
    assert random.other.value > 0.1


def test_the_page_and_the_findings_say_it() -> None:
    assert '<section id="translate"' in documents.page(audited())
    assert "translate" in {one.about for one in audited().findings}
    assert headline(found().spaces[0]).far == 1e-3


def test_pictures_are_matched_by_id_and_those_without_a_face_are_left_out() -> None:
    some = recogniser().take(np.arange(len(PEOPLE)) % 6 != 0)
    turned = some.take(stream(0, "order").permutation(len(some)))
    section = Translate.of(quick(parts=(Translate(turned),)))
    assert section is not None
    assert section.train_pictures == 5 * found().train_pictures // 6


def test_sets_of_other_pictures_or_other_people_are_refused() -> None:
    other = recogniser()
    strange = replace(other, ids=np.array([f"x{row}" for row in range(len(other))], dtype=object))
    text = refusal(parts=(Translate(strange),))
    assert text == "r: no id of it is in synthetic; --translate needs vectors of the same pictures"
    swapped = replace(other, identities=other.identities[::-1].copy())
    assert "give vectors of the same pictures" in refusal(parts=(Translate(swapped),))


def test_a_linear_relation_is_found_exactly_from_streamed_sums() -> None:
    draw = stream(0, "pairs")
    x, w, b = draw.standard_normal((300, 8)), draw.standard_normal((8, 5)), draw.standard_normal(5)
    sums = PairSums(8, 5)
    for part in np.array_split(np.arange(300), 7):
        sums.add(x[part], x[part] @ w + b)
    learned = sums.fit().at(0)
    np.testing.assert_allclose(learned.weights, w, atol=1e-9)
    np.testing.assert_allclose(learned(x), x @ w + b, atol=1e-9)


def test_a_noisy_relation_is_regularised_more() -> None:
    draw = stream(0, "noisy pairs")
    x = draw.standard_normal((400, 60))
    w = draw.standard_normal((60, 20))
    quiet, loud = (x @ w + size * draw.standard_normal((400, 20)) for size in (0.01, 60.0))
    clean, noisy = (learn_translation((x[:80], y[:80]), (x[80:], y[80:])).strength for y in (quiet, loud))
    assert clean < noisy


def test_thresholds_of_templates_accept_the_stated_share_of_strangers() -> None:
    """Worked by hand: each of ten people has one picture, so that 90 comparisons are of strangers."""
    templates = stream(0, "templates").standard_normal((10, 3))
    pictures = stream(1, "templates").standard_normal((10, 3))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (templates, pictures)]
    scores = np.sort((unit[0] @ unit[1].T)[~np.eye(10, dtype=bool)].astype(np.float32))[::-1]
    (threshold,) = stranger_thresholds(templates, pictures, np.arange(10), [0.1])
    assert threshold.false_accepts == 9
    assert scores[9] < threshold.cosine <= scores[8]


def test_a_second_column_of_the_file_is_asked_for_by_its_name(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": PEOPLE.ids.tolist(),
            "identity": np.array(PEOPLE.names)[PEOPLE.identities].tolist(),
            "vector": PEOPLE.vectors.tolist(),
            "face": recogniser().vectors.tolist(),
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    cheap = ("--far", "0.01", "--probe", "cosine", "--seeds", 1, "--no-sweep", "--no-maps", "--bootstraps", 100)
    given = ("audit", tmp_path / "people.parquet", "--rank", RANK, *cheap, "--out", tmp_path / "out")
    done = unface(*given, "--translate", "face")
    assert done.code == 0
    section = Translate.of(AuditResult.load(tmp_path / "out" / "audit.json"))
    assert section is not None
    assert section.recogniser.name == "face"
    assert section.spaces[0].at[0].same.value == pytest.approx(at("raw").same.value, abs=0.05)
    done = unface(*given, "--force", "--translate", "fase")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "--translate fase: is no file, and no column of vectors: people.parquet" in done.err
