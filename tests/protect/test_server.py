"""A server that undoes its front end: what it sees is least squares, and it is refused where it recognises nobody."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.encode.tiny import card
from tests.refusals.table import refused
from unface.data import Space
from unface.protect.certificate import SchemeFrontEnd
from unface.protect.frequency import SCHEMES, scheme
from unface.protect.server import ReconstructingServer, accuracy_caution, open_server, require_recognition, same_answers
from unface.seeds import stream

SIDE = 12


class Pixels:
    """A recogniser whose vectors are the pixels, so that what it is shown can be read off."""

    name = "pixels"
    wanted = replace(card(alignment="arcface112").input, size=SIDE)
    space = Space("pixels", None, 3 * SIDE * SIDE, False)

    def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.stack(frames).reshape(len(frames), -1).astype(np.float32)


def faces(count: int = 3) -> NDArray[np.uint8]:
    return stream(0, "faces").integers(60, 190, (count, SIDE, SIDE, 3)).astype(np.uint8)


@pytest.mark.parametrize("name", SCHEMES)
def test_without_noise_a_server_sees_what_least_squares_on_the_sent_channels_gives(name: str) -> None:
    server = ReconstructingServer(scheme(name, "as-attacked"), Pixels())
    colour = np.broadcast_to(np.array([136.0, 108.0, 89.0]), (3, SIDE, SIDE, 3)).copy()
    solved, _ = SchemeFrontEnd(scheme(name, "as-attacked"), SIDE).reconstruct(
        faces().astype(np.float64), colour, stream(0, "noise")
    )
    assert np.abs(server.reconstructed(faces()) - np.clip(solved, 0, 255)).max() < 0.6
    assert server.deterministic
    same_answers(server, list(faces()))


def test_the_three_schemes_as_attacked_hide_the_mean_of_each_colour_plane_and_nothing_else() -> None:
    """So their servers are one and the same, whatever channels they drop."""
    shown = [ReconstructingServer(scheme(name, "as-attacked"), Pixels()).reconstructed(faces()) for name in SCHEMES]
    assert all(np.array_equal(one, shown[0]) for one in shown)
    expected = faces() - faces().mean(axis=(1, 2), keepdims=True) + np.array([136.0, 108.0, 89.0])
    assert np.abs(shown[0] - np.clip(expected, 0, 255)).max() <= 0.51


def test_the_null_space_is_orthonormal_unseen_and_as_large_as_the_rank_says() -> None:
    front = SchemeFrontEnd(scheme("partialface"), 20)
    for number in (1, 5):
        null = front.null_space(number)
        assert len(null) == 400 - front.plane_spectrum(number).rank
        assert np.abs(null @ null.T - np.eye(len(null))).max() < 1e-9
        sent = front.front.channels(null.reshape(-1, 1, 20, 20).repeat(3, axis=1), number)
        assert np.abs(sent).max() < 1e-4


def test_noise_and_channels_by_lot_are_said_to_be_so() -> None:
    assert not ReconstructingServer(scheme("dctdp"), Pixels()).deterministic
    drawn = ReconstructingServer(scheme("partialface"), Pixels())
    assert not drawn.deterministic
    assert (drawn.embed(list(faces())) != drawn.embed(list(faces()))).any()


def test_a_server_that_claims_to_be_deterministic_and_is_not_is_refused() -> None:
    class Shaky(Pixels):
        calls = 0

        def embed(self, frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
            Shaky.calls += 1
            return super().embed(frames) + Shaky.calls

    server = ReconstructingServer(scheme("dctdp", "as-attacked"), Shaky())
    with refused("protection", "dctdp as-attacked pixels"):
        same_answers(server, list(faces()))


@pytest.mark.parametrize("accuracy", [0.969, 0.5])
def test_the_privacy_of_a_server_that_recognises_nobody_is_not_spoken_of(accuracy: float) -> None:
    with refused("protection", "weak", "below 97.0"):
        require_recognition("weak", accuracy)
    require_recognition("good", 0.97)


def test_a_server_is_opened_by_name_with_a_caution_unless_its_accuracy_is_known() -> None:
    server = open_server("duetface/published/arcface-mbf", lambda _: Pixels())
    assert (server.name, server.deterministic) == ("duetface published pixels", True)
    noisy = open_server("dctdp/published/arcface-mbf", lambda _: Pixels())
    assert (noisy.name, noisy.deterministic) == ("dctdp published pixels", False)
    for unknown in ("partialface/published/arcface-mbf", "dctdp/as-attacked/sface"):
        assert open_server(unknown, lambda _: Pixels()).name
        assert unknown in (accuracy_caution(unknown) or "")
    assert accuracy_caution("dctdp/published/arcface-mbf") is None
    with refused("protection", "'dctdp'"):
        open_server("dctdp", lambda _: Pixels())


def test_an_encoder_of_whole_pictures_is_no_server() -> None:
    class Whole(Pixels):
        wanted = replace(Pixels.wanted, alignment="none")

    with refused("protection", "pixels"):
        ReconstructingServer(scheme("dctdp"), Whole())
