"""If these fail, reading back says of raw vectors that they are erased, or of erased ones that they are not."""

from dataclasses import replace

import numpy as np
import pytest

from tests.refusals.table import refused
from unface import Projection
from unface.data import Space
from unface.erase.gate import Gate
from unface.result.face_gate import GateCertificate
from unface.result.numbers import Rate
from unface.scale import released_space
from unface.scale.receipt import Check

ROOT_HALF = np.sqrt(0.5)


def removing(
    *directions: list[float],
    readers: list[list[float]] | None = None,
    mean: list[float] | None = None,
    unit: bool = True,
) -> Projection:
    """Of four dimensions the given ones."""
    columns = np.array(directions, float).T.copy()
    return Projection(
        "isp",
        columns,
        np.ones(len(directions)),
        Space(None, None, 4, normalised=True),
        readers=None if readers is None else np.array(readers, float).T.copy(),
        mean=None if mean is None else np.array(mean, float),
        normalise=unit,
    )


def left(by: Projection, *vectors: list[float]) -> float:
    check = Check(by)
    check.add(np.array(vectors, float))
    return check.largest_left


FIRST, SECOND = [1.0, 0, 0, 0], [0, 1.0, 0, 0]


def test_what_is_left_is_told_in_units_of_each_vector_s_own_length() -> None:
    assert left(removing(FIRST, SECOND), [0.6, 0, 0.8, 0]) == pytest.approx(0.6)
    assert left(removing(FIRST, SECOND), [0, -6, 8, 0]) == pytest.approx(0.6)
    assert left(removing(FIRST, SECOND), [0, 0, 3, 4]) == 0


def test_batches_add_up_to_the_worst_of_all_rows_in_any_order() -> None:
    batches = [np.array([[0, 0, 0.6, 0.8], [0, 0, 0, 0]]), np.array([[0.3, 0, 0, 0.4], [0, 0, 0, 1.0]])]
    for order in (batches, batches[::-1]):
        check = Check(removing(FIRST))
        for batch in order:
            check.add(batch)
        assert (check.rows, check.degenerate) == (4, 1)
        assert check.largest_left == pytest.approx(0.6)
        assert check.worst_length == pytest.approx(0.5)


def test_a_batch_of_zeros_alone_is_counted_and_has_nothing_left() -> None:
    check = Check(removing(FIRST))
    check.add(np.zeros((3, 4), np.float32))
    assert (check.rows, check.degenerate, check.largest_left, check.worst_length) == (3, 3, 0, 0)
    check.require(3, "here")


@pytest.mark.parametrize(("stored", "allowed"), [("float16", 4e-3), ("float32", 4e-6), ("float64", 4e-6)])
def test_what_may_be_left_is_what_the_stored_type_rounds_away(stored: str, allowed: float) -> None:
    check = Check(removing(FIRST))
    check.add(np.array([[0, 1, 0, 0]], stored))
    assert check.allowed == allowed
    check.add(np.array([[0, 1, 0, 0]], np.float16))
    check.add(np.array([[0, 1, 0, 0]], np.float32))
    assert check.allowed == 4e-3, "the coarsest of all batches"


def test_just_what_is_allowed_passes_and_anything_more_or_no_number_does_not() -> None:
    for worst in ("largest_left", "worst_length"):
        check = Check(removing(FIRST), rows=1, allowed=0.25)
        setattr(check, worst, 0.25)
        check.require(1, "here")
        for more in (0.2500001, np.nan):
            setattr(check, worst, more)
            with refused("apply", "here"):
                check.require(1, "here")


def test_not_a_number_among_the_vectors_never_passes_for_small() -> None:
    check = Check(removing(FIRST))
    check.add(np.array([[0, 1, 0, 0], [0, np.nan, 1, 0]]))
    check.add(np.array([[0, 1.0, 0, 0]]))
    assert check.degenerate == 0, "nor for a vector of nothing"
    with refused("apply", "here"):
        check.require(3, "here")


def test_lengths_are_nobody_s_business_where_the_projection_leaves_them() -> None:
    left_alone, scaled = Check(removing(FIRST, unit=False)), Check(removing(FIRST))
    for check in (left_alone, scaled):
        check.add(np.array([[0, 3.0, 0, 0]]))
    left_alone.require(1, "here")
    with refused("apply", "here"):
        scaled.require(1, "here")


def test_of_an_oblique_projection_only_what_its_readers_read_is_left() -> None:
    """A reader is of any length: what counts is the share of a vector in the readers' span."""
    by = removing(FIRST, readers=[[1.0, 1.0, 0, 0]])
    assert left(by, [ROOT_HALF, -ROOT_HALF, 0, 0]) == pytest.approx(0, abs=1e-15)
    assert left(by, FIRST) == pytest.approx(ROOT_HALF)
    assert left(by, [ROOT_HALF, ROOT_HALF, 0, 0]) == pytest.approx(1)


