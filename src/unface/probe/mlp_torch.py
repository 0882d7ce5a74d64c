"""Training the mlp on another device: the draws are NumPy's, the arithmetic is torch's."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from unface.probe.mlp import Floats, Layers


def train_on(
    device: str,
    layers: Layers,
    steps: Iterator[tuple[Floats, NDArray[np.int64]]],
    keep: tuple[int, ...],
    rate: float,
    decay: float,
) -> Iterator[tuple[int, Layers]]:
    """AdamW from ``layers`` on, one step for each (inputs, identities); yields what is there at the steps to keep."""
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
