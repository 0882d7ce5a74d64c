"""If these fail, a certificate says that identity is gone where it is not, or the other way round."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from unface.data import EmbeddingSet, Space, identity_basis, make_identities
from unface.erase import Certificate, Projection, RandomSubspace, certificate
from unface.errors import UnfaceError

DIM, RANK = 32, 4


def held_out(seed: int = 0, identities: int = 150, between: float = 1.0) -> EmbeddingSet:
    return make_identities(identities, 8, DIM, rank=RANK, between=between, seed=seed)


def removing(basis: np.ndarray, normalise: bool = True) -> Projection:
    space = Space(encoder=None, weights_sha256=None, dim=DIM, normalised=False)
    return Projection("known", basis, np.ones(basis.shape[1]), space, normalise=normalise)


def certified(projection: Projection, made: EmbeddingSet) -> Certificate:
    return certificate(projection, made.vectors, made.identities)


def test_without_the_identity_subspace_nothing_is_left_and_without_a_random_one_nearly_all_is() -> None:
    made = held_out()
    known = certified(removing(identity_basis(DIM, RANK, 0)), made)
    random = certified(RandomSubspace(RANK).fit(made.vectors).projection_, made)
    assert known.energy_left.value < 0.02
    assert known.fisher_left.value < 0.05
    assert random.energy_left.value > 0.7
    assert random.fisher_left.low > 0.3
    assert known.fisher_before == random.fisher_before


def test_half_of_the_subspace_leaves_half_of_the_energy() -> None:
    """Σ_b is the same in each of the four dimensions, and between² = within² is a Fisher ratio of 1 in each."""
    found = certified(removing(identity_basis(DIM, RANK, 0)[:, :2], normalise=False), held_out(identities=600))
    assert found.energy_left.low < 0.5 < found.energy_left.high
    assert found.energy_left.high - found.energy_left.low < 0.2
    assert found.fisher_left.value == pytest.approx(1, abs=0.25)
    assert found.fisher_before.value == pytest.approx(1, abs=0.25)


def test_intervals_cover() -> None:
    """Over 100 draws of people, the true share ½ and no Fisher ratio where identity is gone."""
    covered = gone = 0
    for seed in range(100):
        made = held_out(seed, identities=80)
        half = certified(removing(identity_basis(DIM, RANK, seed)[:, :2], normalise=False), made).energy_left
        none = certified(removing(identity_basis(DIM, RANK, seed)), made).fisher_left
        covered += half.low <= 0.5 <= half.high
        gone += none.low <= 0
    assert covered >= 87
    assert gone >= 90


def test_it_says_what_it_covers_and_is_plain_json() -> None:
    found = certified(removing(identity_basis(DIM, RANK, 0)), held_out())
    assert (found.identities, found.images) == (150, 1200)
    assert "linear access" in found.covers
    assert "not verification" in found.covers
    assert json.loads(json.dumps(asdict(found)))["energy_left"]["level"] == 0.95


def test_the_same_seed_gives_the_same_certificate_whatever_the_names() -> None:
    made, known = held_out(), removing(identity_basis(DIM, RANK, 0))
    names = np.array(made.names)[made.identities]
    assert certificate(known, made.vectors, names) == certificate(known, made.vectors, np.char.add("z", names))
    assert certificate(known, made.vectors, names) != certificate(known, made.vectors, names, seed=1)


def test_people_with_one_image_are_left_out() -> None:
    made = held_out(identities=20)
    alone = np.append(np.flatnonzero(made.identities < 19), np.flatnonzero(made.identities == 19)[:1])
    assert certified(removing(identity_basis(DIM, RANK, 0)), made.take(alone)).identities == 19


def test_too_few_people_or_people_alike_are_refused() -> None:
    made, known = held_out(), removing(identity_basis(DIM, RANK, 0))
    with pytest.raises(UnfaceError, match="3 identities with two images; at least 4"):
        certificate(known, made.vectors[:24], made.identities[:24])
    copies = np.tile(made.vectors[:4], (5, 1))
    with pytest.raises(UnfaceError, match="do not differ even before"):
        certificate(known, copies, np.repeat(np.arange(5), 4))
