"""One installed package that registers a toy for every port: each contract holds it to what ours is held to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

TOYS = {
    "unface.probes": "toy = tests.contract.test_probe:Distance",
    "unface.erasers": "toy = tests.contract.test_eraser:FirstAxes",
    "unface.encoders": "toy = tests.contract.test_encoder:Mean",
    "unface.priors": "toy = tests.contract.test_prior:Grey",
    "unface.attacks": "toy = tests.contract.test_attack:Nearest",
    "unface.targets": "toy = tests.contract.test_target:Mirror",
    "unface.parts": "offset = tests.auditing.toy_part:Offset",
}


@pytest.fixture(scope="package", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A package as pip would leave it; other tests must not find it."""
    site: Path = tmp_path_factory.mktemp("site")
    info = site / "somebodys_toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-toys\nVersion: 1.0\n")
    lines = [f"[{group}]\n{place}\n" for group, place in TOYS.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        yield
