"""If these fail, a raw query put to an index of erased vectors finds other things than its erased form would."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.erase.people import people
from unface.erase import ISP, LEACE, Eraser, Projection

faiss = pytest.importorskip("faiss", reason="faiss is not installed")

ERASERS = [ISP(20), ISP(50), ISP(80), ISP(0), LEACE(20), LEACE(80), LEACE(), ISP(20, normalise=False)]


def before(projection: Projection, index: Any) -> Any:
    for step in reversed(projection.faiss_transform()):
        index = faiss.IndexPreTransform(step, index)
    return index


@pytest.mark.parametrize("eraser", ERASERS, ids=repr)
def test_the_transforms_in_order_are_apply_within_rounding(eraser: Eraser) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    vectors = made.vectors
    for step in found.faiss_transform():
        vectors = step.apply(vectors)
    wanted = found.apply(made.vectors)
    assert vectors == pytest.approx(wanted, abs=4e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("eraser", [ISP(20), LEACE(20), ISP(20, normalise=False)], ids=repr)
def test_raw_queries_find_what_erased_ones_find_also_after_the_index_was_saved(eraser: Eraser, tmp_path: Path) -> None:
    made = people(120, 3, 100)
    found = eraser.fit(made.vectors, made.identities).projection_
    erased = found.apply(made.vectors)
    index = faiss.IndexFlatL2(100)
    index.add(erased)
    faiss.write_index(before(found, index), str(tmp_path / "index"))
    opened = faiss.read_index(str(tmp_path / "index"))
    near, at = opened.search(made.vectors, 5)
    assert np.array_equal(at[:, 0], np.arange(len(made)))
    assert np.array_equal(at[:, 1], index.search(erased, 2)[1][:, 1])
    assert near[:, 0] == pytest.approx(0, abs=1e-4 * float(np.square(erased).sum(axis=1).max()))
