"""If these fail, a mislabelled picture goes unnoticed and sets the threshold, or good labels are doubted."""

import numpy as np
import pytest
from scipy import stats

from unface import Protocol, audit, make_identities
from unface.data import EmbeddingSet
from unface.probe import Stray, strays
from unface.probe.defects import _never_among_strangers, _usual
from unface.seeds import stream


def exchanged(seed: int, second: int = 200) -> EmbeddingSet:
    """Sixty people who are easily told apart, as by a face recogniser; pictures 3 and the second changed names."""
    made = make_identities(60, 8, 128, between=2.0, seed=seed)
    names = np.array([made.names[code] for code in made.identities], dtype=object)
    names[[3, second]] = names[[second, 3]]
    return EmbeddingSet.from_arrays(made.vectors, names, source="faces.parquet")


@pytest.mark.parametrize("seed", range(6))
def test_pictures_under_each_others_names_are_named_with_whose_they_seem(seed: int) -> None:
    assert strays(exchanged(seed)) == (Stray("3", "p0026", "p0001"), Stray("200", "p0001", "p0026"))


@pytest.mark.parametrize("between", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("tails", [None, 3.0])
@pytest.mark.parametrize(("identities", "images", "dim"), [(40, 6, 8), (100, 5, 64), (300, 4, 16)])
def test_good_labels_are_not_doubted(
    identities: int, images: int, dim: int, tails: float | None, between: float
) -> None:
    for seed in range(3):
        assert strays(make_identities(identities, images, dim, between=between, seed=seed, tails=tails)) == ()


def test_pictures_of_twins_are_at_home_with_either() -> None:
    made = make_identities(60, 8, 128, between=2.0, seed=0)
    vectors = made.vectors.copy()
    vectors[8:16] = vectors[:8] + 0.1 * make_identities(1 + 1, 4, 128, seed=9).vectors
    names = [made.names[code] for code in made.identities]
    assert strays(EmbeddingSet.from_arrays(vectors, names)) == ()


def test_identities_of_one_picture_are_nobodys_home() -> None:
    made = make_identities(30, 2, 16, between=1.5, seed=0)
    names = [f"p{row}" for row in range(len(made))]
    assert strays(EmbeddingSet.from_arrays(made.vectors, names)) == ()


def test_an_audit_warns_and_names_the_picture_beside_the_file() -> None:
    result = audit(exchanged(0), eraser=(), far=0.05, k=1, protocol=Protocol(probe="cosine", seeds=1, bootstraps=100))
    assert result.controls.stray_pictures == 2
    assert any("under the wrong name?" in finding.text for finding in result.findings)
    assert ("picture of another?", "3", "p0026", "", "p0001") in result.listings["suspects.csv"].rows


def test_four_in_five_reach_the_usual_value() -> None:
    """Of five values all reach the lowest, of six all but one, of eleven all but two; one value alone says nothing."""
    values = {0: [0.3], 1: [0.9, 0.2], 2: [5.0, 4, 3, 2, 1], 3: [6.0, 1, 5, 2, 4, 3], 4: [float(v) for v in range(11)]}
    codes = np.repeat(list(values), [len(of) for of in values.values()])
    order = stream(0, "usual").permutation(len(codes))
    found = _usual(np.concatenate([*values.values()])[order], codes[order], 5)
    assert found.tolist() == [np.inf, 0.2, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("heavy", [False, True])
def test_a_stranger_is_never_as_alike_as_a_gaussian_of_the_strangers_spread_allows(heavy: bool) -> None:
    """The spread is that of the middle half, or of the highest hundredth where that is wider."""
    rng = stream(0, "never")
    codes = np.repeat(np.arange(40), 5)
    pictures = rng.normal(size=(200, 6)) + 0.3
    means = rng.normal(size=(40, 6))
    if heavy:
        pictures *= rng.choice([1.0, 5.0], p=[0.9, 0.1], size=(200, 1))
    like = (pictures @ means.T)[codes[:, None] != np.arange(40)]
    centre = np.median(like)
    middle = stats.median_abs_deviation(like, scale="normal")
    upper = (np.quantile(like, 0.99) - centre) / stats.norm.ppf(0.99)
    assert upper > middle if heavy else upper < 1.6 * middle
    z = stats.norm.isf(1e-3 / (200 * 40))
    found = _never_among_strangers(pictures, codes, means)
    assert found == pytest.approx(centre + z * max(middle, upper), rel=1e-4)


def test_where_the_middle_is_wider_than_the_tail_it_sets_the_spread() -> None:
    """Half the likenesses are 3 and half are 1: their median is 2, from which all are 1 away, the highest too."""
    pictures, means = np.array([[3.0], [1.0]] * 30), np.ones((60, 1))
    z = stats.norm.isf(1e-3 / 3600)
    assert _never_among_strangers(pictures, np.arange(60), means) == pytest.approx(2 + 1.4826 * z, rel=1e-4)


@pytest.mark.parametrize("at_once", [64, 101])
def test_strays_do_not_depend_on_how_many_pictures_are_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    whole = strays(exchanged(1, 471))
    assert [(stray.id, stray.identity, stray.resembles) for stray in whole] == [
        ("3", "p0059", "p0001"),
        ("471", "p0001", "p0059"),
    ]
    monkeypatch.setattr("unface.probe.defects._PICTURES_AT_ONCE", at_once)
    assert strays(exchanged(1, 471)) == whole


def test_of_few_pictures_the_least_alike_may_be_a_stray() -> None:
    """With four pictures of each, what four in five reach is the stray's own resemblance."""
    made = make_identities(60, 4, 128, between=2.5, seed=0)
    names = np.array([made.names[code] for code in made.identities], dtype=object)
    names[[3, 200]] = names[[200, 3]]
    assert {(stray.id, stray.resembles) for stray in strays(EmbeddingSet.from_arrays(made.vectors, names))} == {
        ("3", "p0001"),
        ("200", "p0051"),
    }


def test_a_single_picture_under_a_name_of_its_own_may_be_a_stray() -> None:
    made = make_identities(60, 8, 128, between=2.0, seed=0)
    names = [made.names[code] for code in made.identities]
    names[3] = "zz"
    assert strays(EmbeddingSet.from_arrays(made.vectors, names)) == (Stray("3", "zz", "p0001"),)


def test_a_picture_half_like_another_identity_is_not_called_its_own() -> None:
    """It is like nobody at home and like no stranger, but the other's own two pictures are far more like each other."""
    made = make_identities(100, 2, 256, between=3.0, seed=0)
    vectors = made.unit().vectors.copy()
    noise = stream(0, "half").normal(size=256)
    vectors[0] = 0.6 * vectors[100] + 0.8 * noise / np.linalg.norm(noise)
    names = [made.names[code] for code in made.identities]
    assert strays(EmbeddingSet.from_arrays(vectors, names)) == ()


def test_a_picture_that_is_like_both_stays_where_it_is() -> None:
    """As like its own identity as no stranger is, and as like another's: two people in one picture."""
    made = make_identities(60, 8, 128, between=2.0, seed=0)
    vectors = made.unit().vectors.copy()
    vectors[0] = vectors[1:8].mean(axis=0) + 1.2 * vectors[80:88].mean(axis=0)
    names = [made.names[code] for code in made.identities]
    assert strays(EmbeddingSet.from_arrays(vectors, names)) == ()
