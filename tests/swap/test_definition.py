"""If these fail, classifier, move or threshold of an attribute swap are not the ones that its docstrings state."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.swap.labelled import NUISANCE, People, people, unit
from unface.metrics import Resolution, tar_at_far
from unface.seeds import stream
from unface.swap import SwapResult, fit_classifier, fit_move, swap_inference
from unface.swap.attack import Labelled


def labelled(of: People, role: int) -> Labelled:
    rows, identities = of.roles[role]
    return Labelled(of.vectors[rows], identities - identities.min(), of.labels[rows])


def principal(centred: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    return values**2, axes.T


def test_the_classifier_is_scikit_learns_with_even_priors() -> None:
    made = people(gap=0.3, noise=0.3)
    train, calibrate, test = (labelled(made, role) for role in range(3))
    found = fit_classifier(train, calibrate)
    # Of equally many images of each label, or its pooling by class weighs them otherwise.
    assert np.bincount(train.labels).tolist() == [180, 180]
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=found.shrinkage, priors=[0.5, 0.5])
    peer.fit(train.vectors.astype(np.float64), train.labels)
    assert found.predict(test.vectors).tolist() == peer.predict(test.vectors).tolist()
    cosine = found.normal @ peer.coef_[0] / np.linalg.norm(found.normal) / np.linalg.norm(peer.coef_[0])
    assert cosine == pytest.approx(1, abs=1e-9)


def test_the_shrinkage_is_the_one_that_reads_calibrate_best() -> None:
    """Labels in one strong direction beside many that tell nothing, few people: little shrinkage fits the noise."""
    rng = stream(0, "shrinkage")
    sets = []
    for _ in range(2):
        codes = np.arange(60)
        labels = codes % 2
        raw = rng.standard_normal((60, 55))
        raw[:, 0] += 3 * (2 * labels - 1)
        sets.append(Labelled(unit(raw), codes, labels))
    assert fit_classifier(sets[0], sets[1]).shrinkage > 0.05
    assert fit_classifier(sets[0], sets[0]).shrinkage == 0.05


def test_the_move_is_the_mean_difference_along_the_axes_that_covary_most() -> None:
    made = people(gap=0.3, noise=0.3)
    train = labelled(made, 0)
    exact = train.vectors.astype(np.float64)
    means = np.array([exact[train.identities == code].mean(axis=0) for code in range(train.count)])
    energy, axes = principal(exact - means[train.identities])
    left_out = int(np.count_nonzero(np.cumsum(energy) < 0.9 * energy.sum())) + 1
    free = axes[:, left_out:]
    candidates = free @ principal((exact - exact.mean(axis=0)) @ free)[1]
    covariance = [np.cov(exact @ axis, train.labels)[0, 1] for axis in candidates.T]
    kept = candidates[:, np.argsort(-np.abs(covariance))[:5]]
    gap = exact[train.labels == 1].mean(axis=0) - exact[train.labels == 0].mean(axis=0)

    found = fit_move(train, directions=5, within=0.9, step=0.7)
    assert found.left_out == left_out
    assert found.shift == pytest.approx(0.7 * kept @ (kept.T @ gap), abs=1e-9)
    assert np.abs(np.abs(np.diag(kept.T @ found.directions)) - 1).max() < 1e-6
    assert np.abs(axes[:, :left_out].T @ found.shift).max() < 1e-9


def test_a_move_to_one_label_is_opposite_to_the_other_and_keeps_length_one() -> None:
    made = people()
    move = fit_move(labelled(made, 0), 16, 0.9, 1.0)
    vectors = made.vectors[:4]
    there, back = (move.apply(vectors, np.full(4, target)) for target in (1, 0))
    for moved, sign in ((there, 1), (back, -1)):
        assert np.linalg.norm(moved, axis=1) == pytest.approx(np.ones(4), abs=1e-12)
        plain = vectors + sign * move.shift
        assert moved == pytest.approx(plain / np.linalg.norm(plain, axis=1, keepdims=True), abs=1e-7)
    assert there[0, NUISANCE] > vectors[0, NUISANCE] > back[0, NUISANCE]


def test_counts_are_those_of_every_victim_taken_by_itself() -> None:
    made = people(gap=0.8, noise=1.2, nuisance=0.2)
    found = swap_inference(made.vectors, *made.roles, made.labels, directions=16)
    train, calibrate, test = (labelled(made, role) for role in range(3))
    classifier, move = fit_classifier(train, calibrate), fit_move(train, 16, 0.9, 1.0)
    cosines = calibrate.vectors.astype(np.float64) @ calibrate.vectors.T.astype(np.float64)
    i, j = np.triu_indices(len(cosines), 1)
    impostor = calibrate.identities[i] != calibrate.identities[j]
    at = tar_at_far([0.0], cosines[i, j][impostor].astype(np.float32), 1e-3)
    assert found.threshold == pytest.approx(at.threshold, abs=1e-6)
    assert (found.false_accepts, found.impostors) == (at.false_accepts, at.impostors)
    accept = flip = joint = 0
    for vector, label in zip(test.vectors, test.labels, strict=True):
        moved = move.apply(vector[None], np.array([1 - label]))
        passes = float(vector @ moved[0]) >= found.threshold
        shows = classifier.predict(moved)[0] == 1 - label
        accept, flip, joint = accept + passes, flip + shows, joint + (passes and shows)
    assert (found.both.accept.numerator, found.both.flip.numerator, found.both.joint.numerator) == (accept, flip, joint)
    assert 0 < joint < min(accept, flip) < len(test.labels)


def test_unlabelled_rows_only_help_to_set_the_threshold() -> None:
    made = people(gap=0.3, noise=0.3)
    hidden = made.identities % 5 == 0
    labels = np.where(hidden, -1, made.labels)
    found = swap_inference(made.vectors, *made.roles, labels, directions=16)
    train, calibrate, test = ((rows[~hidden[rows]], codes[~hidden[rows]]) for rows, codes in made.roles)
    without = swap_inference(made.vectors, train, made.roles[1], test, labels, directions=16)
    less = swap_inference(made.vectors, train, calibrate, test, labels, directions=16)
    assert found.both.joint == without.both.joint
    assert found.threshold == without.threshold != less.threshold
    assert found.both.read.denominator == int(np.count_nonzero(~hidden[made.roles[2][0]]))


def test_erased_directions_are_not_moved_along() -> None:
    made = people()
    erased = made.vectors.copy()
    erased[:, NUISANCE + 3 :] = 0
    found = swap_inference(unit(erased), *made.roles, made.labels, far=1e-2)
    assert found.directions + found.left_out == NUISANCE + 3
    assert found.directions < 128


def test_intervals_are_over_people_and_not_pictures() -> None:
    """Five times as many pictures of as many people say hardly more."""
    few, many = (people(150, images, gap=0.8, noise=0.4, nuisance=0.2) for images in (3, 15))
    found = [swap_inference(made.vectors, *made.roles, made.labels, directions=16) for made in (few, many)]
    widths = [one.both.accept.high - one.both.accept.low for one in found]
    assert 0.1 < found[0].both.accept.value < 0.9
    assert widths[1] > 0.6 * widths[0]


def test_a_threshold_from_few_people_makes_what_it_accepts_unsure_too() -> None:
    made = people(360, 4, gap=0.8, noise=0.4, nuisance=0.2)
    train, (rows, codes), test = made.roles
    few = np.isin(codes, np.unique(codes)[:30])
    found = swap_inference(made.vectors, train, (rows[few], codes[few]), test, made.labels, far=1e-2, directions=16)
    most = np.sqrt(0.25 / found.both.accept.identities)  # that test people alone could make any share vary
    deviation = {name: np.sqrt(replicates.variance()) for name, replicates in found.both.replicates.items()}
    for name, share in {"accept": found.both.accept, "joint": found.both.joint}.items():
        assert 0 < share.value < 1
        assert deviation[name] > 2 * most
    assert deviation["flip"] < most


def test_the_same_people_and_seed_give_the_same_replicates_so_that_differences_are_paired() -> None:
    made = people(60, 6, gap=0.3, noise=0.3)
    replicates = [
        swap_inference(made.vectors, *made.roles, made.labels, step=step, seed=seed, far=1e-2).both.replicates["read"]
        for step, seed in ((1.0, 0), (0.5, 0), (1.0, 1))
    ]
    assert np.array_equal(replicates[0].values, replicates[1].values)
    assert not np.array_equal(replicates[0].values, replicates[2].values)


def test_victims_are_counted_under_the_label_they_are_moved_to() -> None:
    made = people()
    rows, codes = made.roles[2]
    kept = (made.labels[rows] == 0) | (codes % 3 == 0)
    found = swap_inference(made.vectors, *made.roles[:2], (rows[kept], codes[kept]), made.labels, directions=16)
    ones = int(made.labels[rows[kept]].sum())
    assert (found.to_zero.read.denominator, found.to_one.read.denominator) == (ones, int(kept.sum()) - ones)
    assert found.to_zero.read.identities == len(np.unique(codes[kept & (made.labels[rows] == 1)]))
    assert found.chance == 1 - ones / int(kept.sum()) > 0.6


def test_the_order_of_rows_changes_nothing() -> None:
    made = people(gap=0.8, noise=1.2, nuisance=0.2)
    order = stream(0, "order").permutation(len(made.labels))
    mixed = replace(made, vectors=made.vectors[order], identities=made.identities[order], labels=made.labels[order])
    found, again = (swap_inference(one.vectors, *one.roles, one.labels, directions=16) for one in (made, mixed))
    assert 0 < found.both.joint.numerator == again.both.joint.numerator
    assert found.both.joint == again.both.joint


def test_few_people_are_coarse_however_many_pictures_they_have() -> None:
    few, many = people(24, 40), people()
    found = [swap_inference(made.vectors, *made.roles, made.labels, far=1e-2).resolution for made in (few, many)]
    assert found == [Resolution.COARSE, Resolution.RESOLVED]


def swapped(of: People, *, directions: int = 16, step: float = 1.0, within: float = 0.9) -> SwapResult:
    return swap_inference(of.vectors, *of.roles, of.labels, directions=directions, step=step, within=within)


def test_an_attribute_beside_identity_is_swapped_and_the_person_still_passes() -> None:
    found = swapped(people())
    assert found.trusted
    assert found.both.read.value == 1
    for swap in (found.both, found.to_zero, found.to_one):
        assert min(swap.accept.value, swap.flip.value, swap.joint.value) > 0.99


def test_an_attribute_that_makes_up_the_vector_is_swapped_only_into_somebody_else() -> None:
    found = swapped(people(gap=3.0))
    assert found.both.flip.value > 0.99
    assert found.both.accept.value < 0.01
    assert found.both.joint.numerator == 0
    assert found.both.joint.high > 0.01


def test_an_attribute_of_the_picture_and_not_of_the_person_is_read_but_not_swapped() -> None:
    """It varies within identities, and those directions are left alone; unless told to use them."""
    made = people()
    made = replace(made, labels=(made.vectors[:, 0] > 0).astype(np.int64))
    found = swapped(made)
    assert found.both.read.value > 0.85
    assert found.both.flip.value < 1 - found.both.read.value + 0.06
    assert found.left_out >= NUISANCE
    free = swapped(made, within=0.0, directions=48)
    assert free.left_out == 0
    assert free.both.flip.value > 0.85


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_random_label_is_read_at_chance_and_its_swap_is_not_to_be_trusted(share: float) -> None:
    made = people(seed=3)
    random = (stream(3, "labels").random(len(made.labels)) < share).astype(np.int64)
    found = swapped(replace(made, labels=random))
    zero, one, both = (swap.read.denominator for swap in (found.to_zero, found.to_one, found.both))
    assert found.chance == max(zero, one) / both
