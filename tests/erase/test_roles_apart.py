"""If these fail, an eraser looks better, or a probe blinder, than people outside of the fit would show.

An eraser fitted on the attacker's own identities takes away the very means that the attacker learns from; on other
people it would not. That flatters it against ridge and, by construction, not against plain cosine.
"""

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from unface.data import EmbeddingSet, Space, identity_basis, make_identities
from unface.erase import ISP, Projection, RandomSubspace
from unface.probe import PROBES, Plan, RoleRows, Roles, run_panel

DIM, RANK = 64, 32
LEARNED, JUDGED = 48, 60
"""Identities of fit and of train, of calibrate and of test."""
FAR = 1e-2


def span(people: EmbeddingSet, first: int, count: int) -> RoleRows:
    rows = np.flatnonzero((people.identities >= first) & (people.identities < first + count))
    return RoleRows(rows, people.identities[rows] - first, count)


def tars(vectors: NDArray[np.float32], roles: Roles, probes: Iterable[str]) -> dict[str, float]:
    """TAR of each probe on test, trained and calibrated as in an audit."""
    plan = Plan(fars=(FAR,), ks=(4,), seeds=1, threads=1)
    trials = run_panel(vectors, roles, [PROBES[name] for name in probes], plan).trials
    return {name: float(np.mean(trial.mated[0].scores >= trial.thresholds[FAR])) for (name, _), trial in trials.items()}


@pytest.fixture(scope="module")
def falls() -> dict[str, NDArray[np.float64]]:
    """(draws, 2): by how much each probe's TAR falls with the fit apart from train and with both on one."""
    found: dict[str, list[tuple[float, float]]] = {"cosine": [], "ridge": []}
    for draw in range(8):
        people = make_identities(2 * (LEARNED + JUDGED), 8, DIM, between=1.2, seed=draw).unit()
        fit, train = span(people, 0, LEARNED), span(people, LEARNED, LEARNED)
        roles = Roles(train, span(people, 2 * LEARNED, JUDGED), span(people, 2 * LEARNED + JUDGED, JUDGED))
        raw = tars(people.vectors, roles, found)
        apart, shared = (
            tars(ISP(RANK).fit(people.vectors[role.rows], role.identities).transform(people.vectors), roles, found)
            for role in (fit, train)
        )
        assert min(raw.values()) > 0.9
        for name, listed in found.items():
            listed.append((raw[name] - apart[name], raw[name] - shared[name]))
    return {name: np.array(listed) for name, listed in found.items()}


def test_ridge_falls_half_as_far_again_when_the_eraser_was_fitted_on_its_own_identities(
    falls: dict[str, NDArray[np.float64]],
) -> None:
    apart, shared = falls["ridge"].T
    assert apart.min() > 0
    assert (shared > apart).all()
    assert shared.mean() > 1.5 * apart.mean()
    assert (shared - apart).mean() > 5 * standard_error(shared - apart)


def test_cosine_learns_from_nobody_and_falls_as_far_either_way(falls: dict[str, NDArray[np.float64]]) -> None:
    apart, shared = falls["cosine"].T
    assert apart.mean() > 5 * standard_error(apart)
    assert abs((shared - apart).mean()) < 3 * standard_error(shared - apart)
    assert abs((shared - apart).mean()) < 0.2 * (falls["ridge"] @ [-1, 1]).mean()


def standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_of_the_panel_is_at_chance_without_the_identity_subspace_and_not_without_a_random_one(
    name: str,
) -> None:
    """Identity lies in known dimensions; each probe is trained anew on what it is shown."""
    rank, seed = 6, 3
    people = make_identities(180, 8, DIM, rank=rank, between=4.0, seed=seed)
    roles = Roles(*(span(people, first, JUDGED) for first in (0, JUDGED, 2 * JUDGED)))
    space = Space(encoder=None, weights_sha256=None, dim=DIM, normalised=False)
    known = Projection("known", identity_basis(DIM, rank, seed), np.ones(rank), space)
    random = RandomSubspace(rank, seed=1).fit(people.vectors).projection_
    shown = (people.unit().vectors, random.apply(people.vectors), known.apply(people.vectors))
    raw, control, erased = (tars(vectors, roles, [name])[name] for vectors in shown)
    assert min(raw, control) > 0.4
    # 360 mated pairs at a rate of 1e-2, and a threshold that calibrate sets.
    assert erased < 4 * FAR
