"""If these fail, the network begins, is fed or is stepped otherwise than it was chosen to be, on one device or all."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.small import gaussian_support
from unface.probe import PROBES
from unface.probe.mlp import Layers, MlpScorer, _adamw, _scaled, _steps, forward, initial, train, train_on
from unface.seeds import stream

SMALL = gaussian_support(6, 8, 10, between=2.0)
Batch = tuple[NDArray[np.float32], NDArray[np.int64]]


def test_layers_begin_as_he_has_it() -> None:
    layers = initial([200, 300, 5], stream(0, "he"))
    assert [(weights.shape, bias.shape) for weights, bias in layers] == [((200, 300), (300,)), ((300, 5), (5,))]
    for (weights, bias), fan_in in zip(layers, (200, 300), strict=True):
        assert weights.dtype == bias.dtype == np.float32
        assert not bias.any()
        assert weights.std() == pytest.approx(np.sqrt(2 / fan_in), rel=0.1)
        assert abs(weights.mean()) < 5 * np.sqrt(2 / fan_in / weights.size)


def test_an_epoch_shows_every_picture_once_with_its_identity_and_noise_as_strong_as_itself() -> None:
    """Rows are marked by a first entry so large that noise cannot hide it."""
    inputs = np.zeros((300, 40), np.float32)
    inputs[:, 0] = 100 * np.arange(300)
    identities = np.arange(300) % 7
    steps = _steps(inputs, identities, stream(0, "epochs"))
    epochs = [[next(steps) for _ in range(3)] for _ in range(2)]
    orders = []
    for epoch in epochs:
        assert [len(seen) for seen, _ in epoch] == [128, 128, 44]
        seen, codes = (np.concatenate([batch[part] for batch in epoch]) for part in (0, 1))
        rows = np.round(seen[:, 0] / 100).astype(np.int64)
        assert sorted(rows.tolist()) == list(range(300))
        assert np.array_equal(codes, identities[rows])
        noise = seen - inputs[rows]
        assert seen.dtype == np.float32
        assert noise.std() == pytest.approx(1, abs=0.03)
        assert abs(noise.mean()) < 0.05
        orders.append(rows.tolist())
    assert orders[0] != orders[1]
    assert not np.array_equal(epochs[0][0][0][:, 1:], epochs[0][1][0][:, 1:])


def test_entries_of_unit_vectors_are_brought_to_about_one() -> None:
    unit = SMALL.vectors / np.linalg.norm(SMALL.vectors, axis=1, keepdims=True)
    scaled = _scaled(unit)
    assert scaled.dtype == np.float32
    assert np.linalg.norm(scaled, axis=1) == pytest.approx([np.sqrt(10)] * len(unit))


def test_a_first_step_moves_every_weight_by_the_learning_rate_against_its_gradient() -> None:
    """Adam's first step is the gradient's sign; weights decay by rate × decay before it, biases do not."""
    layers: Layers = [(np.full((2, 2), 4.0, np.float32), np.full(2, 4.0, np.float32))]
    gradients: Layers = [(np.array([[0.5, -0.5], [3.0, -1e-3]], np.float32), np.array([0.1, -7.0], np.float32))]
    mean, square = ([np.zeros_like(part) for layer in layers for part in layer] for _ in range(2))
    _adamw(layers, gradients, mean, square, 1, decay=0.5)
    ((weights, bias),) = layers
    signs = np.sign(gradients[0][0])
    assert weights == pytest.approx(4 - 2e-3 * 0.5 * 4 - 2e-3 * signs, abs=1e-6)
    assert bias == pytest.approx(np.array([4 - 2e-3, 4 + 2e-3]), abs=1e-6)


def test_the_score_is_of_the_last_hidden_layer_of_the_network_that_was_asked_for() -> None:
    hidden = (np.eye(2, dtype=np.float32), np.array([0, 1], np.float32))
    turned = (np.array([[0, 1], [1, 0]], np.float32), np.zeros(2, np.float32))
    last = (np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    scorer = MlpScorer({(8, 200): [hidden, last], (8, 600): [hidden, turned, last], (9, 200): [turned, last]})
    queries = np.array([[3, 4], [1, -5]], np.float32)
    for (width, steps), expected in (
        ((8, 200), forward([hidden], _scaled(queries))[1]),
        ((8, 600), forward([hidden, turned], _scaled(queries))[2]),
        ((9, 200), forward([turned], _scaled(queries))[1]),
    ):
        found = scorer.space({"width": width, "steps": steps, "weight_decay": 0.0}, queries).left
        assert found == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_another_device_begins_with_the_same_layers_and_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would go to a GPU is trained by torch on the CPU: a few steps end where NumPy's do.

    But for weights whose gradient is nothing but rounding, which Adam scales up to a whole step either way.
    """
    pytest.importorskip("torch")
    asked = []

    def here(device: str, *rest: Any) -> Iterator[tuple[int, Layers]]:
        asked.append(device)
        return train_on("cpu", *rest)

    monkeypatch.setattr("unface.probe.mlp.train_on", here)
    monkeypatch.setattr("unface.probe.mlp._STEPS", (3, 7))
    found = {
        device: dict(train(SMALL.vectors, SMALL.identities, 16, 0.3, stream(0, "both"), device))
        for device in ("cpu", "cuda:0")
    }
    assert asked == ["cuda:0"]
    assert list(found["cpu"]) == list(found["cuda:0"]) == [3, 7]
    for step, layers in found["cpu"].items():
        for ours, theirs in zip(layers, found["cuda:0"][step], strict=True):
            for part, other in zip(ours, theirs, strict=True):
                assert np.quantile(np.abs(other - part), 0.9) < 1e-5


def test_a_network_that_was_yielded_stays_as_it_is_while_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unface.probe.mlp._STEPS", (2, 4))
    training = train(SMALL.vectors, SMALL.identities, 16, 0.0, stream(0, "kept"))
    _, early = next(training)
    before = [part.copy() for layer in early for part in layer]
    _, late = next(training)
    assert all(np.array_equal(part, copy) for part, copy in zip(sum(early, ()), before, strict=True))
    assert not np.allclose(early[0][0], late[0][0])


def test_each_shape_trains_with_its_own_decay_on_the_supports_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(
        vectors: NDArray[np.float32],
        identities: NDArray[np.int64],
        width: int,
        decay: float,
        rng: np.random.Generator,
        device: str,
    ) -> Iterator[tuple[int, Layers]]:
        asked.append((width, decay, device, rng.random()))
        yield from ((steps, []) for steps in (200, 600))

    monkeypatch.setattr("unface.probe.mlp.train", noted)
    scorer = PROBES["mlp"].fit(SMALL)
    assert isinstance(scorer, MlpScorer)
    assert [(width, decay, device) for width, decay, device, _ in asked] == [(256, 1e-3, "cpu"), (128, 1e-1, "cpu")]
    assert asked[0][3] != asked[1][3]
    assert list(scorer.networks) == [(256, 200), (256, 600), (128, 200), (128, 600)]
