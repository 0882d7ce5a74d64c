"""If this fails, the score of paper 003 is another one than published, or its controls hide what it measures."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.mixture import BayesianGaussianMixture

from tests.refusals.table import refused
from unface import make_identities
from unface.release.paper import FUSION, PaperSet, best_gamma, nearest_mean, paper_score
from unface.seeds import stream

Vectors = NDArray[np.float32]


def test_the_mean_of_the_nearest_is_the_one_by_hand_and_leaves_the_picture_itself_out() -> None:
    line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    rows = np.arange(4)
    for p in (1.0, 2.0, 3.0):  # on a line all are the same
        np.testing.assert_allclose(nearest_mean(line, line, 2, p, excluded=(rows, rows)), [2, 1.5, 2.5, 5], rtol=1e-6)
        np.testing.assert_allclose(nearest_mean(line, line, 2, p), [0.5, 0.5, 1, 2], atol=1e-6)
    # own person left out: 0 and 1 are one person
    person = np.array([0, 0, 1, 2])
    np.testing.assert_allclose(nearest_mean(line, line, 2, excluded=(person, person)), [5, 4, 2.5, 5])


def test_distances_are_those_of_the_p_norm() -> None:
    square = np.array([[0, 0], [3, 4]], dtype=np.float32)
    found = [float(nearest_mean(square[:1], square[1:], 1, p)[0]) for p in (1.0, 2.0, 3.0)]
    assert found == pytest.approx([7, 5, (27 + 64) ** (1 / 3)])


def test_fewer_neighbours_than_k_are_refused() -> None:
    line = np.arange(4, dtype=np.float32)[:, None]
    person = np.array([0, 0, 0, 1])
    with refused("release", None, "has 1", "2"):
        nearest_mean(line, line, 2, excluded=(person, person))
    with refused("release", "face", "3", "than 3"):
        paper_score({"face": PaperSet(line[:3], line, line)}, np.arange(3), np.arange(4))


def test_gamma_parts_members_from_synthetic_faces() -> None:
    members, synthetic = np.array([-1.0, 0, 1, 2]), np.array([-9.0, -8, -7, -6])
    gamma = best_gamma(members, synthetic)
    # of 50 values from −9 to 2 the first at or above −6
    assert gamma == pytest.approx(-9 + 14 * 11 / 49)
    assert best_gamma(synthetic, members) in (-9.0, 2.0)  # nothing better than one class


PEOPLE, IMAGES, SYNTHETIC = 120, 5, 300


def sets(planted: int = 0, *, exact: bool = True) -> tuple[PaperSet, NDArray[np.int64], NDArray[np.int64]]:
    """Training and holdout people, and synthetic faces, which are other people.

    ``planted`` of the synthetic faces show a training person: the very picture, or one that was not trained on.
    """
    made = make_identities(2 * PEOPLE + SYNTHETIC, IMAGES + 1, 64, rank=16, within=0.25, seed=5).unit()
    pictures = made.vectors.reshape(2 * PEOPLE + SYNTHETIC, IMAGES + 1, -1)
    assert (made.identities.reshape(-1, IMAGES + 1) == made.identities[:: IMAGES + 1, None]).all()
    synthetic = pictures[2 * PEOPLE :, 0].copy()
    synthetic[:planted] = pictures[:planted, 0 if exact else IMAGES]
    training, holdout = (
        some[:, :IMAGES].reshape(-1, 64) for some in (pictures[:PEOPLE], pictures[PEOPLE : 2 * PEOPLE])
    )
    people = np.repeat(np.arange(PEOPLE), IMAGES)
    return PaperSet(training, synthetic, holdout), people, people


def test_the_score_is_scikit_learns_density_of_the_distances() -> None:
    given, people, fresh = sets()
    (face,) = paper_score({"face": given}, people, fresh)
    rows = np.arange(len(given.training))
    distance = nearest_mean(given.training, given.training, 3, excluded=(rows, rows))
    fits = [BayesianGaussianMixture(n_components=n, max_iter=500).fit(distance[:, None]) for n in (1, 2)]
    bounds = [fit.lower_bound_ for fit in fits]
    assert face.components == 1 + int(np.argmax(bounds))


def test_fresh_people_get_the_score_of_members_because_they_have_siblings() -> None:
    """Nothing was trained on anybody here, and yet the paper's mAP is near one: it sees siblings, not membership."""
    given, people, fresh = sets()
    (face,) = paper_score({"face": given}, people, fresh)
    assert face.average_precision > 0.95
    assert face.fresh > 0.95
    assert face.fresh_auc == pytest.approx(0.5, abs=0.06)
    # without their siblings members look like anybody: 200 of 300 are positive
    assert face.person_left_out < 0.8


def test_new_pictures_of_members_are_flagged_but_exact_copies_pass_for_private() -> None:
    """A copy is nearer than any sibling; its density is low, and the score calls it private. A third is planted."""
    people = sets()[1]
    clean, new, exact = (
        paper_score({"face": sets(planted, exact=copy)[0]}, people, people)[0].flagged
        for planted, copy in ((0, True), (100, False), (100, True))
    )
    assert clean < 0.1
    assert new == pytest.approx(1 / 3, abs=0.12)
    assert exact < 0.2


def test_traits_are_fused_by_concatenation() -> None:
    first, people, fresh = sets()
    noise = stream(0, "noise").normal(size=first.training.shape).astype(np.float32)
    weak = PaperSet(first.training + noise / np.float32(8), first.synthetic, first.holdout)
    scores = paper_score({"face": first, "eyes": weak}, people, fresh)
    assert [one.trait for one in scores] == ["face", "eyes", FUSION]
    assert scores[2].average_precision >= max(one.average_precision for one in scores[:2]) - 0.05
    assert paper_score({"face": first}, people, fresh) == paper_score({"face": first}, people, fresh)
