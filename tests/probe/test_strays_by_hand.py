"""If these fail, what counts as usual for an identity, or as impossible for a stranger, is another number."""

import numpy as np
import pytest
from scipy import stats

from unface.data import EmbeddingSet, make_identities
from unface.probe import Stray, strays
from unface.probe.defects import _never_among_strangers, _usual
from unface.seeds import stream


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


def exchanged() -> EmbeddingSet:
    made = make_identities(60, 8, 128, between=2.0, seed=1)
    names = np.array([made.names[code] for code in made.identities], dtype=object)
    names[[3, 471]] = names[[471, 3]]
    return EmbeddingSet.from_arrays(made.vectors, names)


@pytest.mark.parametrize("at_once", [64, 101])
def test_strays_do_not_depend_on_how_many_pictures_are_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    whole = strays(exchanged())
    assert [(stray.id, stray.identity, stray.resembles) for stray in whole] == [
        ("3", "p0059", "p0001"),
        ("471", "p0001", "p0059"),
    ]
    monkeypatch.setattr("unface.probe.defects._PICTURES_AT_ONCE", at_once)
    assert strays(exchanged()) == whole


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
