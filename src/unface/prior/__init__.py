"""People who do not exist: generators of faces whose latents can be sampled, moved and decoded with gradients."""

from unface.prior.load import Prior, load_prior, require_device

__all__ = ["Prior", "load_prior", "require_device"]
