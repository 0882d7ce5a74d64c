"""If these fail, an eraser is fitted on those it is judged on because they go by other names, and looks perfect."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.auditing.audits import DIM, PEOPLE, RANK, about, others, quick, refusal, renamed
from unface import make_identities
from unface.auditing import Transfer
from unface.auditing.fit import fit_certified
from unface.auditing.strangers import require_strangers, shared_pictures
from unface.data import EmbeddingSet
from unface.errors import UnfaceError


def encoded_again(people: EmbeddingSet, change: float, name: str = "again") -> EmbeddingSet:
    """The same pictures under other names, each vector changed by ``change`` of its length."""
    noise = np.random.default_rng(5).standard_normal(people.vectors.shape)
    lengths = np.linalg.norm(people.vectors, axis=1, keepdims=True)
    moved = people.vectors + change * lengths * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    made = replace(people, vectors=moved.astype(np.float32))
    return replace(renamed(made, name), ids=np.array([f"{name} {row}" for row in range(len(people))], object))


AGAIN = encoded_again(PEOPLE.take(PEOPLE.identities < 40), 0.02)


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("--fit-on", {"fit_on": AGAIN}),
        ("--attacker-data", {"attacker_data": AGAIN}),
        ("--spare", {"spare": AGAIN}),
        ("--gate", {"gate": AGAIN}),
        ("--transfer", {"parts": (Transfer(AGAIN),)}),
    ],
)
def test_audited_pictures_encoded_again_are_refused_with_a_row_of_each_set(option: str, given: dict[str, Any]) -> None:
    said = refusal(**given)
    assert said.startswith(f"{option} again.npz: 240 pairs of nearly the same vector (cosine ≥ 0.999) here and in ")
    assert "such as id 'again 0' here and id 'p0001-0' there" in said


def test_whoever_an_eraser_was_fitted_on_may_not_be_transferred_to_or_attack() -> None:
    again = encoded_again(others(), 0.02)
    assert "in other.npz" in refusal(fit_on=others(), parts=(Transfer(again),))
    assert "in other.npz" in refusal(fit_on=others(), attacker_data=again)


def test_fit_refuses_a_task_and_a_gate_that_hold_its_pictures() -> None:
    with pytest.raises(UnfaceError, match=r"--spare again\.npz: 240 pairs"):
        fit_certified(PEOPLE, eraser="utility-pca", rank=RANK, spare=AGAIN)
    with pytest.raises(UnfaceError, match=r"--gate again\.npz: 240 pairs"):
        fit_certified(PEOPLE, rank=RANK, gate=AGAIN)


def test_copies_named_by_their_originals_may_be_pictures_of_the_audited_set() -> None:
    """Copies hold audited pictures by design; a row that names no audited picture is compared all the same."""
    named = np.array(PEOPLE.ids[: len(AGAIN)], object)
    copies = replace(AGAIN, labels={"copy_of": named})
    assert require_strangers("--spare", copies, PEOPLE, by_name=False) == []
    named[3] = "nobody's"
    with pytest.raises(UnfaceError, match="1 pair of nearly the same vector"):
        require_strangers("--spare", copies, PEOPLE, by_name=False)
    with pytest.raises(UnfaceError, match="240 pairs"):
        require_strangers("--fit-on", copies, PEOPLE)


def test_other_pictures_of_the_same_people_are_a_warning_and_other_people_are_none() -> None:
    everybody = make_identities(160, 10, DIM, rank=DIM, between=6.0, seed=4)
    first = np.arange(len(everybody)) % 10 < 6
    audited, later = everybody.take(first & (everybody.identities < 120)), everybody.take(~first)
    same, different = (renamed(later.take((later.identities < 120) == known), "later") for known in (True, False))
    assert "resemble each other as much as themselves" in about(quick(audited, fit_on=same), "identities")
    assert about(quick(audited, fit_on=different), "identities") == ""


def test_pairs_are_counted_and_the_first_named_however_many_there_are() -> None:
    one = np.zeros((3000, 4), np.float32)
    one[:, 0] = 1
    assert shared_pictures(one, one[:2000]) == (6_000_000, (0, 0))
    assert shared_pictures(one, -one[:2000]) == (0, None)
