"""If this fails, a probe that another package brings cannot take part in an audit."""

from pathlib import Path

import pytest

from unface import Protocol, audit, make_identities

MODULE = """
from unface.pairs import l2_space


class Distance:
    name, settings, notes = "distance", ({},), ()

    def fit(self, support):
        return self

    def space(self, setting, vectors):
        return l2_space(vectors)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip would leave it, with one entry point."""
    (tmp_path / "somebodys_probe.py").write_text(MODULE)
    info = tmp_path / "somebodys_probe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-probe\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[unface.probes]\ndistance = somebodys_probe:Distance\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_a_registered_probe_takes_part_and_agrees_with_cosine_on_unit_vectors() -> None:
    people = make_identities(60, 6, 8, between=1.5, seed=0)
    result = audit(
        people, eraser=(), far=0.05, k=1, protocol=Protocol(probe=("cosine", "distance"), seeds=2, bootstraps=100)
    )
    by_probe = {point.probe: point for point in result.spaces[0].points}
    cosine, distance = by_probe["cosine"].tar, by_probe["distance"].tar
    assert cosine is not None
    assert distance is not None
    # −‖a − b‖² = 2 cos − 2 for unit vectors: the same order, but for ties that rounding makes or breaks
    assert abs(cosine.numerator - distance.numerator) <= 2
