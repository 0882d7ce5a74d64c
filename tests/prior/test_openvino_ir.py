"""If this fails, weights are read from the wrong place of a file, or a damaged file is taken for a good one."""

from pathlib import Path

import numpy as np
import pytest

from tests.prior.tiny import write_ir
from tests.refusals.table import refused
from unface.prior.mobilestylegan import constants

WRITTEN = {
    "one": np.arange(6, dtype=np.float32).reshape(2, 3),
    "axis": np.array([7]),
    "scalar": np.array(0.5, dtype=np.float32),
    "two": -np.arange(4, dtype=np.float32),
}


def test_float_constants_come_by_name_in_the_order_of_the_graph(tmp_path: Path) -> None:
    found = constants(write_ir(tmp_path, "net", WRITTEN))
    assert list(found) == ["one", "scalar", "two"]
    for name, array in found.items():
        np.testing.assert_array_equal(array, WRITTEN[name])
        assert array.dtype == np.float32


@pytest.mark.parametrize("left", [0, 20, 47])
def test_weights_cut_short_are_refused(tmp_path: Path, left: int) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    path.write_bytes(path.read_bytes()[:left])
    with refused("prior", "net.bin", "constant"):
        constants(path)


def test_a_graph_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    graph = path.with_suffix(".xml")
    graph.write_bytes(graph.read_text().encode("utf-16"))
    with refused("prior", "net.xml", "readable"):
        constants(path)


@pytest.mark.parametrize("gone", ["net.bin", "net.xml"])
def test_half_of_the_two_files_is_told_by_its_name(tmp_path: Path, gone: str) -> None:
    path = write_ir(tmp_path, "net", WRITTEN)
    (tmp_path / gone).unlink()
    with refused("prior", ..., "cannot"):
        constants(path)
