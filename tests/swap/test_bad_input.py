"""If these fail, somebody with an unusable attribute or too few people gets a number instead of a sentence."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.swap.labelled import People, people
from unface.errors import UnfaceError
from unface.swap import RowsOf, swap_inference


@pytest.fixture(scope="module")
def made() -> People:
    return people(36, 4)


def refused(made: People, labels: NDArray[np.generic], roles: tuple[RowsOf, RowsOf, RowsOf], **options: float) -> str:
    with pytest.raises(UnfaceError) as error:
        swap_inference(made.vectors, *roles, labels, **options)  # type: ignore[arg-type]
    return str(error.value)


@pytest.mark.parametrize("role", [0, 1, 2])
def test_a_role_with_one_value_only_is_named(made: People, role: int) -> None:
    name = ("train", "calibrate", "test")[role]
    labels = made.labels.copy()
    labels[made.roles[role][0]] = 1
    assert refused(made, labels, made.roles) == (
        f"swap: 0 {name} identities have the attribute 0; at least 2 must have it and as many the other value"
    )


def test_one_identity_of_a_label_is_too_few(made: People) -> None:
    train, _ = made.roles[0]
    labels = made.labels.copy()
    labels[train] = made.identities[train] == 0
    assert refused(made, labels, made.roles).startswith("swap: 1 train identities have the attribute 1;")


def test_other_values_than_two_are_refused(made: People) -> None:
    sentence = "swap: the attribute has the value {}; expected 0 or 1, and -1 where it is unknown"
    assert refused(made, made.labels + 1, made.roles) == sentence.format(2)
    assert refused(made, made.labels / 2, made.roles) == sentence.format(0.5)
    assert refused(made, np.array(["f", "m"])[made.labels], made.roles) == sentence.format("f")


def test_a_label_for_each_vector_is_needed(made: People) -> None:
    found = refused(made, made.labels[1:], made.roles)
    assert found == (
        "swap: vectors of shape (144, 48) and an attribute of shape (143,); "
        "expected (n, d) vectors and one label for each"
    )


def test_a_row_in_two_roles_is_named(made: People) -> None:
    train, calibrate, test = made.roles
    mixed = (np.append(test[0], train[0][5]), np.append(test[1], 0))
    assert refused(made, made.labels, (train, calibrate, mixed)) == (
        "swap: row 5 is in train and in test; one role for each row"
    )


def test_rows_must_exist_and_have_an_identity_each(made: People) -> None:
    train, calibrate, (rows, codes) = made.roles
    found = refused(made, made.labels, (train, calibrate, (rows + 144, codes)))
    assert found == "swap: test names row 240; there are 144 vectors, counted from 0"
    found = refused(made, made.labels, (train, calibrate, (rows, codes[1:])))
    assert found == "swap: test has 48 rows and 47 identities; give one for each"


def test_a_rate_that_calibrate_cannot_resolve_says_how_many_people_would(made: People) -> None:
    assert refused(made, made.labels, made.roles) == (
        "swap: 12 calibrate identities give 1056 impostor pairs, too few for a false-accept rate of 0.001; "
        "about 20 identities are needed, or a higher rate"
    )
    assert "between 0 and 1, not 1" in refused(made, made.labels, made.roles, far=1.0)


def test_one_image_each_says_nothing_of_how_a_person_varies(made: People) -> None:
    train, calibrate, test = made.roles
    first = (train[0][::4], train[1][::4])
    assert refused(made, made.labels, (first, calibrate, test)) == (
        "swap: every train identity has one labelled image; two of some are needed"
    )


def test_vectors_have_length_one(made: People) -> None:
    for factor in (0.0, 2.0, np.nan):
        vectors = made.vectors.copy()
        vectors[7] *= np.float32(factor)
        found = refused(People(vectors, made.identities, made.labels), made.labels, made.roles)
        assert found == f"swap: vector 7 has length {factor:g}; expected 1, normalise it or drop it"


def test_numbers_out_of_range_are_refused(made: People) -> None:
    assert refused(made, made.labels, made.roles, directions=0) == "swap: 0 directions; expected at least 1"
    assert "from 0 to below 1, not 1" in refused(made, made.labels, made.roles, within=1.0)
    assert "0 or more, not -1" in refused(made, made.labels, made.roles, step=-1.0)


def test_no_direction_beside_within_identity_variation_is_said(made: People) -> None:
    flat = made.vectors.copy()
    flat[:, 3:] = 0
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    found = refused(People(flat, made.identities, made.labels), made.labels, made.roles, within=0.999)
    assert found == (
        "swap: 3 of 48 directions hold the share 0.999 of within-identity variation and "
        "the others do not vary; give a smaller within"
    )
