"""If this fails, a judge sees another picture on a GPU than on the CPU, or is asked for by a name it does not go by."""

import numpy as np
import pytest

from tests.real import weights_here
from unface.encode import load_encoder
from unface.errors import UnfaceError
from unface.models import card
from unface.synth import THRESHOLDS, EncoderJudge, load_judges


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds_leave_a_gap_and_are_of_recognisers_that_have_a_card(name: str) -> None:
    assert 0 < THRESHOLDS[name].apart < THRESHOLDS[name].same < 1
    assert card(name).family == "recognition"


@pytest.mark.parametrize("name", ["arcface-mbf", "sface"])
def test_the_torch_module_judges_as_the_onnx_file_does(name: str) -> None:
    weights_here(name)
    encoder = load_encoder(name, accept_licence=True, threads=1)
    # "cpu:0" is not "cpu", so that the way to a GPU is taken without one.
    frames = list(np.random.default_rng(0).integers(0, 256, (3, 112, 112, 3), dtype=np.uint8))
    plain, moved = (EncoderJudge(encoder, device).embed(frames) for device in ("cpu", "cpu:0"))
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose((plain * moved).sum(axis=1), 1, rtol=1e-4)
    assert EncoderJudge(encoder, "cpu:0").embed([]).shape == (0, encoder.dim)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "judges are none; expected 2 or more different ones"),
        (["sface", "vggface"], "judge 'vggface' has no known thresholds; choose from arcface-mbf, edgeface-s, sface"),
    ],
)
def test_judges_that_cannot_be_had_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(UnfaceError, match=words):
        load_judges(names)
