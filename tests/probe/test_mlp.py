"""If these fail, the non-linear attacker does not learn what it could, and leakage that it would find stays unseen."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.sign_people import best_tar
from tests.probe.small import gaussian_support, score_matrix
from unface.probe import PAPER_PROBES, PROBES
from unface.probe.mlp import (
    Layers,
    MlpScorer,
    _adamw,
    _scaled,
    _steps,
    forward,
    initial,
    loss_and_gradients,
    train,
    train_on,
)
from unface.seeds import stream
from unface.threads import one_blas_thread

mlp = PROBES["mlp"]
SMALL = gaussian_support(6, 8, 10, between=2.0)


def doubled(layers: Layers) -> Layers:
    """In float64, where a finite difference of 1e-6 still has nine digits."""
    return cast(Layers, [(weights.astype(np.float64), bias.astype(np.float64)) for weights, bias in layers])


def test_gradients_are_those_of_finite_differences() -> None:
    rng = stream(0, "gradients")
    layers = doubled(initial([5, 7, 6, 4], rng))
    for _, bias in layers:
        bias += 0.1 * rng.normal(size=len(bias))
    inputs = cast(NDArray[np.float32], rng.normal(size=(9, 5)))
    identities = rng.integers(0, 4, size=9)
    _, gradients = loss_and_gradients(layers, inputs, identities)
    step = 1e-6
    for layer, slopes in zip(layers, gradients, strict=True):
        for part, slope in zip(layer, slopes, strict=True):
            assert slope.shape == part.shape
            for at in np.ndindex(*part.shape):
                before = part[at]
                part[at] = before + step
                above, _ = loss_and_gradients(layers, inputs, identities)
                part[at] = before - step
                below, _ = loss_and_gradients(layers, inputs, identities)
                part[at] = before
                assert slope[at] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-8)


def test_the_loss_is_the_mean_cross_entropy_and_survives_huge_logits() -> None:
    flat = [(np.zeros((3, 4), np.float32), np.zeros(4, np.float32))]
    loss, _ = loss_and_gradients(flat, np.ones((5, 3), np.float32), np.arange(5) % 4)
    assert loss == pytest.approx(np.log(4))
    steep = [(np.full((3, 2), 1e4, np.float32) * np.array([1, -1], np.float32), np.zeros(2, np.float32))]
    loss, gradients = loss_and_gradients(steep, np.ones((1, 3), np.float32), np.array([1]))
    assert loss == pytest.approx(6e4)
    assert np.isfinite(gradients[0][0]).all()


def test_training_brings_the_loss_down_and_more_steps_further() -> None:
    rng = stream(0, "loss")
    scale = np.float32(np.sqrt(10))
    unit = SMALL.vectors / np.linalg.norm(SMALL.vectors, axis=1, keepdims=True)
    start = initial([10, 32, 32, 6], stream(0, "start"))
    losses = [loss_and_gradients(start, unit * scale, SMALL.identities)[0]]
    for _, layers in train(unit, SMALL.identities, 32, 1e-3, rng):
        losses.append(loss_and_gradients(layers, unit * scale, SMALL.identities)[0])
    assert len(losses) == 3
    assert losses[1] < 0.5 * losses[0]
    assert losses[2] < losses[1]


def test_settings_are_two_shapes_at_two_lengths_of_training_and_all_differ() -> None:
    assert [(s["width"], s["weight_decay"], s["steps"]) for s in mlp.settings] == [
        (256, 1e-3, 200),
        (256, 1e-3, 600),
        (128, 1e-1, 200),
        (128, 1e-1, 600),
    ]
    with one_blas_thread():
        scorer = mlp.fit(SMALL)
        scores = [score_matrix(scorer.space(setting, SMALL.vectors[:8])) for setting in mlp.settings]
    assert all(not np.allclose(scores[a], scores[b], atol=1e-3) for a in range(4) for b in range(a))


def test_pictures_at_which_every_unit_is_silent_resemble_none_not_even_each_other() -> None:
    keeps_positive = [(np.eye(2, dtype=np.float32), np.zeros(2, np.float32))]
    scorer = MlpScorer({(256, 200): [*keeps_positive, *keeps_positive, *keeps_positive]})
    queries = np.array([[1, 1], [-1, -1], [1, 0], [-2, -1]], np.float32)
    scores = score_matrix(scorer.space({"width": 256, "steps": 200}, queries))
    assert scores[0, 2] == pytest.approx(np.sqrt(0.5))
    assert scores[1].tolist() == [0, 0, 0, 0]
    assert scores[3].tolist() == [0, 0, 0, 0]
    assert np.array_equal(scores, scores.T)


def test_it_learns_identities_that_no_linear_probe_can_see() -> None:
    """Whose picture it is lies in which of 16 hidden coordinates are large; their signs are drawn for each picture.

    All class means are zero, so linear probes have nothing but chance agreements of signs.
    """
    with one_blas_thread():
        found = {name: best_tar(PROBES[name]) for name in PAPER_PROBES}
    others = [tar for name, tar in found.items() if name != "mlp"]
    assert max(others) < 0.1
    assert found["mlp"] > 2 * max(others)


def test_torch_takes_the_same_steps() -> None:
    """Each step moves a weight by about 2e-3; where its gradient is all but nothing, what guards the division shows."""
    pytest.importorskip("torch")

    inputs, identities = _scaled(SMALL.vectors), SMALL.identities
    begun = initial([10, 7, 7, 6], stream(0, "layers"))
    taken = train_on("cpu", begun, _steps(inputs, identities, stream(0, "steps")), (4, 12), 2e-3, 0.3)
    ours = [(weights.copy(), bias.copy()) for weights, bias in begun]
    mean = [np.zeros_like(part) for layer in ours for part in layer]
    square = [np.zeros_like(part) for layer in ours for part in layer]
    steps = _steps(inputs, identities, stream(0, "steps"))
    expected = {}
    for step in range(1, 13):
        _, gradients = loss_and_gradients(ours, *next(steps))
        _adamw(ours, gradients, mean, square, step, 0.3)
        expected[step] = [(weights.copy(), bias.copy()) for weights, bias in ours]
    found = dict(taken)
    assert list(found) == [4, 12]
    for step, layers in found.items():
        for (weights, bias), (other_weights, other_bias) in zip(layers, expected[step], strict=True):
            np.testing.assert_allclose(weights, other_weights, atol=1e-4)
            np.testing.assert_allclose(bias, other_bias, atol=1e-4)


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
