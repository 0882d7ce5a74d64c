"""A tiny encoder, and a zip of pictures for it."""

from pathlib import Path

import pytest

from tests.data.pictures import people, write_zip
from tests.encode.tiny import card, write_onnx
from unface.data import ImageSet, read_images
from unface.encode.onnx import OnnxEncoder


@pytest.fixture
def encoder(tmp_path: Path) -> OnnxEncoder:
    return OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))


@pytest.fixture
def pictures(tmp_path: Path) -> ImageSet:
    return read_images(write_zip(tmp_path / "faces.zip", people(9, 5)))
