"""The low-resolution head against the whole generator, for the same pictures of 128 px with gradients, on the CPU."""

from functools import partial

import torch

from benchmarks.ratios import Ratio, cpu_seconds
from unface.prior import Prior, load_prior

COUNT, SIZE = 4, 128


def run() -> list[Ratio]:
    """Forward and backward; CPU time, so that other work on the machine counts for little."""
    whole, low = (load_prior(accept_licence=True, head=head) for head in (False, True))
    slow, fast = (cpu_seconds(partial(there_and_back, prior), 2) for prior in (whole, low))
    detail = f"{fast / COUNT:.2f} against {slow / COUNT:.2f} s for each of {COUNT} pictures"
    return [Ratio("whole generator / low-resolution head, CPU", slow / fast, 4.0, at_least=True, detail=detail)]


def there_and_back(prior: Prior) -> torch.Tensor:
    latents = prior.sample(COUNT, 0)[:, None].repeat(1, prior.slots, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(prior.decode(latents, SIZE).sum(), latents)
    return gradient
