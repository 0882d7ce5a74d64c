"""If these fail, the non-linear attacker does not learn what it could, and leakage that it would find stays unseen."""

from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.probe.sign_people import best_tar
from tests.probe.small import gaussian_support, score_matrix
from unface.probe import PAPER_PROBES, PROBES
from unface.probe.mlp import Layers, MlpScorer, _adamw, _scaled, _steps, initial, loss_and_gradients, train, train_on
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
