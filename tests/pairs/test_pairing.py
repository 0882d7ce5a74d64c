"""If this fails, some pairs are compared twice, never, or under the wrong label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.crowd import Crowd, crowds, everything, make_crowd
from unface.pairs import cosine_space, pair_up
from unface.pairs.pairing import Block


@given(crowds())
def test_mated_and_impostor_pairs_are_counted_as_the_full_matrix_has_them(crowd: Crowd) -> None:
    pairing, truth = crowd.pairing, everything(crowd)
    assert (pairing.mated, pairing.impostors) == (len(truth.mated), len(truth.impostor))


@given(crowds())
def test_sorting_keeps_rows_with_their_vectors_and_identities(crowd: Crowd) -> None:
    pairing = crowd.pairing
    assert (np.diff(pairing.identities) >= 0).all()
    assert sorted(pairing.rows) == list(range(len(crowd.vectors)))
    np.testing.assert_array_equal(pairing.identities, crowd.identities[pairing.rows])
    np.testing.assert_array_equal(pairing.space.left, crowd.space.left[pairing.rows])
    np.testing.assert_array_equal(pairing.space.right, crowd.space.right[pairing.rows])


@given(crowds(("cosine",)), st.integers(1, 50), st.integers(1, 50))
def test_blocks_hold_every_impostor_pair_once(crowd: Crowd, rows: int, columns: int) -> None:
    pairing = crowd.pairing
    seen = np.zeros((len(pairing), len(pairing)), np.int64)
    for block in pairing.blocks(rows, columns):
        mask = pairing.impostor_mask(block)
        seen[block.rows, block.columns] += 1 if mask is None else mask.astype(np.int64)
    differ = pairing.identities[:, None] != pairing.identities[None, :]
    np.testing.assert_array_equal(seen, np.triu(differ, 1))


def test_a_block_that_shares_no_identity_needs_no_mask() -> None:
    pairing = pair_up(cosine_space(np.eye(4)), np.array([0, 0, 3, 9]))
    assert pairing.impostor_mask(Block(slice(0, 2), slice(2, 4))) is None
    mask = pairing.impostor_mask(Block(slice(0, 2), slice(1, 4)))
    assert mask is not None
    assert mask.tolist() == [[False, True, True], [False, True, True]]


def test_rows_already_in_order_are_not_copied() -> None:
    space = cosine_space(np.eye(4, dtype=np.float32))
    assert pair_up(space, np.array([0, 0, 3, 9])).space is space


def test_a_space_with_one_side_for_both_keeps_one_when_its_rows_are_sorted() -> None:
    pairing = pair_up(cosine_space(np.eye(4)), np.array([9, 3, 0, 0], np.uint8))
    assert pairing.space.right is pairing.space.left
    assert pairing.identities.dtype == np.int64


@pytest.mark.parametrize("images", [[3], [1, 1, 1], [5, 1, 2]])
def test_pair_numbers_worked_by_hand(images: list[int]) -> None:
    identities = np.repeat(np.arange(len(images)), images)
    pairing = pair_up(cosine_space(np.ones((len(identities), 2), np.float32)), identities)
    by_hand = {(3,): (3, 0), (1, 1, 1): (0, 3), (5, 1, 2): (11, 17)}
    assert (pairing.mated, pairing.impostors) == by_hand[tuple(images)]
    assert list(pairing.sizes) == images


def test_pair_numbers_do_not_overflow() -> None:
    crowd = make_crowd(0, "continuous", 4)
    identities = np.zeros(100_000, np.int64)
    pairing = pair_up(crowd.space.take(np.zeros(100_000, np.int64)), identities)
    assert pairing.mated == 4_999_950_000


def test_rows_of_one_identity_keep_their_order() -> None:
    identities = np.random.default_rng(0).integers(0, 3, size=500)
    pairing = pair_up(cosine_space(np.ones((500, 2), np.float32)), identities)
    for code in range(3):
        assert pairing.rows[pairing.identities == code].tolist() == np.flatnonzero(identities == code).tolist()
