"""People who do not exist: generators of faces whose latents can be sampled, moved and decoded with gradients."""

from unface.prior.load import load_prior
from unface.prior.ports import Prior

__all__ = ["Prior", "load_prior"]
