"""People who do not exist, photographed: identity-labelled pictures from a prior, accepted by recognisers."""

from unface.synth.folder import require_free
from unface.synth.judge import THRESHOLDS, EncoderJudge, Judge, Thresholds, load_judges
from unface.synth.make import synthesise
from unface.synth.origin import Origin, origin_of
from unface.synth.recipe import Recipe
from unface.synth.result import Synthesised

__all__ = [
    "THRESHOLDS",
    "EncoderJudge",
    "Judge",
    "Origin",
    "Recipe",
    "Synthesised",
    "Thresholds",
    "load_judges",
    "origin_of",
    "require_free",
    "synthesise",
]
