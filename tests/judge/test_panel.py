"""If this fails, a picture is filed under somebody who is not on it, or a judge sees another picture on a GPU."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.real import weights_here
from tests.refusals.table import refused
from tests.synth.toy import Hue, degrees, judges
from unface.encode import load_encoder
from unface.judge import THRESHOLDS, EncoderRecogniser, PanelJudge, Thresholds, load_panel, verdicts
from unface.models import card

BOTH = judges(apart=30, same=20)


def points(angles: Sequence[float]) -> NDArray[np.float32]:
    radians = np.radians(np.asarray(angles, dtype=float))
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


PEOPLE = (points([0, 90]), points([0, 90]))


@pytest.mark.parametrize(
    ("upper", "lower", "reason"),
    [
        (19, -19, None),
        (21, 0, "not the person (upper)"),
        (0, 21, "not the person (lower)"),
        (21, 21, "not the person (upper)"),
        (None, None, "no face"),
    ],
)
def test_a_picture_is_accepted_only_if_both_judges_know_the_person(
    upper: float | None, lower: float | None, reason: str | None
) -> None:
    seen = tuple(points([] if angle is None else [angle]) for angle in (upper, lower))
    assert verdicts([upper is not None], seen, 0, PEOPLE, BOTH) == [reason]


def test_a_picture_on_which_a_judge_finds_somebody_else_nearer_is_rejected() -> None:
    lenient = tuple(PanelJudge(Hue(name, True), Thresholds(0.9, degrees(60))) for name in ("upper", "lower"))
    seen = (points([50, 10, 50]), points([10, 50, 61]))
    assert verdicts([True] * 3, seen, 0, PEOPLE, lenient) == [
        "nearer to another person",
        "nearer to another person",
        "not the person (lower)",
    ]


def test_pictures_without_a_face_do_not_shift_the_others() -> None:
    seen = (points([0, 40]), points([0, 0]))
    assert verdicts([False, True, False, True], seen, 0, PEOPLE, BOTH) == [
        "no face",
        None,
        "no face",
        "not the person (upper)",
    ]


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
    plain, moved = (EncoderRecogniser(encoder, device).embed(frames) for device in ("cpu", "cpu:0"))
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose((plain * moved).sum(axis=1), 1, rtol=1e-4)
    assert EncoderRecogniser(encoder, "cpu:0").embed([]).shape == (0, encoder.dim)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "expected 2"),
        (["sface", "vggface"], "'vggface'"),
    ],
)
def test_judges_that_cannot_be_had_are_refused(names: list[str], words: str) -> None:
    with refused("judge", None, words):
        load_panel(names)
