"""If these fail, an audit begins that can end in nothing, or refuses without saying what would do."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.auditing.bare import PEOPLE, grouped, quick, refusal
from unface import make_identities
from unface.data import EmbeddingSet


def test_a_k_that_was_asked_for_and_does_not_fit_is_refused() -> None:
    expected = (
        "k = 4 needs 6 images for each identity, 5 are used; ask for a smaller k, or for more --images of fewer "
        "identities"
    )
    assert refusal(ks=(1, 4)) == expected


def test_too_few_images_are_refused() -> None:
    expected = (
        "2 images for each identity are too few; 3 are needed, 1 to learn from and 2 to compare: --images 3 or more "
        "leaves out identities with fewer"
    )
    assert refusal(make_identities(40, 2, 4)) == expected


def test_a_rate_that_cannot_be_resolved_is_refused_with_the_identities_it_needs() -> None:
    """8 calibrate identities of 4 query images: 28 · 16 pairs; m (m − 1) / 2 · 16 · 1e-3 ≥ 3 from m = 20 on."""
    assert refusal(fars=(1e-3, 1e-4)) == (
        "FAR 1e-3 cannot be resolved: at k = 1 calibrate has 448 impostor pairs, so fewer than 3 false accepts are "
        "expected; 20 calibrate identities are needed, or a higher --far"
    )


def test_the_identities_said_to_be_needed_do_resolve_it() -> None:
    """20 of 100 identities calibrate."""
    assert quick(make_identities(100, 5, 4), fars=(1e-3,), ks=(1,)).worst[0].resolution == "coarse"
    assert "20 calibrate identities are needed" in refusal(make_identities(95, 5, 4), fars=(1e-3,), ks=(1,))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"probes": ["cosine", "forest"]}, "probe 'forest' is not known; choose from cosine, ridge, lda, plda, mlp"),
        ({"variant": "mine"}, "variant 'mine' is not known; use unface or paper"),
        ({"bootstrap": "jackknife"}, "bootstrap 'jackknife' is not known; use double-or-nothing or multinomial"),
        ({"device": "tpu"}, "device 'tpu' is not known; use 'cpu' or 'cuda'"),
        ({"fars": (0.0,)}, "a false-accept rate lies between 0 and 1, not 0"),
        ({"fars": (2.0,)}, "a false-accept rate lies between 0 and 1, not 2"),
        ({"fars": (float("nan"),)}, "a false-accept rate lies between 0 and 1, not nan"),
        ({"fars": (1e-320,)}, "no set of pairs resolves a false-accept rate of 9.99989e-321; ask for 1e-12 or more"),
        ({"fars": ()}, "at least one false-accept rate and one k are needed"),
        ({"ks": (0,)}, "k is the number of support images, at least 1, not 0"),
        ({"ks": (1.5,)}, "k is a whole number of images, not 1.5"),
        (
            {"seeds": 1, "variant": "paper"},
            "the paper variant takes its intervals from the spread over seeds; give at least 2",
        ),
        ({"seed": -1}, "a seed is a number from 0, not -1"),
        ({"bootstraps": 301}, "double-or-nothing replicates come in mirrored pairs; give an even number, not 301"),
        ({"seeds": 0}, "at least one seed is needed, not 0"),
        ({"quota": 0}, "a quota is a number of image pairs, at least 1, not 0"),
        ({"group": "shoot"}, "synthetic: has no column 'shoot'; other columns are: none"),
        ({"group": "a", "context": "b"}, "give --group or --context, not both"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, object], sentence: str) -> None:
    assert refusal(PEOPLE, **options) == sentence


def with_roles(change: Callable[[np.ndarray[tuple[int], np.dtype[np.object_]]], None]) -> EmbeddingSet:
    roles = np.array(["fit", "train", "calibrate", "test"], dtype=object)[PEOPLE.identities % 4]
    change(roles)
    return EmbeddingSet.from_arrays(
        PEOPLE.vectors, np.array(PEOPLE.names)[PEOPLE.identities], labels={"role": roles}, source="faces.parquet"
    )


def test_a_split_of_ones_own_is_kept_to() -> None:
    found = quick(with_roles(lambda roles: None), split_column="role").roles
    assert (found.fit, found.train, found.calibrate, found.test, found.seed) == (10, 10, 10, 10, None)


@pytest.mark.parametrize("seed", range(6))
def test_an_identity_in_two_roles_is_refused_also_where_curation_would_drop_the_row(seed: int) -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[0] = "test"

    twofold = with_roles(change)
    expected = "split: identity 'p0001' is in two roles, test and fit; give it one"
    assert refusal(twofold, split_column="role", images=3, seed=seed) == expected


def test_an_unknown_role_is_named_by_the_row_it_has_in_the_file() -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[17] = "validation"

    expected = "split: row 17 has role 'validation'; roles are fit, train, calibrate, test"
    assert refusal(with_roles(change), split_column="role", images=3) == expected


def test_a_role_with_one_identity_is_refused() -> None:
    def change(roles: np.ndarray[tuple[int], np.dtype[np.object_]]) -> None:
        roles[(roles == "calibrate") & (PEOPLE.identities > 4)] = "fit"

    expected = "faces.parquet: role 'calibrate' has 1 identity of 40; at least 5 are needed to say anything"
    assert refusal(with_roles(change), split_column="role") == expected


def test_a_context_column_must_hold_vectors() -> None:
    expected = (
        "faces.parquet: 'role' is no column of vectors; --context needs one vector for each row, --group takes a name"
    )
    assert refusal(with_roles(lambda roles: None), context="role") == expected


@pytest.mark.parametrize("group", [None, "one for all"])
def test_a_group_that_says_nothing_is_refused(group: str | None) -> None:
    told = refusal(grouped([group] * len(PEOPLE)), group="shoot")
    assert told == "arrays: 'shoot' names fewer than two groups; it says nothing of a shoot"
