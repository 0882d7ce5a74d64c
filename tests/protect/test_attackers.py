"""If these fail, an attacker of a release is weaker than said, or is chosen by the people who are measured."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.invert.toy import ToyEncoder
from tests.protect.test_facemae_train import TOY
from tests.refusals.table import refused
from unface.protect.attackers import (
    Attacker,
    Deployed,
    FineTuning,
    Seen,
    fine_tuned_attacker,
    imitating_attacker,
    registry_attacker,
)
from unface.protect.baselines import MaskedFaces, contents_of
from unface.protect.facemae import MaskedAutoencoder, Masking
from unface.protect.facemae_audit import second_release
from unface.result.numbers import Share, wilson_ends
from unface.result.protection import AttackerResult, MethodResult
from unface.score import Threshold
from unface.seeds import stream

Frames = NDArray[np.uint8]


def nothing(frames: Frames) -> NDArray[np.float32]:
    raise AssertionError


def seen(real: object, released: object, people: object, calibrate: object) -> Seen:
    return Seen(
        Attacker("by hand", "recogniser", nothing, nothing),
        np.asarray(real, np.float32),
        np.asarray(released, np.float32),
        np.asarray(people),
        np.asarray(calibrate, bool),
    )


def on_circle(*degrees: float) -> NDArray[np.float32]:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_threshold_and_tar_worked_by_hand() -> None:
    """Calibrate people 0, 1 are 90° apart up to one stranger pair at 60° and one at 70°; FAR 1/2 of 8 allows 4."""
    real = on_circle(0, 0, 90, 90, 0, 0, 180, 180)
    released = on_circle(30, 0, 70, 90, 0, 40, 120, 180)
    one = seen(real, released, [0, 0, 1, 1, 2, 2, 3, 3], [1, 1, 1, 1, 0, 0, 0, 0])
    # Strangers among 0 and 1: 0 → 70, 90 (twice); 90 → 30 (60° apart), 0 (twice). Cosines .342, 0, .5, 0, each twice.
    threshold = one.threshold(0.5)
    assert threshold.cosine == pytest.approx(0.0, abs=1e-6)
    assert threshold.cosine > 0  # the fifth is rejected
    assert one.threshold(0.49).cosine == pytest.approx(np.cos(np.radians(70)), abs=1e-6)
    assert (threshold.false_accepts, threshold.impostors) == (4, 8)
    same, other, achieved = one.linked(Threshold.known(0.5, np.cos(np.radians(45))), 0, calibrate=False)
    # Same picture: 0–0 and 180–180 are linked, 0–40 too, 180–120 not. Other: 0–40, 0–0, 180–180 yes, 180–120 no.
    assert (same.hits, same.trials) == (3, 4)
    assert other is not None
    assert (other.hits, other.trials) == (3, 4)
    assert achieved == 0
    loose = Threshold.known(0.5, np.cos(np.radians(125)))
    assert one.linked(loose, 0, calibrate=False)[2] == pytest.approx(2 / 8)  # 0–120, twice


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = stream(0, "vectors")
    real, released = (random.standard_normal((60, 8)) for _ in range(2))
    one = seen(real, released, np.arange(60) // 3, np.arange(60) < 30)

    def found() -> tuple[list[float], Share, float]:
        threshold = one.threshold(0.01)
        same, _, strangers = one.linked(threshold, 0, calibrate=False)
        return [threshold.cosine, *threshold.tail.scores.tolist()], same.share, strangers

    scores, *whole = found()
    monkeypatch.setattr("unface.judge.template._BLOCK", 7)
    again, *parts = found()
    assert parts == whole
    np.testing.assert_allclose(again, scores, atol=1e-6)


def test_random_vectors_link_at_chance_and_too_few_people_are_refused() -> None:
    random = stream(1, "vectors")
    drawn = [random.standard_normal((400, 16)) for _ in range(2)]
    real, released = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in drawn)
    one = seen(real, released, np.arange(400) // 4, np.arange(400) < 200)
    found = one.result(0, far=0.05)
    assert found.achieved_far == pytest.approx(0.05, abs=0.01)
    assert found.other is not None
    assert found.other.low < 0.05 < found.other.high
    risk = found.risk(1, "other")
    assert risk is not None
    assert risk.share.low < risk.chance < risk.share.high
    few = seen(np.eye(4), np.eye(4), [0, 1, 2, 3], [1, 1, 0, 0])
    with refused("protection", None, "0.001", "2"):
        few.threshold()


def people_of(count: int, each: int = 4, noise: int = 12, side: int = 8) -> tuple[Frames, NDArray[np.int64]]:
    """Pictures of one person differ by a little noise."""
    random = stream(2, "people")
    bases = random.integers(40, 216, (count, 1, side, side, 3))
    frames = bases + random.integers(-noise, noise + 1, (count, each, side, side, 3))
    return frames.reshape(-1, side, side, 3).astype(np.uint8), np.arange(count).repeat(each)


def protected(frames: Frames) -> Frames:
    """Upside down and inverted: what a recogniser of the real world does not know."""
    return np.ascontiguousarray(255 - frames[:, ::-1])


def tar(attacker: Attacker, deployed: Deployed) -> float:
    other = Seen.of(attacker, deployed, 0).result(0, far=0.01).other
    assert other is not None
    return other.value


def test_an_attacker_who_fine_tunes_learns_what_the_published_one_does_not_see() -> None:
    frames, people = people_of(60)
    mine, theirs = people < 40, people >= 40
    deployed = Deployed(frames[theirs], protected(frames[theirs]), people[theirs])
    own = Deployed(frames[mine], protected(frames[mine]), people[mine])
    before = tar(registry_attacker(ToyEncoder()), deployed)
    tuned = fine_tuned_attacker(ToyEncoder(), own, FineTuning(steps=150, people=20, learning_rate=3e-3))
    assert before < 0.2
    assert tar(tuned, deployed) > 0.5
    assert tar(imitating_attacker(ToyEncoder(), protected), deployed) > 0.5  # both sides look alike
    assert tar(registry_attacker(ToyEncoder()), deployed) == before  # the published one is left as it was
    with refused("protection", None, "least"):
        fine_tuned_attacker(ToyEncoder(), replace(own, people=np.zeros(len(own.people), np.int64)), FineTuning())


def test_a_recogniser_aligned_in_another_way_is_refused() -> None:
    encoder = ToyEncoder()
    encoder.card = replace(encoder.card, input=replace(encoder.card.input, alignment="chip150"))
    with refused("protection", None, "'chip150'"):
        registry_attacker(encoder)


def test_the_worst_attacker_is_chosen_on_other_people() -> None:
    def one(name: str, chosen: float, hits: int) -> AttackerResult:
        share = Share((hits + 5) / 20, *wilson_ends((hits + 5) / 20, 20, 1.96), 0.95, hits + 5, 20, 2)
        return AttackerResult(
            name=name, kind="recogniser", far=1e-3, cosine=0.5, achieved_far=1e-3, same=share, other=share,
            calibrate_other=chosen, retrieval=[],
        )  # fmt: skip

    method = MethodResult(
        name="FaceMAE", ratio=0.75, pictures=4, people=2, utility=[], attackers=[one("a", 0.4, 1), one("b", 0.3, 9)]
    )
    assert method.worst is not None
    assert method.worst.name == "a"


@pytest.fixture
def faces() -> MaskedFaces:
    frames = stream(0, "faces").integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    return MaskedFaces.of(frames, contents_of(frames), Masking(0.75), TOY, bytes(32))


def test_baselines_show_what_the_mask_shows_and_nothing_else(faces: MaskedFaces) -> None:
    assert faces.shown.mean() == 0.25
    np.testing.assert_array_equal(faces.masks()[faces.shown], faces.frames[faces.shown])
    assert not faces.masks()[~faces.shown].any()
    coloured = faces.mean_colour()
    np.testing.assert_array_equal(coloured[faces.shown], faces.frames[faces.shown])
    np.testing.assert_array_equal(
        np.unique(coloured[0][~faces.shown[0]], axis=0), [np.rint(faces.frames[0][faces.shown[0]].mean(axis=0))]
    )
    low = faces.low_pass()
    assert low.shape == faces.frames.shape
    flat = replace(faces, frames=np.full_like(faces.frames, 77))
    np.testing.assert_array_equal(flat.low_pass(), flat.frames)


HOW: list[Callable[[MaskedFaces], Frames]] = [MaskedFaces.masks, MaskedFaces.mean_colour]


@pytest.mark.parametrize("how", [*HOW, lambda faces: faces.made_by(MaskedAutoencoder(TOY).initialise(0))])
def test_hidden_pixels_change_no_byte_of_what_is_made(faces: MaskedFaces, how: Callable[[MaskedFaces], Frames]) -> None:
    changed = np.where(faces.shown[..., None], faces.frames, 255 - faces.frames)
    np.testing.assert_array_equal(how(replace(faces, frames=changed)), how(faces))


def test_a_second_release_shows_no_new_pixel_with_the_same_seed_and_44_percent_with_another(faces: MaskedFaces) -> None:
    frames, people = people_of(30, 4, side=16)
    contents = contents_of(frames)
    masked, again, other = (
        MaskedFaces.of(frames, contents, Masking(0.75), TOY, key) for key in (bytes(32), bytes(32), bytes([1] * 32))
    )

    def embed(given: Frames) -> NDArray[np.float32]:
        flat = given.reshape(len(given), -1).astype(np.float32) - 128
        unit: NDArray[np.float32] = flat / np.linalg.norm(flat, axis=1, keepdims=True)
        return unit

    attacker = Attacker("pixels", "recogniser", embed, embed)
    deployed = Deployed(frames, masked.mean_colour(), people)
    found = second_release(attacker, deployed, masked, again, other, other.mean_colour(), 0)
    assert found.same_seed_shown == 0.25
    assert found.other_seed_shown == pytest.approx(1 - 0.75**2, abs=0.02)
    assert found.both.value >= found.one.value
