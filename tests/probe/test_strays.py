"""If these fail, a mislabelled picture goes unnoticed and sets the threshold, or good labels are doubted."""

import numpy as np
import pytest

from unface import Protocol, audit, make_identities
from unface.data import EmbeddingSet
from unface.probe import Stray, strays


def exchanged(seed: int) -> EmbeddingSet:
    """Sixty people who are easily told apart, as by a face recogniser; pictures 3 and 200 changed names."""
    made = make_identities(60, 8, 128, between=2.0, seed=seed)
    names = np.array([made.names[code] for code in made.identities], dtype=object)
    names[[3, 200]] = names[[200, 3]]
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
