"""Pictures of nobody, which are always here; real weights and photographs where this machine has them, else a skip."""

import os
from pathlib import Path

import pytest

from unface.errors import UnfaceError
from unface.models import card, weights

_NOBODY = Path(__file__).parent / "pictures" / "nobody.zip"
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def nobody_pictures() -> Path:
    """24 adults who do not exist × 12 pictures of 256 pixels (docs/data.md)."""
    return _NOBODY


def weights_here(name: str) -> Path:
    """The file of a card, if it is in the cache."""
    try:
        return weights(card(name), accept_licence=True, offline=True)
    except UnfaceError as error:
        pytest.skip(f"no weights of {name} here ({error})")


def pictures_here(name: str) -> Path:
    """A set of pictures from the folder that UNFACE_DATA names."""
    path = Path(os.environ.get("UNFACE_DATA", _BESIDE)) / name
    if not path.exists():
        pytest.skip(f"no {name} here; UNFACE_DATA names the folder it is in")
    return path
