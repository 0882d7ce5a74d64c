"""If this fails, an encoder cannot be had by its name, or one that another package brings cannot take part."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.encode.tiny import noise
from tests.real import weights_here
from unface.encode import load_encoder
from unface.errors import UnfaceError
from unface.models import cards

RUN = {"onnx", "dlib_resnet", "facenet_pb", "tflite", "mobilenet_v2", "efficientnet_lite0", "augnet_r50"}
PACKAGED = [one.name for one in cards() if one.task == "encoder" and one.architecture in RUN and one.sha256]

MODULE = """
import numpy as np
from unface.models import Card, Input, Licence

PLAIN = Input(8, "NHWC", "RGB", "uint8", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), "none", "stretch")


class Mean:
    name, dim = "mean", 3
    card = Card(
        "mean", "encoder", "own", "general", PLAIN, None, "none", 3, Licence("CC0", False), "", (), (), "f", 0, ""
    )

    def encode(self, images):
        return np.stack([image.mean(axis=(0, 1)) for image in images]).astype(np.float32)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip would leave it, with one entry point."""
    (tmp_path / "somebodys_encoder.py").write_text(MODULE)
    info = tmp_path / "somebodys_encoder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-encoder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[unface.encoders]\nmean = somebodys_encoder:Mean\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_a_registered_encoder_is_loaded_by_its_name() -> None:
    encoder = load_encoder("mean")
    images = noise(2)
    np.testing.assert_allclose(encoder.encode(images), [image.mean(axis=(0, 1)) for image in images], rtol=1e-6)


@pytest.mark.parametrize("name", PACKAGED)
def test_every_packaged_encoder_runs_and_keeps_what_its_card_says(name: str) -> None:
    weights_here(name)
    try:
        encoder = load_encoder(name, accept_licence=True, threads=1)
    except UnfaceError as error:
        if "install" not in str(error):
            raise
        pytest.skip(str(error))
    size = encoder.card.input.size
    images = [*noise(2, size=size), np.full((size, 2 * size, 3), 90, dtype=np.uint8)]
    vectors = encoder.encode(images)
    assert vectors.shape == (3, encoder.card.dim)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()
    np.testing.assert_allclose(vectors[:1], encoder.encode(images[:1]), atol=1e-3 * np.abs(vectors).max())
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3 * np.abs(vectors).max()


def test_a_detector_is_no_encoder() -> None:
    with pytest.raises(UnfaceError, match="yunet: is a detector, not an encoder"):
        load_encoder("yunet")


def test_an_unknown_name_is_one_sentence() -> None:
    with pytest.raises(UnfaceError, match="arcface"):
        load_encoder("arcface-mbv")


def test_missing_libraries_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder._LIBRARIES", ("PIL", "surely_not_there"))
    with pytest.raises(UnfaceError, match=r"need surely_not_there, not installed; run pip install 'unface\[images\]'"):
        load_encoder("sface")


def test_an_encoder_that_needs_torch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.encode.encoder.find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(UnfaceError, match=r"^augnet-r50: needs torch, not installed; run pip install"):
        load_encoder("augnet-r50")


def test_torchscript_is_a_program_and_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    program = replace(next(one for one in cards() if one.name == "sscd"), name="script", architecture="torchscript")
    monkeypatch.setattr("unface.encode.encoder.card", lambda name: program)
    with pytest.raises(UnfaceError, match="script: TorchScript is a program, so it is never loaded; export it to ONNX"):
        load_encoder("script")
