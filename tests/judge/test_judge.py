"""If this fails, a judge accepts more strangers than it states, or states a rate that its calibration cannot show."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import unface
from tests.real import weights_here
from tests.refusals.table import refused
from tests.synth.toy import PLANE, DarkIsNobody, Hue, degrees, judges
from unface.data import EmbeddingSet, Space
from unface.encode import load_encoder
from unface.judge import THRESHOLDS, EncoderRecogniser, Judge, PanelJudge, Threshold, Thresholds, load_panel, verdicts
from unface.metrics import Resolution
from unface.models import card

UPPER = Hue("upper", True)


def points(angles: Sequence[float]) -> NDArray[np.float32]:
    radians = np.radians(np.asarray(angles, dtype=float))
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def people(space: Space | None = None) -> EmbeddingSet:
    """Six people, seven pictures: one mated pair, 1° apart, and 20 impostor pairs."""
    identities = ["p0", "p0", "p1", "p2", "p3", "p4", "p5"]
    return EmbeddingSet.from_arrays(points([0, 1, 10, 30, 70, 150, 250]), identities, space=space)


# Worked by hand from the angles above.
IMPOSTOR_ANGLES = (9, 10, 20, 29, 30, 40, 60, 69, 70, 80, 100, 110, 111, 120, 120, 140, 140, 149, 150, 180)


@pytest.mark.parametrize(("far", "accepted"), [(0.15, 3), (0.2, 4), (0.24, 4), (0.5, 10), (0.95, 19)])
def test_a_threshold_lies_just_above_the_first_impostor_pair_that_must_be_rejected(far: float, accepted: int) -> None:
    (threshold,) = Judge.calibrated(UPPER, people(), [far]).thresholds
    rejected = math.cos(math.radians(IMPOSTOR_ANGLES[accepted]))
    assert threshold.cosine == pytest.approx(rejected, abs=1e-6)
    assert (threshold.far, threshold.impostors, threshold.false_accepts) == (far, 20, accepted)
    assert threshold.achieved_far == accepted / 20


def test_ties_at_the_threshold_are_all_rejected() -> None:
    """Cosines of the four directions are 0 four times and −1 twice: three may be accepted, so none of the four is."""
    axes = EmbeddingSet.from_arrays(np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), ["a", "b", "c", "d"])
    (threshold,) = Judge.calibrated(UPPER, axes, [0.5]).thresholds
    assert (threshold.cosine, threshold.false_accepts) == (float(np.nextafter(np.float32(0), np.float32(1))), 0)


def test_pairs_nearer_than_the_threshold_are_one_person_and_the_pair_that_set_it_is_not() -> None:
    judge = Judge.calibrated(UPPER, people(), [0.15])  # set by the pair at 1° and 30°
    comparison = judge.compare(points([0, 0, 1, 10]), points([19, 28.9, 30, 39.1]), 0.15)
    np.testing.assert_allclose(comparison.scores, np.cos(np.radians([19, 28.9, 29, 29.1])), atol=1e-6)
    assert comparison.same.tolist() == [True, True, False, False]
    assert comparison.threshold is judge.thresholds[0]


def test_length_does_not_matter_and_a_zero_vector_is_nobody() -> None:
    # At a FAR that accepts nearly all impostor pairs the threshold is negative, and a cosine of 0 would reach it.
    judge = Judge.calibrated(UPPER, people(), [0.95])
    assert judge.thresholds[0].cosine < 0
    first, second = np.array([[3.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.0], [1.0, 0.0], [0.0, 0.0]])
    comparison = judge.compare(first, second, 0.95)
    assert comparison.scores[0] == 1
    assert comparison.same.tolist() == [True, False, False]
    assert comparison.compared.tolist() == [True, False, False]
    assert len(judge.compare(np.zeros((0, 2)), np.zeros((0, 2)), 0.95).scores) == 0


def test_thresholds_are_those_of_verification_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    identities = np.repeat(np.arange(60), 4)
    vectors = rng.standard_normal((60, 8))[identities] + 0.5 * rng.standard_normal((240, 8))
    fars = (1e-1, 1e-2, 1e-3)
    judge = Judge.calibrated(Wide(), EmbeddingSet.from_arrays(vectors, identities), fars)
    peer = unface.verify(vectors, identities, fars)
    for far in fars:
        at, expected = judge.at(far), peer.at[far]
        assert (at.cosine, at.false_accepts, at.impostors) == (
            expected.threshold,
            expected.false_accepts,
            expected.impostors,
        )
    i, j = np.triu_indices(240, 1)
    impostor = identities[i] != identities[j]
    for far in fars:
        same = judge.compare(vectors[i], vectors[j], far).same
        assert np.count_nonzero(same & impostor) == peer.at[far].false_accepts
        assert np.count_nonzero(same & ~impostor) == peer.at[far].accepted
    assert [judge.at(far).resolution for far in fars] == [Resolution.RESOLVED, Resolution.RESOLVED, Resolution.COARSE]


class Wide(Hue):
    def __init__(self) -> None:
        super().__init__("wide", True)

    @property
    def space(self) -> Space:
        return Space("wide", None, 8, normalised=False)


def test_a_rate_that_the_calibration_set_cannot_resolve_is_refused_with_how_many_people_it_takes() -> None:
    # 3 false accepts are expected at 3/20, fewer below. 20 picture pairs of 15 pairs of people: for m people at 0.01,
    # m (m − 1) / 2 · 4/3 · 0.01 is 2.8 for 21 and 3.08 for 22.
    assert Judge.calibrated(UPPER, people(), [0.15]).thresholds[0].resolution is Resolution.COARSE
    with refused("judge", "upper", "FAR 0.01", "20", "6", "22 identities"):
        Judge.calibrated(UPPER, people(), [0.5, 0.01])


@pytest.mark.parametrize("far", [0.0, 1.0, -0.1, math.nan])
def test_a_rate_that_is_none_is_refused(far: float) -> None:
    with refused("judge", None, "above 0", "below 1"):
        Judge.calibrated(UPPER, people(), [far])


def test_a_rate_that_was_not_calibrated_is_refused() -> None:
    judge = Judge(UPPER, (Threshold(0.1, 0.5, 100, 10), Threshold(0.01, 0.7, 1000, 10)))
    with refused("judge", "upper", "0.02", "from 0.1", "0.01"):
        judge.compare(points([0]), points([1]), 0.02)


@pytest.mark.parametrize(
    "space",
    [Space("lower", None, 2, normalised=False), Space("upper", "f" * 64, 2, normalised=False)],
    ids=["another encoder", "other weights"],
)
def test_vectors_of_another_space_calibrate_nothing(space: Space) -> None:
    with refused("judge", None, "'upper'"):
        Judge.calibrated(Weighed(), people(space), [0.5])


class Weighed(Hue):
    def __init__(self) -> None:
        super().__init__("upper", True)

    @property
    def space(self) -> Space:
        return Space("upper", "0" * 64, 2, normalised=True)


def test_vectors_of_another_length_calibrate_nothing() -> None:
    with refused("judge", None, "embedding"):
        Judge.calibrated(UPPER, EmbeddingSet.from_arrays(np.eye(3), ["a", "b", "c"]), [0.5])


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (np.ones((2, 3)), np.ones((2, 3)), "first"),
        (np.ones((2, 2)), np.ones((3, 2)), "second has"),
        (np.ones((2, 2)), np.array([[1, 1], [math.nan, 1]]), "row 1"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(
    first: NDArray[np.float64], second: NDArray[np.float64], words: str
) -> None:
    with refused("judge", "upper", words):
        Judge(UPPER, (Threshold(0.1, 0.5, 100, 10),)).compare(first, second, 0.1)


def picture(angle: float, brightness: float = 150) -> NDArray[np.uint8]:
    """Of one hue, which ``Hue`` reads as a point at that angle; ``DarkIsNobody`` finds no face if it is dark."""
    colour = brightness + 60 * points([angle])[0] @ PLANE
    return np.broadcast_to(np.round(colour).astype(np.uint8), (64, 64, 3)).copy()


def test_pictures_are_compared_by_their_faces_and_one_without_a_face_is_nobody() -> None:
    judge = Judge(UPPER, (Threshold(0.1, math.cos(math.radians(20)), 1000, 100),))
    first = [picture(0), picture(0), picture(50, brightness=40), picture(90)]
    second = [picture(15), picture(25), picture(50), picture(90)]
    comparison = judge.compare_pictures(first, second, 0.1, DarkIsNobody())
    assert comparison.same.tolist() == [True, False, False, True]
    assert comparison.compared.tolist() == [True, True, False, True]
    assert comparison.threshold.impostors == 1000
    with refused("judge", None, "4", "and 3"):
        judge.compare_pictures(first, second[:3], 0.1, DarkIsNobody())
    with refused("judge", "upper", "calibrated"):
        judge.compare_pictures(first, second, 0.2, DarkIsNobody())


BOTH = judges(apart=30, same=20)

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
