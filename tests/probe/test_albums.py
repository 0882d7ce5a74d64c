"""If these fail, albums share pictures, templates are not the mean of what a probe sees, or m = 1 is no photo pair."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg, stats

from tests.probe.small import consecutive, cosines, gaussian_support, people, roles_of, score_matrix
from tests.probe.test_plda import log_ratio
from unface.metrics import Resolution
from unface.moments import class_moments
from unface.probe import PROBES, Plan, RoleRows
from unface.probe.album_trial import resolved_at, run_albums
from unface.probe.albums import AlbumSize, album_pairs, album_sizes, deal, see
from unface.seeds import stream

PANEL = ("cosine", "ridge", "lda", "plda")


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (20, [(1, 1), (2, 2), (4, 4), (8, 8), (10, 10)]),
        (5, [(1, 1), (2, 2), (2, 3)]),
        (2, [(1, 1)]),
        (3, [(1, 1), (1, 2)]),
    ],
)
def test_usual_sizes_double_up_to_half_of_the_pictures(images: int, expected: list[tuple[int, int]]) -> None:
    assert [(size.first, size.second) for size in album_sizes(None, images)] == expected


@pytest.mark.parametrize("size", [AlbumSize(1, 1), AlbumSize(2, 2), AlbumSize(3, 4)])
def test_albums_of_a_deal_are_disjoint_and_of_one_person(size: AlbumSize) -> None:
    role = consecutive(7, 7, 7)
    dealt = deal(role, size, 3, "test")
    assert len(np.unique(np.concatenate([side.ravel() for side in dealt.sides]))) == sum(s.size for s in dealt.sides)
    for side in dealt.sides:
        assert (role.identities[side] == dealt.identities[:, None]).all()
    assert len(dealt.sides[0]) == 3 * (7 // size.first if size.equal else 1)
    other = deal(role, size, 4, "test")
    assert not np.array_equal(dealt.sides[0], other.sides[0])


@pytest.mark.parametrize("name", PANEL)
def test_one_picture_a_side_scores_as_the_pair_protocol_does(name: str) -> None:
    support = gaussian_support(12, 4, 6, between=0.8)
    scorer, setting = PROBES[name].fit(support), PROBES[name].settings[0]
    role, vectors = consecutive(3, 3, 3, 3), stream(5, "pictures").normal(size=(12, 6)).astype(np.float32)
    seen = see(scorer, setting, vectors)
    assert seen is not None
    dealt = deal(role, AlbumSize(1, 1), 0, "test")
    pictures = dealt.sides[0][:, 0]
    expected = score_matrix(scorer.space(setting, vectors))[np.ix_(pictures, pictures)]
    assert score_matrix(seen.space(dealt)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["cosine", "ridge", "lda"])
def test_a_template_is_the_mean_of_unit_vectors_normalised_again(name: str) -> None:
    """And a picture of which the probe makes nothing adds nothing."""
    support = gaussian_support(12, 4, 6, between=0.8)
    scorer, setting = PROBES[name].fit(support), PROBES[name].settings[0]
    vectors = stream(6, "pictures").normal(size=(10, 6)).astype(np.float32)
    if name == "cosine":
        vectors[3] = 0
    unit = scorer.embed(setting, vectors).astype(np.float64)  # type: ignore[attr-defined]  # ours all have it
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    dealt = deal(consecutive(5, 5), AlbumSize(2, 3), 0, "test")
    means = [unit[side].mean(axis=1) for side in dealt.sides]
    first, second = (mean / np.linalg.norm(mean, axis=1, keepdims=True) for mean in means)
    seen = see(scorer, setting, vectors)
    assert seen is not None
    pairs = album_pairs(seen, dealt)
    assert pairs.mated.scores == pytest.approx(np.sum(first * second, axis=1), abs=1e-6)
    assert pairs.impostors == 2
    across = [score_matrix(pairing.space)[0, 1] for pairing in pairs.pairings]
    assert across == pytest.approx([first[0] @ second[1], second[0] @ first[1]], abs=1e-6)


@pytest.mark.parametrize("size", [AlbumSize(2, 2), AlbumSize(2, 3)], ids=["2 against 2", "2 against 3"])
def test_plda_scores_albums_by_the_likelihood_of_all_their_pictures(size: AlbumSize) -> None:
    """The joint density of a + b pictures of one person against a pictures of one and b of another, by brute force."""
    support = gaussian_support(14, 4, 3, between=0.9)
    plda, shrinkage = PROBES["plda"], 0.2
    moments = class_moments(support.vectors, support.identities)
    within = moments.within_covariance()
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / 3 * np.eye(3)
    values, axes = linalg.eigh(np.cov(moments.means.T), within)
    back = np.linalg.inv(axes)
    between = back.T @ np.diag(np.maximum(values - 1 / 4, 0)) @ back
    centred = stream(8, "albums").normal(size=(15, 3))
    role = consecutive(5, 5, 5)
    dealt = deal(role, size, 1, "test")
    seen = see(plda.fit(support), {"shrinkage": shrinkage}, (centred + moments.means.mean(axis=0)).astype(np.float32))
    assert seen is not None
    pairs = album_pairs(seen, dealt)
    sides = dealt.sides if len(dealt.sides) == 2 else (dealt.sides[0][0::2], dealt.sides[0][1::2])

    def joint(pictures: NDArray[np.float64]) -> float:
        count = len(pictures)
        covariance = np.kron(np.eye(count), within) + np.kron(np.ones((count, count)), between)
        return float(stats.multivariate_normal(np.zeros(3 * count), covariance).logpdf(pictures.ravel()))

    expected = [
        joint(np.vstack([centred[a], centred[b]])) - joint(centred[a]) - joint(centred[b])
        for a, b in zip(*sides, strict=True)
    ]
    gap = pairs.mated.scores - np.array(expected)
    assert np.ptp(gap) < 1e-4 * np.abs(expected).max()
    assert log_ratio(centred[0], centred[1], within, between) != pytest.approx(expected[0])


def test_rates_are_resolved_by_the_albums_of_one_deal() -> None:
    """Calibrate has 40 people of 6 pictures: 780 pairs of people, 9 pairs of albums of 2 for each, 4 of 3."""
    role = consecutive(*[6] * 40)
    plan = Plan(fars=(1e-2, 1e-3, 1e-4), ks=(1,))
    assert resolved_at(AlbumSize(2, 2), role, plan).impostors == 780 * 9
    assert resolved_at(AlbumSize(3, 3), role, plan).impostors == 780 * 4
    found = resolved_at(AlbumSize(3, 3), role, plan).of
    assert list(found.values()) == [Resolution.RESOLVED, Resolution.COARSE, Resolution.REFUSED]


def test_trials_count_what_they_say() -> None:
    embeddings = people(60, 6, 8, between=1.0)
    roles = roles_of(embeddings)
    plan = Plan(fars=(1e-1,), ks=(6,), everything=6, seeds=3, threads=1)
    probes = [(PROBES[name], PROBES[name].settings[0]) for name in PANEL]
    trials = run_albums(embeddings.vectors, roles, probes, plan, [AlbumSize(2, 2), AlbumSize(3, 3)])
    assert set(trials) == {(name, size) for name in PANEL for size in (AlbumSize(2, 2), AlbumSize(3, 3))}
    test = roles.test.count
    for (_, size), trial in trials.items():
        albums = 6 // size.first
        assert sum(map(len, trial.mated)) == 3 * test * albums * (albums - 1) // 2
        assert trial.impostors == 3 * test * (test - 1) // 2 * albums**2
        assert trial.calibrate_impostors == 3 * roles.calibrate.count * (roles.calibrate.count - 1) // 2 * albums**2
    size, trial = AlbumSize(2, 2), trials["cosine", AlbumSize(2, 2)]
    accepted = 0
    for seed in range(3):
        dealt = deal(roles.test, size, seed, "test")
        means = embeddings.vectors[roles.test.rows][dealt.sides[0]].mean(axis=1)
        i, j = np.triu_indices(len(means), 1)
        strangers = dealt.identities[i] != dealt.identities[j]
        accepted += int(np.count_nonzero(cosines(means)[i, j][strangers] >= trial.thresholds[1e-1]))
    assert trial.false_accepts[1e-1] == accepted
    rates = {size: np.mean([trials[name, size].calibrate_tar[1e-1] for name in PANEL]) for _, size in trials}
    assert rates[AlbumSize(3, 3)] > rates[AlbumSize(2, 2)]


def test_albums_of_one_size_are_all_compared_and_of_two_sizes_only_the_two_pairs_that_share_no_picture() -> None:
    assert [AlbumSize(2, 2).pairs(role_of(images, images)) for images in (4, 5, 7)] == [4, 4, 9]
    assert AlbumSize(2, 3).pairs(role_of(5, 5)) == 2


def test_albums_are_of_the_people_who_have_enough_pictures() -> None:
    """3, 4, 7 and 8 pictures: nobody with 3 has two albums of 2; the others have 2, 3 and 4 of them."""
    role = role_of(3, 4, 7, 8)
    assert AlbumSize(2, 2).able(role).tolist() == [1, 2, 3]
    assert AlbumSize(2, 2).pairs(role) == 2 * 3 + 2 * 4 + 3 * 4
    dealt = deal(role, AlbumSize(2, 2), 0, "test")
    assert np.bincount(dealt.identities).tolist() == [0, 2, 3, 4]
    assert len(np.unique(dealt.sides[0])) == 18
    assert np.array_equal(role.identities[dealt.sides[0]], np.stack([dealt.identities] * 2, axis=1))
    half = deal(role, AlbumSize(3, 4), 0, "test")
    assert half.identities.tolist() == [2, 3]
    for side, size in zip(half.sides, (3, 4), strict=True):
        assert np.array_equal(role.identities[side], np.stack([half.identities] * size, axis=1))


def role_of(*images: int) -> RoleRows:
    """A role of people with so many pictures each."""
    return RoleRows(np.arange(sum(images)), np.repeat(np.arange(len(images)), images), len(images))
