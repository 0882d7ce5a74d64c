"""If this fails, a card no longer describes the package it names.

Off unless asked for: UNFACE_TEST_PACKAGES is a folder of files that ``pip download --no-deps`` fetched;
UNFACE_TEST_INDEX=1 asks the index that pip is set to use.
"""

import hashlib
import os
from pathlib import Path

import pytest

from tests.models.conftest import Use
from tests.models.served import Index, serving
from unface.models import Card, Package, card, cards, weights
from unface.models.index import fits

FOLDER = os.environ.get("UNFACE_TEST_PACKAGES")
CONFIGURED = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
PACKAGED = [one for one in cards() if any(isinstance(source, Package) for source in one.sources)]


@pytest.mark.skipif(not FOLDER, reason="UNFACE_TEST_PACKAGES names no folder of downloaded packages")
@pytest.mark.parametrize("one", PACKAGED, ids=lambda one: one.name)
def test_a_card_describes_the_package_it_names(one: Card, use: Use) -> None:
    (source,) = (source for source in one.sources if isinstance(source, Package))
    held = {path.name: path for path in Path(FOLDER or "").iterdir() if fits(path.name, source)}
    if not held:
        pytest.skip(f"{source.package}=={source.version} is not in the folder")
    with serving(Index(dict(held))) as index:
        use(index)
        path = weights(one, accept_licence=True)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == one.sha256
    assert [part.bytes for part in one.parts] == [path.with_name(part.file).stat().st_size for part in one.parts]
    path.unlink()  # pytest keeps the folders of a few runs, and all models together are large


@pytest.mark.skipif(os.environ.get("UNFACE_TEST_INDEX") != "1", reason="UNFACE_TEST_INDEX=1 does not ask for it")
@pytest.mark.parametrize("name", ["yunet", "sface"])
def test_the_configured_index_has_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PIP_CONFIG_FILE", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable)
    for variable, value in CONFIGURED.items():
        monkeypatch.setenv(variable, value)
    path = weights(card(name))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == card(name).sha256
