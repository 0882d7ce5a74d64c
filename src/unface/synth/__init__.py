"""People who do not exist, photographed: identity-labelled pictures from a prior, accepted by recognisers."""

from unface.synth.folder import require_free
from unface.synth.make import Synthesised, synthesise
from unface.synth.recipe import Origin, Recipe, origin_of

__all__ = ["Origin", "Recipe", "Synthesised", "origin_of", "require_free", "synthesise"]
