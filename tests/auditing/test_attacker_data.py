"""If these fail, an attacker learns from people it is judged on, or people it has are not learned from."""

import numpy as np
import pytest

from tests.auditing.audits import FEW, bare, bare_refusal, renamed
from unface import EmbeddingSet, make_identities
from unface.data import Space

STRANGERS = renamed(make_identities(30, 3, 4, seed=9), "theirs")


def test_their_people_join_the_train_identities_and_no_other_role() -> None:
    alone, joined = bare(), bare(attacker_data=STRANGERS)
    assert joined.roles.train == alone.roles.train + 30
    for role in ("fit", "calibrate", "test"):
        assert getattr(joined.roles, role) == getattr(alone.roles, role)
    assert joined.attacker_source is not None
    assert (joined.attacker_source.name, joined.attacker_source.identities) == ("theirs.npz", 30)
    assert alone.attacker_source is None


def test_a_probe_that_learns_nothing_is_not_changed_by_them_and_one_that_learns_is() -> None:
    """Cosine compares the same pictures as before; lda has learned from three times as many people."""
    people = make_identities(60, 4, 12, rank=4, between=1.0, seed=2)
    theirs = renamed(make_identities(400, 3, 12, rank=4, between=1.0, seed=2).take(np.arange(240, 1200)), "theirs")
    asked = {"probe": ["cosine", "lda"], "k": "all", "far": 0.05}
    alone, joined = (bare(people, attacker_data=more, **asked).raw.points for more in (None, theirs))
    assert alone[0].tar == joined[0].tar
    assert alone[1].threshold != joined[1].threshold


def test_people_who_are_in_the_audit_by_name_are_refused_with_their_number() -> None:
    some = FEW.take(FEW.identities < 3)
    known = EmbeddingSet.from_arrays(
        make_identities(3, 5, 4, seed=8).vectors, np.array(some.names)[some.identities], source="known.npz"
    )
    assert bare_refusal(attacker_data=known) == (
        "--attacker-data known.npz: 3 identities of it also in synthetic, such as 'p0001'; take them out, or rename "
        "them if they are other people"
    )


def test_another_space_and_the_paper_variant_are_refused() -> None:
    elsewhere = renamed(STRANGERS, "far", space=Space("clip", None, 4, normalised=False))
    assert bare_refusal(attacker_data=elsewhere).startswith("--attacker-data far.npz: two embedding spaces never mix: ")
    assert bare_refusal(attacker_data=STRANGERS, variant="paper", seeds=2).startswith("--attacker-data: the paper")


@pytest.mark.parametrize("most", [25, 30])
def test_above_a_number_of_identities_so_many_are_drawn_and_this_is_told(most: int) -> None:
    result = bare(max_identities=most)
    assert result.curated.identities == most
    assert sum((result.roles.fit, result.roles.train, result.roles.calibrate, result.roles.test)) == most
    told = f"{most} of 40 identities were drawn at random and audited; intervals count these alone. "
    assert [one.text for one in result.findings if one.about == "size"] == [
        f"{told}Protocol(max_identities=…) draws more"
    ]
    assert not [one for one in bare(max_identities=40).findings if one.about == "size"]
