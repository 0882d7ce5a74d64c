"""The recipe of a distilled server: its front end is the room's, it learns, and an interrupted run is the whole run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from studies.ppfr_distil import Channels, DistilledServer, Recipe, Training  # noqa: E402

from tests.encode.tiny import card  # noqa: E402
from unface.judge.template import unit_rows  # noqa: E402
from unface.protect.frequency import SCHEMES, FrontEnd, scheme  # noqa: E402
from unface.seeds import stream  # noqa: E402

TOY = Recipe("dctdp", "as-attacked", "toy", size=16, dim=4, width=8, blocks=(1, 1), batch=16, rate=3e-3, steps=60)


def material() -> tuple[np.ndarray, np.ndarray]:
    """Pictures of two numbers each, and a teacher that sees exactly these."""
    draw = stream(0, "distil")
    told = draw.standard_normal((48, 4))
    patterns = draw.standard_normal((4, 16, 16, 3))
    pixels = np.clip(128 + 20 * np.einsum("nk,kijc->nijc", told, patterns), 0, 255).astype(np.uint8)
    return pixels, unit_rows(told).astype(np.float32)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_channels_are_those_of_the_front_end(name: str) -> None:
    chosen = scheme(name, "as-attacked")
    pixels = material()[0][:3]
    front = FrontEnd(chosen, 16)
    expected = front.channels(front.planes(pixels)).reshape(3, -1, 16, 16)
    found = Channels(chosen, 16)(torch.from_numpy(pixels).permute(0, 3, 1, 2).float(), torch.Generator())
    assert np.abs(found.numpy() - expected).max() < 1e-3


def test_noise_has_its_scale_and_a_drawn_subset_hides_the_others() -> None:
    pictures = torch.full((4, 3, 16, 16), 90.0)
    noise = Channels(scheme("dctdp"), 16)(pictures, torch.Generator()) - Channels(
        replace(scheme("dctdp"), laplace=None), 16
    )(pictures, torch.Generator())
    assert float(noise.abs().mean()) == pytest.approx(0.25, rel=0.02)  # of a Laplace variable: its scale
    drawn = Channels(scheme("partialface"), 16)(torch.rand(4, 3, 16, 16) * 255, torch.Generator())
    shown = (drawn.reshape(4, 3, 54, -1).abs().sum(dim=(1, 3)) > 0).sum(dim=1)
    assert shown.tolist() == [9] * 4


def test_it_learns_goes_on_to_the_bit_and_serves(tmp_path: Path) -> None:
    pictures, taught = material()
    whole = Training(TOY, pictures, taught)
    assert whole.run(60)
    assert whole.losses[-1] < 0.5 * whole.losses[0]
    first = Training(TOY, pictures, taught)
    first.run(20)
    first.save(tmp_path)
    second = Training(TOY, pictures, taught)
    second.resume(tmp_path)
    second.run(60)
    second.save(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(whole.student.parameters(), second.student.parameters(), strict=True))
    server = DistilledServer(tmp_path, card().input)
    vectors = server.embed(list(pictures))
    assert server.deterministic
    assert float((vectors * taught).sum(axis=1).mean()) == pytest.approx(1 - whole.losses[-1], abs=0.1)
