"""If these fail, what was learned on one set of people is said to hold on another where nobody looked."""

from dataclasses import replace

import pytest

from tests.auditing.audits import PEOPLE, RANK, complete, looped, others, quick, refusal, renamed, space, tar
from tests.kit.results import AuditResult
from unface import make_identities
from unface.auditing import Transfer
from unface.auditing.transfer import EraserTransfer
from unface.data import DEFAULT_SHARES, EmbeddingSet, Role, Space, split_identities
from unface.erase import ISP, Projection, fit_projection


def only_transfer(result: AuditResult) -> EraserTransfer:
    (transfer,) = Transfer.of(result)
    return transfer


def cells() -> dict[tuple[str | None, str], float]:
    return {(cell.fitted_on, cell.tested_on): cell.tar.value for cell in only_transfer(complete()).cells}


def fitted(people: EmbeddingSet) -> Projection:
    """By hand, on the set's own fit identities."""
    split = split_identities(people.names, shares=DEFAULT_SHARES, seed=0)
    unit = people.unit()
    return fit_projection(ISP(RANK), unit.take(split.rows(unit, Role.FIT)))


def test_there_are_six_cells_raw_fitted_here_and_fitted_there_on_both_sets() -> None:
    assert list(cells()) == [
        (fitted_on, tested_on)
        for tested_on in ("synthetic", "other.npz")
        for fitted_on in (None, "synthetic", "other.npz")
    ]
    found = only_transfer(complete())
    assert (found.method, found.rank, found.first, found.second.name) == ("isp", RANK, "synthetic", "other.npz")


def test_on_the_audited_set_the_cells_are_its_own_spaces() -> None:
    assert cells()[None, "synthetic"] == tar(looped().raw)
    assert cells()["synthetic", "synthetic"] == tar(space(looped(), "isp"))


def test_on_the_other_set_the_cells_are_what_an_audit_of_that_set_would_find() -> None:
    """Attackers, thresholds and verdicts are of the people tested on."""
    alone = quick(others(), projections=[fitted(PEOPLE)])
    assert cells()[None, "other.npz"] == tar(alone.raw)
    assert cells()["synthetic", "other.npz"] == tar(space(alone, "projection"))
    assert cells()["other.npz", "other.npz"] == tar(space(alone, "isp"))
    assert cells()["other.npz", "synthetic"] == tar(
        space(quick(eraser=(), projections=[fitted(others())]), "projection")
    )


def test_someone_of_both_sets_is_refused() -> None:
    assert refusal(parts=(Transfer(PEOPLE),)).startswith(
        "--transfer synthetic: 120 identities of it also in synthetic, such as 'p0001'"
    )


def test_people_of_another_subspace_are_not_protected_by_the_wrong_projection() -> None:
    found = cells()
    for here, there in (("synthetic", "other.npz"), ("other.npz", "synthetic")):
        assert found[here, here] < 0.5 * found[there, here]


def test_cosines_are_one_between_people_of_one_subspace_and_lower_otherwise() -> None:
    both = make_identities(220, 6, 16, rank=RANK, between=30.0, seed=3)  # one subspace, whoever they are
    here, alike = both.take(both.identities < 120), both.take(both.identities >= 120)
    one = only_transfer(quick(here, parts=(Transfer(alike),)))
    assert one.cosines == pytest.approx([1, 1, 1], abs=0.01)
    other = only_transfer(complete())
    assert min(other.cosines) < 0.7
    assert other.cosines == sorted(other.cosines, reverse=True)


def test_two_sets_of_one_name_get_two_names() -> None:
    found = only_transfer(quick(parts=(Transfer(replace(others(), source="synthetic")),)))
    assert (found.first, found.second.name) == ("synthetic", "synthetic (2)")
    assert len({(cell.fitted_on, cell.tested_on) for cell in found.cells}) == 6


def test_a_measured_transfer_is_not_listed_as_missing() -> None:
    assert not any("--transfer" in text for text in complete().not_measured)
    assert any("--transfer" in text for text in looped().not_measured)


def test_what_cannot_be_carried_over_is_refused_before_anything_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("the attack was run first")

    monkeypatch.setattr("unface.auditing.attack.run_panel", never)
    elsewhere = renamed(others(), "far", space=Space("clip", None, 16, normalised=False))
    assert refusal(parts=(Transfer(elsewhere),)).startswith("--transfer far.npz: two embedding spaces never mix: ")
    few = renamed(make_identities(30, 6, 16), "few")
    assert refusal(parts=(Transfer(few),), rank=9) == (
        "few.npz: isp: rank 9 with 9 identities; expected at most 8; --transfer needs as many, or a lower --rank"
    )
    short = renamed(make_identities(60, 4, 16), "short")
    assert refusal(parts=(Transfer(short),), k=(2, 5)) == (
        "short.npz: 4 images of most identities; k = 5 needs 5 of them in both sets: ask for a smaller --k"
    )


def test_cells_name_the_set_that_was_fitted_on_and_not_the_audited_one() -> None:
    third = renamed(make_identities(60, 5, 16, rank=RANK, between=3.0, seed=12), "third")
    found = only_transfer(quick(parts=(Transfer(others()),), fit_on=third))
    assert {cell.fitted_on for cell in found.cells} == {None, "third.npz", "other.npz"}
