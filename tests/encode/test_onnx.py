"""If this fails, a batch gives other vectors than its pictures alone, or another tensor is taken for the vector."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.encode.tiny import DIM, card, expected, noise, write_onnx
from tests.real import weights_here
from tests.refusals.table import refused
from unface.encode.onnx import OnnxEncoder
from unface.models import card as shipped


def test_vectors_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    images = noise(5)
    vectors = encoder.encode(images)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(images), rtol=1e-4, atol=1e-5)
    assert encoder.encode([]).shape == (0, DIM)


def test_a_file_made_for_one_picture_takes_many_at_once(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx"))
    sizes: list[int] = []
    run = encoder._run
    encoder._run = lambda batch: (sizes.append(len(batch)), run(batch))[1]  # type: ignore[method-assign, func-returns-value]
    encoder.encode(noise(5))
    assert sizes == [5]


def test_a_file_whose_pictures_influence_each_other_is_run_one_by_one(tmp_path: Path) -> None:
    encoder = OnnxEncoder(card(), write_onnx(tmp_path / "tiny.onnx", kind="mixing"))
    images = noise(4)
    np.testing.assert_allclose(encoder.encode(images), 2 * expected(images), rtol=1e-4, atol=1e-5)


def test_a_tensor_from_the_inside_can_be_the_vector(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx", kind="mixing")
    encoder = OnnxEncoder(card(output="vector"), path)
    images = noise(4)
    np.testing.assert_allclose(encoder.encode(images), expected(images), rtol=1e-4, atol=1e-5)
    with refused("encoder", "tiny.onnx", "'absent'", "'output'"):
        OnnxEncoder(card(output="absent"), path)


def test_a_card_that_promises_another_length_is_one_sentence(tmp_path: Path) -> None:
    with refused("encoder", "tiny", "gives 8", "says 9", "'dim'"):
        OnnxEncoder(card(dim=9), write_onnx(tmp_path / "tiny.onnx"))


def test_a_file_that_is_no_onnx_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tiny.onnx").write_bytes(b"\x08\x07 nothing of the kind")
    with refused("encoder", "tiny.onnx", "readable"):
        OnnxEncoder(card(), tmp_path / "tiny.onnx")


@pytest.mark.parametrize("name", ["arcface-mbf", "sface", "edgeface-s", "sscd-distilled"])
def test_shipped_encoders_give_the_same_one_by_one_and_together(name: str) -> None:
    import onnxruntime

    path = weights_here(name)
    encoder = OnnxEncoder(shipped(name), path, threads=1)
    images = noise(3, size=shipped(name).input.size)
    together = encoder.encode(images)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    plain = onnxruntime.InferenceSession(str(path), options)
    from unface.encode import tensor_of

    for row, image in enumerate(images):
        batch = tensor_of([image], shipped(name).input)
        (alone,) = plain.run(None, {plain.get_inputs()[0].name: batch})
        np.testing.assert_allclose(together[row], alone[0], atol=1e-4 * np.abs(alone).max())


def test_rewriting_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "tiny.onnx")
    before = path.read_bytes()
    OnnxEncoder(card(), path).encode(noise(2))
    assert path.read_bytes() == before
    assert onnx.load(str(path)).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1
