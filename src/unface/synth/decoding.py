"""Latents into pictures, a few at a time."""

import torch

from unface.prior import Prior

_AT_ONCE = {"cpu": 4, "cuda": 32}


def decode_size(prior: Prior, size: int) -> int:
    """Pixels to decode at, so that a crop still has some to spare."""
    return next((given for given in prior.sizes if given > size), prior.sizes[-1])


def decoded(prior: Prior, latents: torch.Tensor, size: int) -> torch.Tensor:
    """(n, 3, size, size) pictures, a few at a time."""
    at_once = _AT_ONCE.get(latents.device.type, 4)
    with torch.inference_mode():
        return torch.cat([prior.decode(some, size) for some in torch.split(latents, at_once)])
