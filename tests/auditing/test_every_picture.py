"""If these fail, pictures that were given are left out: the attacker learns from fewer, or people are not counted."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from unface import EmbeddingSet, audit, make_identities
from unface.auditing import Albums, Exposures, Protocol, Search
from unface.auditing.protocol import prepare
from unface.data import Role
from unface.result.audit import AuditResult
from unface.result.readings import EXPOSED_FILE

QUICK = Protocol(probe=("cosine", "lda"), seeds=1, bootstraps=200, threads=1)


def with_sizes(sizes: NDArray[np.int64], dim: int = 8) -> EmbeddingSet:
    """Gaussian people with so many pictures each."""
    made = make_identities(len(sizes), int(sizes.max()), dim, between=1.2, seed=1)
    place = np.tile(np.arange(int(sizes.max())), len(sizes))
    return made.take(place < sizes[made.identities])


def sizes_in(role: Role, given: EmbeddingSet, protocol: Protocol) -> list[tuple[int, int]]:
    """(pictures given, pictures used) of the people of a role."""
    prepared = prepare(given, protocol)
    used = prepared.embeddings
    names = [name for name in used.names if prepared.split.role_of(name) is role]
    before, after = (dict(zip(one.names, np.bincount(one.identities).tolist(), strict=True)) for one in (given, used))
    return [(before[name], after[name]) for name in names]


def test_fit_and_train_take_every_picture_and_calibrate_and_test_at_most_the_cap() -> None:
    """2 to 41 pictures of 80 people; the lower median is 21, and the cap 20. One person more has a single picture."""
    given = with_sizes(np.array([*np.repeat(np.arange(2, 42), 2), 1]))
    for protocol, cap in ((QUICK, 20), (Protocol(images=7, probe="cosine"), 7)):
        people = 0
        for role, most in ((Role.FIT, 200), (Role.TRAIN, 200), (Role.CALIBRATE, cap), (Role.TEST, cap)):
            found = sizes_in(role, given, protocol)
            assert [used for _, used in found] == [min(there, most) for there, _ in found]
            people += len(found)
        assert people == 80


def test_nobody_brings_more_than_two_hundred_pictures_to_learn_from() -> None:
    given = with_sizes(np.array([230] * 12 + [3] * 30), dim=4)
    learned = [pair for role in (Role.FIT, Role.TRAIN) for pair in sizes_in(role, given, QUICK)]
    assert set(learned) == {(230, 200), (3, 3)}


def test_the_paper_variant_takes_exactly_as_many_of_everybody() -> None:
    given = with_sizes(np.repeat(np.arange(2, 42), 2))
    prepared = prepare(given, Protocol(variant="paper", k=1, images=9, probe="cosine"))
    assert set(np.bincount(prepared.embeddings.identities).tolist()) == {9}
    assert len(prepared.embeddings.names) == 2 * (42 - 9)


@cache
def uneven() -> tuple[EmbeddingSet, EmbeddingSet]:
    """Half of 320 people have 40 pictures, half 3; the same vectors whitened by the covariance that made them.

    Pictures of one person differ far more along some directions than along others. Who knows which divides by it:
    cosine of the whitened vectors is the best linear attack there is.
    """
    rng = np.random.default_rng(1)
    people, dim = 320, 64
    who = np.repeat(np.arange(people), np.where(np.arange(people) % 2, 40, 3))
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    spread = 0.25 * np.exp(np.linspace(-0.7, 0.7, dim))
    noise = rng.standard_normal((len(who), dim)) * spread @ basis.T
    vectors = 0.15 * rng.standard_normal((people, dim))[who] + noise
    names = [f"p{one:04d}" for one in who]
    return EmbeddingSet.from_arrays(vectors, names), EmbeddingSet.from_arrays(vectors @ basis / spread, names)


def test_an_attacker_who_learns_from_every_picture_comes_near_the_best_there_is() -> None:
    given, whitened = uneven()
    learned = audit(given, far=1e-2, k=(3, "all"), eraser="none", parts=(), protocol=QUICK)
    best = audit(whitened, far=1e-2, k="all", eraser="none", parts=(), protocol=QUICK).raw.points[0].tar
    few, every = (
        next(point.tar for point in learned.raw.points if (point.probe, point.k) == ("lda", k)) for k in (3, 40)
    )
    assert few is not None
    assert every is not None
    assert best is not None
    assert every.value > 0.85 * best.value
    assert few.value < 0.75 * best.value
    assert (learned.curated.images, learned.curated.most) == (3, 40)
    assert (learned.k_words(3), learned.k_words(40)) == ("3", "all (up to 40)")


def test_the_eraser_is_fitted_on_every_picture() -> None:
    given, _ = uneven()
    erasure = audit(given, far=1e-2, k=3, rank=4, parts=(), protocol=QUICK).spaces[1].erasure
    assert erasure is not None
    whole = sum(there for there, _ in sizes_in(Role.FIT, given, QUICK))
    assert erasure.fit_images == whole > 5 * 3 * (erasure.fit_identities or 0)


@cache
def told_apart() -> AuditResult:
    """People with two pictures are always linked, people with eight never: their pictures are of strangers."""
    rng = np.random.default_rng(2)
    names: list[str] = []
    rows: list[NDArray[np.float64]] = []
    for person in range(160):
        pictures = 2 if person % 2 else 8
        one = rng.standard_normal(128)
        same = [one + 0.01 * rng.standard_normal(128) for _ in range(2)]
        rows += same if pictures == 2 else list(rng.standard_normal((8, 128)))
        names += [f"p{person:03d}"] * pictures
    return audit(
        EmbeddingSet.from_arrays(np.array(rows), names),
        far=1e-2,
        k=1,
        eraser="none",
        parts=(Exposures(), Search(), Albums()),
        protocol=Protocol(probe="cosine", seeds=1, bootstraps=200, threads=1, images=8),
    )


def test_the_mean_over_people_stands_beside_the_share_of_pairs() -> None:
    """A pair is linked in 1 of about 29 of them, a person in about half."""
    (point,) = told_apart().raw.points
    rows = told_apart().listings[EXPOSED_FILE].rows
    pairs, accepted = (np.array([float(row[column]) for row in rows]) for column in (4, 5))
    assert point.tar is not None
    assert point.tar.value == accepted.sum() / pairs.sum() < 0.1
    assert point.tar_over_people == pytest.approx(float(np.mean(accepted / pairs)))
    assert 0.3 < (point.tar_over_people or 0) < 0.7
    assert point.differs_over_people
    assert "Averaged over people instead of pairs: " in told_apart().verdict


def test_where_everybody_has_as_many_pictures_both_are_the_same_and_nothing_is_said() -> None:
    result = audit(make_identities(120, 4, 8, between=1.2), far=1e-2, k=1, parts=(), protocol=QUICK)
    for space in result.spaces:
        for point in space.points:
            assert point.tar is not None
            assert point.tar_over_people == pytest.approx(point.tar.value)
    assert "Averaged" not in result.verdict


def test_albums_and_searches_are_of_whoever_has_enough() -> None:
    albums, search = Albums.of(told_apart()), Search.of(told_apart())
    assert albums is not None
    assert search is not None
    (four,) = (one for one in albums.points if (one.first, one.second) == (4, 4))
    eights = sum(row[4] == "28" for row in told_apart().listings[EXPOSED_FILE].rows)
    assert four.tar is not None
    assert (four.tar.identities, four.tar.denominator) == (eights, eights)
    full = search.searches[0].rates[-1]
    people = np.array([1.0 if row[4] == "1" else 7.0 for row in told_apart().listings[EXPOSED_FILE].rows])
    expected = float(np.average(people / full.gallery, weights=people + 1))
    assert full.chance_first == pytest.approx(expected)


def test_many_people_who_are_left_out_are_a_warning() -> None:
    for singles, severity in ((5, "note"), (20, "warning")):
        given = with_sizes(np.array([4] * 60 + [1] * singles))
        result = audit(given, far=0.05, k=1, eraser="none", parts=(), protocol=QUICK)
        (found,) = (one for one in result.findings if "have one picture" in one.text)
        assert (found.severity, found.text.split(" were ")[0]) == (
            severity,
            f"{singles} of {60 + singles} people ({'7.7' if singles == 5 else '25.0'} %)",
        )


def test_people_whom_bad_rows_leave_one_picture_are_said_to_be_left_out() -> None:
    given = with_sizes(np.array([4] * 60))
    vectors = given.vectors.copy()
    vectors[1:4] = np.nan
    names = [given.names[code] for code in given.identities]
    broken = EmbeddingSet.from_arrays(vectors, names, bad_rows="drop")
    result = audit(broken, far=0.05, k=1, eraser="none", parts=(), protocol=QUICK)
    said = "1 person has fewer than 2 pictures without their bad rows; they were not audited"
    assert said in [finding.text for finding in result.findings]
