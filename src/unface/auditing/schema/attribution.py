"""Face-context attribution: its format lies in ``unface.result.attribution``."""

from unface.result.attribution import (
    AttributedSpace,
    AttributionQuality,
    AttributionResult,
    EncoderAttribution,
    Pictures,
)
from unface.result.numbers import Mean as Averaged
from unface.result.numbers import Share

__all__ = [
    "AttributedSpace",
    "AttributionQuality",
    "AttributionResult",
    "Averaged",
    "EncoderAttribution",
    "Pictures",
    "Share",
]
