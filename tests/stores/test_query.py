"""If these fail, queries that were given in a type that cannot hold erased vectors search for nothing."""

import pytest

from tests.stores.contract import DIM, projection
from unface import UnfaceError


def test_whole_numbers_are_refused_by_the_torch_module_and_do_not_come_out_as_zero() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UnfaceError, match=r"vectors of torch.uint8; expected a float type, convert them first"):
        projection().torch_module()(torch.full((2, DIM), 7, dtype=torch.uint8))
