"""Gradients by automatic differentiation against central differences."""

from collections.abc import Callable

import torch
from torch import Tensor

from unface.seeds import stream


def relative_error(scalar: Callable[[Tensor], Tensor], at: Tensor, directions: int = 3, step: float = 1e-6) -> float:
    """The worst of a few random directions, relative to the largest derivative seen among them; float64."""
    assert at.dtype == torch.float64
    at = at.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(scalar(at), at)
    draw = stream(0, "directions")
    seen = []
    for _ in range(directions):
        direction = torch.from_numpy(draw.standard_normal(tuple(at.shape)))
        with torch.no_grad():
            difference = (scalar(at + step * direction) - scalar(at - step * direction)) / (2 * step)
        seen.append((float((gradient * direction).sum()), float(difference)))
    largest = max(abs(found) for found, _ in seen)
    assert largest > 0
    return max(abs(found - expected) for found, expected in seen) / largest
