"""If these fail, an audit of the people a projection was fitted on passes for one of strangers, or names them."""

import numpy as np
import pytest

from unface.erase.fitted_on import FittedOn, too_many

FITTED = [f"person {number}" for number in range(400)]
OTHERS = [f"stranger {number}" for number in range(4000)]
RECORD = FittedOn.of(FITTED, np.eye(3))


def test_everybody_who_was_fitted_on_matches_and_of_others_about_one_in_eight() -> None:
    assert RECORD.matches(FITTED).all()
    share = float(RECORD.matches(OTHERS).mean())
    assert RECORD.chance == pytest.approx(1 - np.exp(-1 / 8), abs=0.02)
    assert share == pytest.approx(RECORD.chance, abs=4 * np.sqrt(0.12 * 0.88 / len(OTHERS)))


def test_the_record_is_the_same_for_any_order_and_another_for_other_directions() -> None:
    again = FittedOn.of(reversed(FITTED), np.eye(3))
    assert again.to_fields() == RECORD.to_fields()
    other = FittedOn.of(FITTED, 2 * np.eye(3))
    assert other.salt != RECORD.salt
    assert (other.matches(OTHERS) != RECORD.matches(OTHERS)).any(), "strangers who match differ"
    assert FittedOn.from_fields(RECORD.to_fields()).matches(FITTED).all()


def test_too_many_matches_are_those_that_strangers_do_not_have() -> None:
    assert not too_many(12, 100, 0.12)
    assert too_many(60, 100, 0.12)
    assert not too_many(int(RECORD.matches(OTHERS[:300]).sum()), 300, RECORD.chance)
