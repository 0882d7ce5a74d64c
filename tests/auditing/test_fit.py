"""If these fail, a projection is certified on people it was fitted on, or holds another rank than was asked for."""

import numpy as np
import pytest

from tests.auditing.audits import PEOPLE, RANK
from unface import UnfaceError, make_identities
from unface.auditing import fit_certified
from unface.data import DEFAULT_SHARES, EmbeddingSet, Role, Space, split_identities
from unface.erase import ISP, LEACE, Projection, certificate, fit_projection

SEVERAL = make_identities(60, 5, 12, between=1.6, seed=5)


def refused(people: EmbeddingSet = SEVERAL, method: str = "isp", **options: object) -> str:
    with pytest.raises(UnfaceError) as caught:
        fit_certified(people, method, **options)  # type: ignore[arg-type]
    return str(caught.value)


def same(one: Projection, other: Projection) -> bool:
    """The same subspace, whatever certificate it carries."""
    return one.kind == other.kind and np.array_equal(one.directions, other.directions)


def test_it_is_fitted_on_four_fifths_of_the_identities_and_certified_on_the_others() -> None:
    found = fit_certified(PEOPLE, rank=RANK)
    split = split_identities(PEOPLE.names, shares={Role.FIT: 0.8, Role.TEST: 0.2}, seed=0)
    unit = PEOPLE.unit()
    fit, test = (unit.take(split.rows(unit, role)) for role in (Role.FIT, Role.TEST))
    assert same(found, fit_projection(ISP(RANK), fit))
    assert found.certificate == certificate(found, test.vectors, test.identities)
    assert found.certificate.identities == 24
    assert (found.space.dim, found.space.normalised) == (16, True)


def test_people_of_three_directions_keep_next_to_nothing_after_rank_three_and_much_after_rank_one() -> None:
    certified = [fit_certified(PEOPLE, rank=rank).certificate for rank in (RANK, 1)]
    left = [found.energy_left for found in certified if found is not None]
    assert left[0].value < 0.05
    assert left[1].low > 0.2


def test_nobody_held_out_means_no_certificate_and_everybody_fitted_on() -> None:
    found = fit_certified(PEOPLE, rank=RANK, hold_out=0)
    assert found.certificate is None
    assert same(found, fit_projection(ISP(RANK), PEOPLE.unit()))


def test_method_energy_and_the_usual_rank_are_kept_to() -> None:
    assert same(fit_certified(PEOPLE, "leace", rank=2, hold_out=0), fit_projection(LEACE(2), PEOPLE.unit()))
    by_energy = fit_projection(ISP(energy=0.6), PEOPLE.unit())
    assert same(fit_certified(PEOPLE, rank=0.6, hold_out=0), by_energy)
    assert fit_certified(PEOPLE, hold_out=0).rank == 6


def test_the_seed_decides_who_is_held_out() -> None:
    first, again, other = (fit_certified(PEOPLE, rank=RANK, seed=seed).sha256 for seed in (0, 0, 1))
    assert first == again != other


def test_a_target_is_met_with_fit_identities_alone_and_certified_on_test_and_a_stricter_one_removes_more(
    fitted_on: list[EmbeddingSet],
) -> None:
    found = fit_certified(SEVERAL, rank="0.5@0.05", threads=1)
    split = split_identities(SEVERAL.names, shares=DEFAULT_SHARES, seed=0)
    assert {split.role_of(name) for seen in fitted_on for name in seen.names} == {Role.FIT}
    test = SEVERAL.unit().take(split.rows(SEVERAL, Role.TEST))
    assert found.certificate is not None
    assert found.certificate.identities == len(test.names) == 15
    assert found.certificate == certificate(found, test.vectors, test.identities)
    assert found.rank < fit_certified(SEVERAL, rank="0.2@0.05", threads=1).rank


def test_people_to_hold_out_are_refused_beside_a_target_which_divides_them_itself() -> None:
    told = "--hold-out: with --target the people are divided as in an audit; leave it out"
    assert refused(SEVERAL, rank="0.5@0.05", hold_out=0.3) == told


def test_the_space_of_the_vectors_is_named_in_the_projection() -> None:
    space = Space("arcface", "ab" * 32, 16, normalised=False)
    names = [PEOPLE.names[code] for code in PEOPLE.identities]
    found = fit_certified(EmbeddingSet.from_arrays(PEOPLE.vectors, names, space=space), rank=RANK)
    assert (found.space.encoder, found.space.weights_sha256) == ("arcface", "ab" * 32)


def test_what_cannot_be_fitted_or_certified_is_one_line() -> None:
    assert refused(rank=13) == "isp: rank 13 with 12 dimensions; expected 0 to 12"
    few = make_identities(10, 4, 16)
    assert refused(few, rank=8) == "isp: rank 8 with 8 identities; expected at most 7"
    certified = "certificate: 2 identities with two images; at least 4 are needed; raise --hold-out, or use 0 for no"
    assert refused(few, rank=2) == f"{certified} certificate"
    assert refused(rank="5 %").startswith("target '5 %'; expected a TAR and a FAR")
    assert refused(method="magic").startswith("eraser 'magic' is not known; choose from isp, ")
