"""If these fail, a run continues what another command began, or cannot continue its own."""

from pathlib import Path

import pytest

from tests.refusals.table import refused
from unface.output.manifest import MANIFEST, agree, read_plan
from unface.output.place import Place, place_at

PLAN = {"encoder": "tiny", "batch_size": 4}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_at(tmp_path / "out")


def test_the_same_plan_continues_and_another_is_refused_by_what_differs(place: Place) -> None:
    assert read_plan(place) is None
    agree(place, PLAN)
    assert read_plan(place) == PLAN
    agree(place, PLAN)
    with refused("output", "out", "encoder, batch size", "--force"):
        agree(place, {"encoder": "big", "batch_size": 5})
    with refused("output", "out", "--out"):
        agree(place, {**PLAN, "seed": 1}, otherwise="another --out")
    assert read_plan(place) == PLAN


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_damaged_plan_is_named(place: Place, content: bytes) -> None:
    place.write(MANIFEST, content)
    with refused("output", "out", "_unface/manifest.json"):
        agree(place, PLAN)
