"""If these fail, a rate counts as resolved although a few people set its threshold."""

from functools import cache

import numpy as np
import pytest

from unface import make_identities
from unface.metrics import Resolution, Scheme
from unface.probe import Measurement, Plan, RoleRows, Roles, draw_bootstrap, measure, pick_probes, run_panel
from unface.probe.plan import resolve

FAR = 1e-3


@cache
def measured(people: int, pictures: int, *, wolf: bool = False) -> Measurement:
    """Plain cosine on Gaussian people; a wolf's pictures lie in the middle of everybody's, and resemble all of them."""
    made = make_identities(2 + 2 * people, pictures, 64, between=1.0, within=0.8, seed=3)
    vectors = made.vectors + 1.5
    if wolf:
        own = made.identities == 2
        vectors[own] = 3 + 0.5 * made.vectors[own]
    spans = ((0, 2), (2, people), (2 + people, people))
    rows = [np.flatnonzero((made.identities >= first) & (made.identities < first + count)) for first, count in spans]
    roles = Roles(
        *(
            RoleRows(chosen, made.identities[chosen] - first, count)
            for chosen, (first, count) in zip(rows, spans, strict=True)
        )
    )
    plan = Plan(fars=(FAR,), ks=(1,), seeds=1, threads=1)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    trial = run_panel(unit.astype(np.float32), roles, pick_probes(["cosine"]), plan).trials["cosine", 1]
    return measure(trial, FAR, draw_bootstrap(Scheme.DOUBLE_OR_NOTHING, people, people, 200, 0), plan)


def test_thirteen_people_resolve_nothing_however_many_pictures_they_have() -> None:
    """78 pairs of people of 20 pictures are 31,200 pairs, of which 31 false accepts are expected."""
    assert resolve((FAR,), 78 * 400, 13).of[FAR] is Resolution.RESOLVED
    found = measured(13, 20)
    assert found.resolution is Resolution.COARSE
    assert (found.needed or 0) >= 20


def test_many_people_of_whom_none_is_special_resolve_it() -> None:
    found = measured(120, 5)
    assert (found.resolution, found.needed) == (Resolution.RESOLVED, None)


def test_one_person_who_resembles_everybody_leaves_a_rate_coarse() -> None:
    found = measured(120, 5, wolf=True)
    assert found.resolution is Resolution.COARSE
    assert (found.needed or 0) > 120


@pytest.mark.parametrize(
    ("people", "state", "needed"),
    [(20.0, Resolution.RESOLVED, None), (19.9, Resolution.COARSE, 101), (10.0, Resolution.COARSE, 200)],
)
def test_twenty_effective_people_are_asked_for_and_more_of_them_in_proportion(
    people: float, state: Resolution, needed: int | None
) -> None:
    assert resolve((FAR,), 100_000, 100).judged(FAR, people) == (state, needed)


def test_a_rate_of_few_expected_accepts_stays_coarse_however_many_people_are_behind_them() -> None:
    resolved = resolve((FAR,), 10_000, 100)
    assert resolved.judged(FAR, 60.0) == (Resolution.COARSE, resolved.needed_for_resolved[FAR])