def test_without_scaling_every_vector_keeps_the_mean_s_own_part_and_no_other() -> None:
    by = removing(FIRST, readers=[FIRST], mean=[0.3, 0.9, 0, 0], unit=False)
    assert left(by, [0.3, 0, 0.4, 0]) == pytest.approx(0, abs=1e-15)
    assert left(by, [0.6, 0, 0.8, 0]) == pytest.approx(0.3)
    assert left(by, [0, 0, 1, 0]) == pytest.approx(0.3)


def test_with_scaling_any_share_of_the_mean_is_right_but_none_the_other_way_or_beside_it() -> None:
    by = removing(FIRST, SECOND, readers=[FIRST, SECOND], mean=[0.3, 0, 0.9, 0])
    assert left(by, [0.6, 0, 0.8, 0]) == pytest.approx(0, abs=1e-15)
    assert left(by, [-0.6, 0, 0.8, 0]) == pytest.approx(0.6)
    assert left(by, [0.6, 0.8, 0, 0]) == pytest.approx(0.8)


def test_a_mean_without_a_part_in_what_is_removed_excuses_nothing() -> None:
    by = removing(FIRST, readers=[FIRST], mean=[0, 0.9, 0, 0])
    assert left(by, [0.6, 0, 0.8, 0]) == pytest.approx(0.6)


def gated(offset: float = 0.0) -> Projection:
    """Removes the first direction of what has a positive third coordinate (less the offset)."""
    weights = np.array([0.0, 0, 1, 0])
    certificate = GateCertificate(1e-3, Rate.counted(0, 9), 0.3, Rate.counted(0, 3), 0.6, Rate.counted(1, 9))
    return replace(removing(FIRST), gate=Gate(weights, offset, certificate))


RAW = np.array(
    [
        [0.0, 0.6, 0.8, 0],  # erased
        [0.6, 0.0, 0.8, 0],  # a face that is raw
        [0.6, 0.0, -0.8, 0],  # no face, left as it is
        [0.0, 1.0, 0.0, 0],  # nothing to remove
        [0.0, 0.0, 0.0, 0],
        [0.0, 0.3, 0.4, 0],  # erased, and of another length
    ]
)


def test_each_vector_is_told_apart_raw_erased_no_face_zero_or_of_another_length() -> None:
    """What ``erase_arrivals`` of stores goes by."""
    assert Check(removing(FIRST)).is_erased(RAW).tolist() == [True, False, False, True, True, False]
    assert Check(removing(FIRST, unit=False)).is_erased(RAW).tolist() == [True, False, False, True, True, True]
    assert Check(gated()).is_erased(RAW).tolist() == [True, False, True, True, True, False]
    assert " after gated " in str(released_space(gated(), None).encoder), "what is released says that a gate decided"
    assert Check(gated(0.9)).is_erased(RAW).tolist() == [True, False, False, True, True, False]
    assert Check(removing(FIRST)).is_erased(RAW.astype(np.float32)).tolist() == [True, False, False, True, True, False]


def test_what_a_gate_takes_for_no_face_is_counted_and_may_keep_everything() -> None:
    check = Check(gated())
    check.add(RAW[[0, 2, 2, 3]])
    assert (check.not_faces, check.largest_left, check.rows) == (2, 0.0, 4)
    check.add(7 * RAW[[2]])
    assert (check.not_faces, check.largest_left) == (3, 0.0), "of any length"
    check.add(RAW[[1]])
    assert check.not_faces == 3
    assert check.largest_left == pytest.approx(0.6)


@pytest.mark.parametrize("stored", ["float16", "float32"])
@pytest.mark.parametrize("mean", [None, [0.2, 0.1, -0.3, 0.4]])
def test_vectors_as_they_are_stored_are_judged_as_in_double_precision(stored: str, mean: list[float] | None) -> None:
    """Raw, erased, almost erased, of length zero, tiny, huge and not numbers: all at once and one by one."""
    rng = np.random.default_rng(0)
    by = removing(FIRST, SECOND, mean=mean)
    raw = rng.standard_normal((200, 4))
    rows = np.concatenate([raw / np.linalg.norm(raw, axis=1, keepdims=True), by.apply(raw), raw[:5], 0 * raw[:2]])
    almost = by.apply(raw[:20]) + np.outer(np.geomspace(1e-8, 1e-2, 20), FIRST)
    odd = np.array([[np.nan, 0, 1, 0], [0, 0, np.inf, 0], [0, 0, 1e-30, 0], [0, 0, 1e30, 1e30]])
    with np.errstate(over="ignore"):
        vectors = np.concatenate([rows, almost, odd]).astype(stored)
    check, exact = Check(by), Check(by)
    with np.errstate(invalid="ignore"):
        lengths, left = exact._exactly(vectors.astype(np.float64))
        allowed = {"float16": 4e-3, "float32": 4e-6}[stored]
        wanted = ((left <= allowed) & (np.abs(lengths - 1) <= allowed)) | (lengths == 0)
        np.testing.assert_array_equal(check.is_erased(vectors), wanted)
        assert 200 < wanted.sum() < 260
        check.add(vectors[: len(rows) + len(almost)])
        assert check.largest_left == pytest.approx(np.nanmax(left[: len(rows) + len(almost)]), rel=1e-12)
        assert check.degenerate == 2
